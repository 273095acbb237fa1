package notification

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

// Provider is the provider of text messages: Twilio, or a server that speaks its
// Messages API. Without an Address there is none, and no text can be sent.
type Provider struct {
	Address  string // https://api.twilio.com
	Account  string // its SID
	Token    secure.Secret
	From     string // number, name, or SID of a messaging service
	Receipts bool   // it reports the state of a text by receipts; otherwise what it accepts has arrived
}

// errProvider does not repeat the address: it may hold a password.
var errProvider = errors.New("not of the form https://host[:port] (http:// for this machine and for the mailbox)")

// ParseProviderAddress reads the address of a provider, which is fixed by the
// configuration: nothing that a client sends has a part in it. Only a trusted
// one may be called without TLS; others must be on this machine for that.
func ParseProviderAddress(text string, trusted bool) (string, error) {
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" ||
		strings.Trim(address.Path, "/") != "" {
		return "", errProvider
	}
	ip := net.ParseIP(address.Hostname())
	local := address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if address.Scheme != "https" && (address.Scheme != "http" || !local && !trusted) {
		return "", errProvider
	}
	return address.Scheme + "://" + address.Host, nil
}

// providerClient asks a provider to send texts.
type providerClient struct {
	provider Provider
	client   *http.Client
}

const dialTimeout = 5 * time.Second

// newProviderClient makes a client that follows no redirect: the provider's address is
// the one that gets the account's token.
func newProviderClient(p Provider) *providerClient {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &providerClient{p, &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: dialTimeout,
			ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close closes idle connections.
func (c *providerClient) close() { c.client.CloseIdleConnections() }

// send requests the provider to send a text. errUnavailable and errBusy say that
// it has not accepted the text, a permanentError that it will not, a
// deploymentError that it does not work with this deployment, and any other error
// leaves open what it did.
func (c *providerClient) send(ctx context.Context, to, text, receipts string) error {
	if c.provider.Address == "" {
		return deploymentError{errors.New("there is no provider of text messages")}
	}
	form := url.Values{"To": {to}, "Body": {text}}
	if strings.HasPrefix(c.provider.From, "MG") {
		form.Set("MessagingServiceSid", c.provider.From)
	} else {
		form.Set("From", c.provider.From)
	}
	if c.provider.Receipts {
		form.Set("StatusCallback", receipts)
	}
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	address := c.provider.Address + "/2010-04-01/Accounts/" + url.PathEscape(c.provider.Account) + "/Messages.json"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return deploymentError{errors.New("the provider's address is not usable")}
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(c.provider.Account, c.provider.Token.Reveal())
	response, err := c.client.Do(request)
	switch {
	case err != nil && !connected:
		return fmt.Errorf("%w: connect to the provider: %w", errUnavailable, inner(err))
	case err != nil:
		return fmt.Errorf("%w: %w", errNoAnswer, inner(err))
	}
	defer response.Body.Close()
	return responseError(response)
}

// inner removes the request's address from an error of the HTTP client.
func inner(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// responseError returns the error of the provider's answer. Only its numbers are
// kept: its text may repeat the telephone number and the message.
func responseError(response *http.Response) error {
	status := response.StatusCode
	if status/100 == 2 {
		return nil
	}
	var refused struct {
		Code int `json:"code"`
	}
	err := fmt.Errorf("the provider answered %d", status)
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if json.Unmarshal(body, &refused) == nil && refused.Code != 0 {
		err = fmt.Errorf("the provider answered %d with the code %d", status, refused.Code)
	}
	switch {
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", errUnavailable, err)
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %w", errNoAnswer, err) // of a proxy before it, which timed out
	case status >= 500:
		return fmt.Errorf("%w: %w", errBusy, err)
	case status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return deploymentError{err} // the account, its token or the address is wrong
	}
	return permanentError{err}
}
