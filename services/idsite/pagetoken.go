package idsite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/servicetoken"
	"github.com/doorward/doorward/services/idsite/store"
)

// The session token of a hosted page. It is a JWT that the page sends as Authorization: Bearer,
// and every answer has the next one. The session of single sign-on is in journey/session.go.

// pageToken is a session token.
var pageToken = servicetoken.Kind{Purpose: "idsite.session", ID: "flow"}

// pageScope is the claim scope, by which a page decides what to show. What the page may really
// call follows from the row of the flow (pageapi.go).
type pageScope struct {
	Application map[string][]any    `json:"application"`
	Account     map[string][]any    `json:"account,omitempty"` // once the first step is passed
	Factor      map[string][]string `json:"factor,omitempty"`
}

// pageTokenClaims are the claims of a session token: those that pages read
// (docs/interface/id-site.md#session-token-api), and the id of the flow.
type pageTokenClaims struct {
	Issuer      string    `json:"iss"`
	Subject     string    `json:"sub"`
	Application string    `json:"app_href"`
	Callback    string    `json:"cb_uri"`
	RequestID   string    `json:"irt"`
	NameKey     *string   `json:"onk"`            // organization name key: the organization that the request names
	StoreKey    *string   `json:"asnk,omitempty"` // account store name key: the name of that account store
	Store       *string   `json:"ash,omitempty"`  // account store href: the account store that the request names
	ShowOrg     bool      `json:"sof"`            // show organization field: the login page asks for an organization
	FactorTypes []string  `json:"require_mfa,omitempty"`
	Token       string    `json:"sp_token,omitempty"`
	LoginHint   string    `json:"login_hint,omitempty"`       // user name or email that the page fills in
	Unverified  string    `json:"unverified_email,omitempty"` // address that is to be verified, after the right password
	Scope       pageScope `json:"scope"`
	Flow        string    `json:"flow"`
	ID          string    `json:"jti"`
	IssuedAt    float64   `json:"iat"`
	ExpiresAt   float64   `json:"exp"`
}

// escapeForPlainBase64 escapes characters of JSON so that its Base64 form has neither - nor _,
// because pages decode tokens with plain Base64 and not with Base64url. Only the characters
// ?, >, ~, DEL and those above 127 can result in - or _; none of them is part of the syntax of
// JSON.
func escapeForPlainBase64(body []byte) []byte {
	var out []byte
	for _, r := range string(body) {
		switch {
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		case strings.ContainsRune("?>~\x7f", r) || r > 0x7f:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, byte(r))
		}
	}
	return out
}

// newPageToken returns the next session token of a flow. The token is valid for the idle timeout
// (sessionTti) of the settings, and not longer than the flow.
func (s *Service) newPageToken(ctx context.Context, f store.Flow, site store.Site) (secure.Secret, error) {
	idle, err := store.ParseDuration(site.SessionTTI)
	if err != nil {
		return "", err
	}
	now := s.now()
	expires := now.Add(idle)
	if expires.After(f.ExpiresAt) {
		expires = f.ExpiresAt
	}
	application := s.cfg.Base.To("applications", f.ApplicationID)
	claims := pageTokenClaims{
		Issuer: "https://" + site.DomainName, Subject: application, Application: application, Callback: f.CallbackURI,
		RequestID: f.RequestID, ShowOrg: f.ShowOrganization, FactorTypes: f.FactorTypes, Token: f.Token, Flow: f.ID.String(),
		ID: id.New(now).String(), IssuedAt: float64(now.Unix()), ExpiresAt: float64(expires.Unix()),
	}
	if f.NameKey != "" {
		claims.NameKey = &f.NameKey
	}
	if f.OpenIDRequest != nil {
		claims.LoginHint = f.OpenIDRequest.LoginHint
	}
	named, err := s.Journey.RequestedStore(ctx, f)
	if err != nil {
		return "", err
	}
	if named.Href != "" {
		claims.Store, claims.StoreKey = &named.Href, &named.NameKey
	}
	unverified, err := s.Journey.Unverified(ctx, f)
	if err != nil {
		return "", err
	}
	claims.Unverified = unverified.Email
	if claims.Scope, err = s.pageScopeOf(ctx, f); err != nil {
		return "", err
	}
	return s.signPageToken(f.TenantID, claims)
}

// pageScopeOf returns the claim scope for the state of a flow.
func (s *Service) pageScopeOf(ctx context.Context, f store.Flow) (pageScope, error) {
	reset := any("create")
	if f.Token != "" {
		reset = map[string][]string{f.Token: {"read", "update"}}
	}
	attempts := []string{"create"}
	if f.OpenIDRequest != nil {
		attempts = append(attempts, "cancel")
	}
	out := pageScope{Application: map[string][]any{f.ApplicationID.String(): {
		"read", map[string][]string{"loginAttempt": attempts}, map[string][]string{"account": {"create"}},
		map[string][]any{"passwordResetToken": {reset}},
	}}}
	if f.AccountID.IsZero() {
		return out, nil
	}
	out.Account = map[string][]any{f.AccountID.String(): {"read", map[string][]string{"factor": {"create", "read"}}}}
	factors, err := s.Journey.FactorsOf(ctx, f)
	for _, factor := range factors {
		if out.Factor == nil {
			out.Factor = map[string][]string{}
		}
		out.Factor[factor.ID.String()] = []string{"read", "challenge"}
	}
	return out, err
}

// signPageToken signs the claims of a session token.
func (s *Service) signPageToken(tenant id.ID, claims pageTokenClaims) (secure.Secret, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(escapeForPlainBase64(body), &members); err != nil {
		return "", err
	}
	all := secure.Claims{}
	for name, value := range members {
		all[name] = value
	}
	return pageToken.Sign(s.ring, tenant, all)
}

// verifyPageToken verifies a session token and returns its flow and the site of its tenant. It
// returns apierr.Unauthorized for a text that is no session token of this service, and
// apierr.SessionTimedOut for one that has expired and for one whose flow has ended. Where
// the flow and the site are known, they are returned with that error.
func (s *Service) verifyPageToken(ctx context.Context, token secure.Secret) (store.Flow, store.Site, error) {
	verified, err := pageToken.Verify(s.ring, token)
	if err != nil {
		return store.Flow{}, store.Site{}, errNoPageToken
	}
	at, claims := verified.About, verified.Claims
	flow, site, err := s.store.FlowAndSite(caller.WithTenant(ctx, at.Tenant), at.Tenant, at.ID)
	if errors.Is(err, apierr.NotFound) && !site.ID.IsZero() {
		err = journey.ErrEnded
	}
	if err != nil {
		return flow, site, err
	}
	if err := s.Journey.CheckTenant(ctx, at.Tenant); err != nil {
		return flow, site, err
	}
	expires, err := claims.GetExpirationTime()
	now := s.now()
	if err != nil || expires == nil || !now.Before(expires.Time) || !now.Before(flow.ExpiresAt) || flow.FinishedAt != nil {
		return flow, site, journey.ErrEnded
	}
	scoped, _ := claims["scope"].(map[string]any)
	accounts, passed := scoped["account"].(map[string]any)
	switch {
	case flow.AccountID.IsZero():
	case !passed:
		// The token is older than the first step. A page gets such a token back when the user
		// goes back in the browser: it is valid for what comes before the first step.
		flow.AccountID, flow.IsNew, flow.SteppedUp = id.ID{}, false, false
	case accounts[flow.AccountID.String()] == nil: // another account has passed the first step since
		return flow, site, journey.ErrEnded
	}
	return flow, site, nil
}
