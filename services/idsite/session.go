package idsite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// sessionPurpose is what the keys of a tenant's session tokens are derived for.
func sessionPurpose(tenant id.ID) string { return "idsite.session/" + tenant.String() }

// scope says what a page may call; pages decide by it what to show. What is
// allowed follows from the flow.
type scope struct {
	Application map[string][]any    `json:"application"`
	Account     map[string][]any    `json:"account,omitempty"` // once the first step is passed
	Factor      map[string][]string `json:"factor,omitempty"`
}

// sessionClaims are the claims of a session token: those that pages read
// (docs/interface/id-site.md#browser-transport), and the flow.
type sessionClaims struct {
	Issuer      string   `json:"iss"`
	Subject     string   `json:"sub"`
	Application string   `json:"app_href"`
	Callback    string   `json:"cb_uri"`
	RequestID   string   `json:"irt"`
	NameKey     *string  `json:"onk"`
	StoreKey    *string  `json:"asnk,omitempty"`
	Store       *string  `json:"ash,omitempty"`
	ShowOrg     bool     `json:"sof"`
	FactorTypes []string `json:"require_mfa,omitempty"`
	Token       string   `json:"sp_token,omitempty"`
	Scope       scope    `json:"scope"`
	Flow        string   `json:"flow"`
	ID          string   `json:"jti"`
	IssuedAt    float64  `json:"iat"`
	ExpiresAt   float64  `json:"exp"`
}

// plainBase64 escapes JSON so that its Base64 form has neither - nor _: pages
// decode tokens with plain Base64. Those two stand for six bits that only ?, >, ~,
// DEL and bytes above 127 can make, none of which is part of the syntax of JSON.
func plainBase64(body []byte) []byte {
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

// sessionToken makes the next token of a flow. It is valid for the idle timeout
// of the site.
func (s *Service) sessionToken(ctx context.Context, f store.Flow, site store.Site) (secure.Secret, error) {
	idle, err := lifetime(site.SessionTTI)
	if err != nil {
		return "", err
	}
	now := s.now()
	expires := now.Add(idle)
	if expires.After(f.ExpiresAt) {
		expires = f.ExpiresAt
	}
	application := s.cfg.Base.To("applications", f.ApplicationID)
	claims := sessionClaims{
		Issuer: "https://" + site.DomainName, Subject: application, Application: application, Callback: f.CallbackURI,
		RequestID: f.RequestID, ShowOrg: f.ShowOrganization, FactorTypes: f.FactorTypes, Token: f.Token, Flow: f.ID.String(),
		ID: id.New(now).String(), IssuedAt: float64(now.Unix()), ExpiresAt: float64(expires.Unix()),
	}
	if f.NameKey != "" {
		claims.NameKey = &f.NameKey
	}
	named, err := s.namedStore(ctx, f)
	if err != nil {
		return "", err
	}
	if named.Href != "" {
		claims.Store, claims.StoreKey = &named.Href, &named.NameKey
	}
	if claims.Scope, err = s.scopeOf(ctx, f); err != nil {
		return "", err
	}
	return s.signSession(f.TenantID, claims)
}

// namedStore is the account store that the request of a flow names, with the name that
// pages show: the nameKey of an organization, the href of another store. It is empty where
// the request names none, and where the organization has no stores.
func (s *Service) namedStore(ctx context.Context, f store.Flow) (directoryapi.StoreName, error) {
	if ref, _ := s.cfg.Base.Parse(f.AccountStore); f.NameKey == "" && ref.Kind != "organizations" {
		return directoryapi.StoreName{Href: f.AccountStore, NameKey: f.AccountStore}, nil
	}
	stores, err := s.organization(ctx, whereOf(f))
	if err != nil || stores.Organization.IsZero() {
		return directoryapi.StoreName{}, err
	}
	return directoryapi.StoreName{Href: s.cfg.Base.To("organizations", stores.Organization), NameKey: stores.NameKey}, nil
}

func (s *Service) scopeOf(ctx context.Context, f store.Flow) (scope, error) {
	reset := any("create")
	if f.Token != "" {
		reset = map[string][]string{f.Token: {"read", "update"}}
	}
	out := scope{Application: map[string][]any{f.ApplicationID.String(): {
		"read", map[string][]string{"loginAttempt": {"create"}}, map[string][]string{"account": {"create"}},
		map[string][]any{"passwordResetToken": {reset}},
	}}}
	if f.AccountID.IsZero() {
		return out, nil
	}
	out.Account = map[string][]any{f.AccountID.String(): {"read", map[string][]string{"factor": {"create", "read"}}}}
	factors, err := s.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: f.TenantID, ID: f.AccountID})
	for _, factor := range factors.Items {
		if out.Factor == nil {
			out.Factor = map[string][]string{}
		}
		out.Factor[factor.ID.String()] = []string{"read", "challenge"}
	}
	return out, err
}

