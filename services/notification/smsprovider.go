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

// SMSProvider is the gateway that sends text messages (SMS): Twilio, or a server that has the
// same Messages API. Without an Address there is no provider, and each text message ends as
// DEPLOYMENT_ERROR. Its configuration is in app/sms.go, its delivery receipts are in smsreceipt.go.
type SMSProvider struct {
	Address string // https://api.twilio.com
	Account string // the account SID
	Token   secure.Secret
	From    string // the sender: a number, a name, or the SID of a messaging service
	// the provider reports deliveries by receipts; without them, a message that it accepts counts as delivered
	Receipts bool
}

// errSMSProviderAddress does not repeat the address, which may hold a password.
var errSMSProviderAddress = errors.New("not of the form https://host[:port] (http:// for this machine and for the " +
	"mailbox)")

// ParseSMSProviderAddress validates the address of an SMS provider. The address comes from
// the configuration alone, so that no client can make the service call another host (SSRF).
// Plain HTTP is allowed to this machine, and to any host if plainHTTP is true.
func ParseSMSProviderAddress(text string, plainHTTP bool) (string, error) {
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || address.User != nil || address.RawQuery != "" ||
		address.Fragment != "" ||
		strings.Trim(address.Path, "/") != "" {
		return "", errSMSProviderAddress
	}
	ip := net.ParseIP(address.Hostname())
	local := address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if address.Scheme != "https" && (address.Scheme != "http" || !local && !plainHTTP) {
		return "", errSMSProviderAddress
	}
	return address.Scheme + "://" + address.Host, nil
}

// smsProviderClient sends text messages through the API of an SMS provider.
type smsProviderClient struct {
	provider SMSProvider
	client   *http.Client
}

// dialTimeout bounds the connection to the provider and its TLS handshake.
const dialTimeout = 5 * time.Second

// newSMSProviderClient makes a client that follows no redirect: no other address than the
// provider's must get the token of the account.
func newSMSProviderClient(p SMSProvider) *smsProviderClient {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &smsProviderClient{p, &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close closes idle connections.
func (c *smsProviderClient) close() { c.client.CloseIdleConnections() }

// send hands a text message to the provider, which reports the delivery to receiptURL. Its
// error says what became of the message:
//   - errUnavailable and errSMSProviderBusy: the provider did not accept it, and may later.
//   - permanentError: the provider refuses this message.
//   - deploymentError: the account or the address of the provider is wrong.
//   - errNoSMSProviderAnswer: it is not known whether the provider accepted the message.
func (c *smsProviderClient) send(ctx context.Context, to, text, receiptURL string) error {
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
		form.Set("StatusCallback", receiptURL)
	}
	connected := false
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
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
		return fmt.Errorf("%w: connect to the provider: %w", errUnavailable, withoutURL(err))
	case err != nil:
		return fmt.Errorf("%w: %w", errNoSMSProviderAnswer, withoutURL(err))
	}
	defer response.Body.Close()
	return responseError(response)
}

// withoutURL removes the address of the request from an error of the HTTP client.
func withoutURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// responseError returns the error that a response of the provider means, or nil. It keeps
// the status and the error code alone: the text of the response may repeat the telephone
// number and the code.
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
		return fmt.Errorf("%w: %w", errNoSMSProviderAnswer, err) // a proxy before the provider timed out
	case status >= 500:
		return fmt.Errorf("%w: %w", errSMSProviderBusy, err)
	case status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return deploymentError{err} // the account, its token or the address is wrong
	}
	return permanentError{err}
}
