package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

const (
	callTimeout  = 30 * time.Second // more than a long poll takes
	maxAnswer    = 8 << 20
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

// Doorward is the HTTPS client of the agent.
type Doorward struct {
	address, key string
	secret       secure.Secret
	hashes       bool // whether password hashes are sent
	http         *http.Client
}

// statusError is an answer that a retry does not change (4xx, except 429).
type statusError struct {
	status int
	code   int
	text   string
}

// syncHeld is the code of a sync that Doorward holds: it would make too many accounts absent
// (docs/interface/connectors.md#absent-accounts).
const syncHeld = 9007

// isHeld reports whether an error is that of a held sync.
func isHeld(err error) bool {
	refusal, ok := errors.AsType[*statusError](err)
	return ok && refusal.code == syncHeld
}

func (r *statusError) Error() string { return fmt.Sprintf("Doorward answers %d: %s", r.status, r.text) }

// NewDoorward makes the client, and validates URL and CA certificates of the configuration.
func NewDoorward(cfg Config) (*Doorward, error) {
	address, err := url.Parse(strings.TrimSuffix(strings.TrimRight(cfg.URL, "/"), "/v1"))
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("DOORWARD_URL is %q: it must be of the form https://host", cfg.URL)
	}
	roots, err := roots(cfg.CA, "DOORWARD_CA")
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	transport.MaxIdleConnsPerHost = 64
	return &Doorward{
		address: address.String() + "/v1/agents/" + url.PathEscape(cfg.ID), key: cfg.KeyID, secret: cfg.KeySecret,
		hashes: cfg.Hashes,
		http: &http.Client{Transport: transport, Timeout: callTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("redirects are not followed; name the final address in DOORWARD_URL")
			}},
	}, nil
}

// roots returns the CA certificates of the system and those of a PEM text.
func roots(text, name string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if text != "" && !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", name)
	}
	return pool, nil
}