func (s *Service) signSession(tenant id.ID, claims sessionClaims) (secure.Secret, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(plainBase64(body), &members); err != nil {
		return "", err
	}
	all := secure.Claims{}
	for name, value := range members {
		all[name] = value
	}
	return s.signOwn(tenant, sessionPurpose, "", all)
}

// signOwn signs a token that comes back to this service, under the tenant's key for a
// purpose. kind is the header stt, "" for none.
func (s *Service) signOwn(tenant id.ID, purpose func(id.ID) string, kind string, claims secure.Claims) (secure.Secret, error) {
	keyID, key := s.ring.Derive(purpose(tenant))
	header := map[string]any{"typ": "JWT", "kid": keyID, "tid": tenant.String()}
	if kind != "" {
		header["stt"] = kind
	}
	token, err := secure.SignJWT(header, claims, key)
	return secure.Secret(token), err
}

// errNotOwn is the error of a text that is no token of signOwn.
var errNotOwn = errors.New("the text is no token of this service and kind")

// openOwn returns what a token of signOwn is about, the id in one of its claims, with
// its tenant and its claims. Any other text is errNotOwn.
func (s *Service) openOwn(token secure.Secret, purpose func(id.ID) string, kind, claim string) (about id.Ref, claims secure.Claims,
	err error) {
	_, claims, err = secure.ParseJWT(token.Reveal(), func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
		name, _ := header["tid"].(string)
		tenant, err := id.Parse(name)
		if stt, _ := header["stt"].(string); err != nil || stt != kind {
			return "", errNotOwn
		}
		about.Tenant = tenant
		keyID, _ := header["kid"].(string)
		return s.ring.Derived(keyID, purpose(tenant))
	})
	name, _ := claims[claim].(string)
	var unreadable error
	if about.ID, unreadable = id.Parse(name); err != nil || unreadable != nil {
		return id.Ref{}, nil, errNotOwn
	}
	return about, claims, nil
}

// openSession returns the flow of a session token with its site. A token that is
// not one, or whose flow has ended, is apierr.SessionTimedOut; where the site and the
// flow are known, they are returned with the error.
func (s *Service) openSession(ctx context.Context, token secure.Secret) (store.Flow, store.Site, error) {
	at, claims, err := s.openOwn(token, sessionPurpose, "", "flow")
	if err != nil {
		return store.Flow{}, store.Site{}, errSessionOver
	}
	flow, site, err := s.store.FlowAndSite(caller.WithTenant(ctx, at.Tenant), at.Tenant, at.ID)
	if errors.Is(err, apierr.NotFound) && !site.ID.IsZero() {
		err = errSessionOver
	}
	if err != nil {
		return flow, site, err
	}
	expires, err := claims.GetExpirationTime()
	now := s.now()
	if err != nil || expires == nil || !now.Before(expires.Time) || !now.Before(flow.ExpiresAt) || flow.FinishedAt != nil {
		return flow, site, errSessionOver
	}
	scoped, _ := claims["scope"].(map[string]any)
	accounts, passed := scoped["account"].(map[string]any)
	switch {
	case flow.AccountID.IsZero():
	case !passed:
		// The token is older than the first step: it is good for what comes before
		// that, as a page that went back asks for it.
		flow.AccountID, flow.IsNew = id.ID{}, false
	case accounts[flow.AccountID.String()] == nil: // another account has passed the first step since
		return flow, site, errSessionOver
	}
	return flow, site, nil
}

// usableFactors are the factors of the account of a flow that can pass its second
// step.
func (s *Service) usableFactors(ctx context.Context, f store.Flow) ([]mfaapi.AccountFactor, error) {
	factors, err := s.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: f.TenantID, ID: f.AccountID})
	var usable []mfaapi.AccountFactor
	for _, factor := range factors.Items {
		if factor.Usable && f.Allows(factor.Type) {
			usable = append(usable, factor)
		}
	}
	return usable, err
}
