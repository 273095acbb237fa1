package notification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// logoutWorkers is how many clients this process tells at once. Those of one tenant take logoutShare of
	// them at most: with clients that do not answer for clientTimeout they would take all, for minutes where a
	// few hundred sessions have ended.
	logoutWorkers = 8
	logoutShare   = logoutWorkers / 2
	// logoutTimeout bounds one attempt, clientTimeout the request to the client in it.
	logoutTimeout = requestTimeout + clientTimeout
	clientTimeout = 5 * time.Second
	// maxLogoutAnswer is how much is read of the answer of a client, in bytes.
	maxLogoutAnswer = 4 << 10
)

// logoutChannel is the channel of back-channel logouts (OpenID Connect Back-Channel Logout). Each is sent
// at least once. The oauth service signs a logout token for each attempt, since one is good for minutes
// alone; all have the id of the delivery as jti, by which a client knows what it was told already.
func (s *Service) logoutChannel() *channel {
	return &channel{
		kind: store.Logout, name: "logout", workers: logoutWorkers, timeout: logoutTimeout, maxAge: maxLogoutAge,
		wake: make(chan struct{}, 1), skipped: s.logoutLimit.skip,
		newSender:  func() (sender, error) { return &logoutSender{s, newLogoutClient(s.cfg.Outbound)}, nil },
		backoff:    mailBackoff,
		workflow:   func(store.Delivery) string { return "logout" },
		attempts:   s.instruments.logouts,
		finalState: finalState,
	}
}

// newLogoutClient makes a client that follows no redirect: the token is for the registered address.
func newLogoutClient(guard outbound.Guard) *http.Client {
	transport := guard.Transport()
	transport.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{
		Transport: transport, Timeout: clientTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// logoutSender tells clients of the end of sessions.
type logoutSender struct {
	s      *Service
	client *http.Client
}

// send asks for a logout token and sends it to the client of a delivery. It returns errObsolete for a
// client that is not there or has no address for it any more.
func (c *logoutSender) send(ctx context.Context, d store.Delivery) error {
	if !c.s.logoutLimit.acquire(d.TenantID) {
		return errServerInUse
	}
	defer c.s.logoutLimit.release(d.TenantID)
	signing, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	token, err := c.s.peers.OAuth.LogoutToken(signing, oauthapi.AskLogoutToken{
		Tenant: d.TenantID, Client: d.ClientID, Account: d.AccountID, Session: d.SessionID.String(), JTI: d.ID.String(),
	})
	if errors.Is(err, apierr.NotFound) {
		return errObsolete
	}
	if err != nil {
		return fmt.Errorf("ask for the logout token: %w", err)
	}
	if err := c.post(ctx, token.Address, token.Token); err != nil {
		return fmt.Errorf("client %s: %w", d.ClientID, err)
	}
	return nil
}

// post sends a logout token to an address (section 2.5 of the standard). The error names neither.
func (c *logoutSender) post(ctx context.Context, address string, token secure.Secret) error {
	form := url.Values{"logout_token": {token.Reveal()}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil || request.URL.Scheme != "https" {
		return permanentError{errors.New("its address for logouts is not https")}
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxLogoutAnswer))
	return logoutError(response.StatusCode, answer)
}

// errorCode matches an error code of OAuth, which a log may have.
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// logoutError returns the error that an answer of a client means, or nil. By 400 the client has refused the
// logout (section 2.8 of the standard), as it would again.
func logoutError(status int, answer []byte) error {
	if status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("it answered %d", status)
	if status != http.StatusBadRequest {
		return err
	}
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &refused) == nil && errorCode.MatchString(refused.Error) {
		err = fmt.Errorf("it answered %d with the error %s", status, refused.Error)
	}
	return permanentError{err}
}

func (c *logoutSender) close() { c.client.CloseIdleConnections() }

func (c *logoutSender) abort() { c.client.CloseIdleConnections() }