// call sends one request. in and out may be nil.
func (d *Doorward) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, d.address+path, body)
	if err != nil {
		return err
	}
	request.SetBasicAuth(d.key, d.secret.Reveal())
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := d.http.Do(request)
	if err != nil {
		return fmt.Errorf("call Doorward: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("call Doorward: %w", err)
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("call Doorward: %s", response.Status)
	case response.StatusCode >= http.StatusMultipleChoices:
		var refusal struct {
			Code             int    `json:"code"`
			DeveloperMessage string `json:"developerMessage"`
		}
		_ = json.Unmarshal(text, &refusal)
		return &statusError{response.StatusCode, refusal.Code, refusal.DeveloperMessage}
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}

// callWithRetry retries a call with back-off until it succeeds or is refused.
func (d *Doorward) callWithRetry(ctx context.Context, method, path string, in, out any) error {
	wait := firstBackoff
	for {
		err := d.call(ctx, method, path, in, out)
		if _, isRefused := errors.AsType[*statusError](err); err == nil || isRefused || ctx.Err() != nil {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, maxBackoff)
	}
}

// sleep waits, or returns the error of a context that ends.
func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// Settings is the configuration of the agent in Doorward.
type Settings struct {
	ProviderID           string          `json:"providerId"`
	DirectoryHost        string          `json:"directoryHost"`
	DirectoryPort        int             `json:"directoryPort"`
	SSLRequired          bool            `json:"sslRequired"`
	AgentUserDN          string          `json:"agentUserDn"`
	AgentUserDNPassword  secure.Secret   `json:"agentUserDnPassword"`
	BaseDN               string          `json:"baseDn"`
	PollInterval         int             `json:"pollInterval"` // minutes
	ReferralMode         string          `json:"referralMode"`
	IgnoreReferralIssues bool            `json:"ignoreReferralIssues"`
	Accounts             AccountSettings `json:"accountConfig"`
	Groups               GroupSettings   `json:"groupConfig"`
}

// AccountSettings says which LDAP entries are accounts, and which attributes are their properties. The
// members of the API that end in Rdn, here and in GroupSettings, are names of attributes, such as
// "mail".
type AccountSettings struct {
	DNSuffix      string `json:"dnSuffix"`
	ObjectClass   string `json:"objectClass"`
	ObjectFilter  string `json:"objectFilter"`
	EmailRDN      string `json:"emailRdn"`
	GivenNameRDN  string `json:"givenNameRdn"`
	MiddleNameRDN string `json:"middleNameRdn"`
	SurnameRDN    string `json:"surnameRdn"`
	UsernameRDN   string `json:"usernameRdn"`
	PasswordRDN   string `json:"passwordRdn"` // empty where password hashes are not sent
}

// GroupSettings says which LDAP entries are groups, and which attributes are their properties.
type GroupSettings struct {
	DNSuffix       string `json:"dnSuffix"`
	ObjectClass    string `json:"objectClass"`
	ObjectFilter   string `json:"objectFilter"`
	NameRDN        string `json:"nameRdn"`
	DescriptionRDN string `json:"descriptionRdn"`
	MembersRDN     string `json:"membersRdn"`
}

// isAD reports whether the server is Active Directory.
func (s Settings) isAD() bool { return s.ProviderID == "ad" }

// Page is a page of a sync: accounts and groups of the directory server.
type Page struct {
	SyncID          string    `json:"syncId,omitempty"`
	Accounts        []Account `json:"accounts,omitempty"`
	Groups          []Group   `json:"groups,omitempty"`
	DeletedAccounts []string  `json:"deletedAccounts,omitempty"`
	DeletedGroups   []string  `json:"deletedGroups,omitempty"`
	Complete        bool      `json:"complete,omitempty"`
}

// Account is an account of the directory server.
type Account struct {
	ExternalID   string         `json:"externalId"`
	Username     *string        `json:"username"`
	Email        *string        `json:"email"`
	GivenName    *string        `json:"givenName"`
	MiddleName   *string        `json:"middleName"`
	Surname      *string        `json:"surname"`
	Disabled     bool           `json:"disabled"`
	PasswordHash *secure.Secret `json:"passwordHash,omitempty"`
}

// Group is a group of the directory server with all its members.
type Group struct {
	ExternalID  string   `json:"externalId"`
	Name        *string  `json:"name"`
	Description *string  `json:"description"`
	Members     []string `json:"members"`
}

// Check is a password check.
type Check struct {
	ID         string            `json:"id"`
	Username   string            `json:"username"`
	Password   secure.Secret     `json:"password"`
	ExternalID string            `json:"externalId"`
	Trace      map[string]string `json:"trace"`
}

// CheckResult is the result of a password check.
type CheckResult struct {
	Result string `json:"result"`
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Configuration reads the configuration of the agent.
func (d *Doorward) Configuration(ctx context.Context) (Settings, error) {
	var s Settings
	err := d.call(ctx, http.MethodGet, "/configuration", nil, &s)
	if !d.hashes || s.isAD() {
		s.Accounts.PasswordRDN = ""
	}
	return s, err
}

// Ping reports the status of the agent, where nil is healthy.
func (d *Doorward) Ping(ctx context.Context, problem error) error {
	in := map[string]string{"status": "ONLINE"}
	if problem != nil {
		message := []rune(strings.ToValidUTF8(problem.Error(), "?"))
		in = map[string]string{"status": "ERROR", "message": string(message[:min(len(message), 1000)])}
	}
	return d.call(ctx, http.MethodPost, "/ping", in, nil)
}

// Send sends a page of a sync, and retries until Doorward accepts or refuses it.
func (d *Doorward) Send(ctx context.Context, p Page) error {
	return d.callWithRetry(ctx, http.MethodPost, "/sync", p, nil)
}

// WaitForChecks returns password checks; without any it waits (long poll): it asks for 20 s, of which
// Doorward grants 5.
func (d *Doorward) WaitForChecks(ctx context.Context) ([]Check, error) {
	var checks []Check
	return checks, d.call(ctx, http.MethodGet, "/authentications?wait=20", nil, &checks)
}

// Answer sends the result of a check. It is no error that its login has ended already.
func (d *Doorward) Answer(ctx context.Context, check string, r CheckResult) error {
	err := d.callWithRetry(ctx, http.MethodPost, "/authentications/"+url.PathEscape(check), r, nil)
	if refusal, ok := errors.AsType[*statusError](err); ok && refusal.status == http.StatusNotFound {
		return nil
	}
	return err
}
