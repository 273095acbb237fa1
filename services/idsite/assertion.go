package idsite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// assertionTTL is the lifetime of an assertion.
const assertionTTL = time.Minute

// The values of the claim status.
const (
	authenticated = "AUTHENTICATED"
	registered    = "REGISTERED"
	loggedOut     = "LOGOUT"
)

// outcome is what an assertion, the jwtResponse, says of a login or a logout
// (docs/interface/id-site.md#assertions).
type outcome struct {
	status  string
	account id.ID // zero: a logout without a session
	isNew   bool
	issuer  string // empty: the domain of the hosted pages
}

// assertionRedirect returns the callback of a flow with a signed assertion as its last parameter,
// jwtResponse.
func (s *Service) assertionRedirect(ctx context.Context, f store.Flow, site store.Site, jti string, o outcome) (string, error) {
	now := s.now()
	claims := secure.Claims{
		"iss": cmp.Or(o.issuer, "https://"+site.DomainName), "sub": nil, "aud": f.KeyID, "iat": now.Unix(), "exp": now.Add(assertionTTL).Unix(),
		"jti": jti, "irt": f.RequestID, "isNewSub": o.isNew, "status": o.status, "cb_uri": f.CallbackURI,
	}
	if !o.account.IsZero() {
		claims["sub"] = s.cfg.Base.To("accounts", o.account)
	}
	if f.FactorPassed {
		claims["amr"] = []string{"pwd", "mfa"} // RFC 8176
	}
	if !f.OrganizationID.IsZero() {
		claims["org"] = s.cfg.Base.To("organizations", f.OrganizationID)
	}
	return s.signedRedirect(ctx, f, claims)
}

// errorRedirect returns the callback of a flow with an error assertion, which has the claim err in
// place of status and sub, the application as its issuer, and no audience. An error of this
// service (5xx) is returned as an error and does not go to the callback.
func (s *Service) errorRedirect(ctx context.Context, f store.Flow, cause error) (string, error) {
	if !apierr.IsRefusal(cause) {
		return "", cause
	}
	refusal := apierr.From(cause)
	now := s.now()
	claims := secure.Claims{
		"iss": s.cfg.Base.To("applications", f.ApplicationID), "iat": now.Unix(), "exp": now.Add(assertionTTL).Unix(),
		"jti": id.New(now).String(), "irt": f.RequestID,
		"err": map[string]any{
			"status": refusal.Status, "code": refusal.Code, "message": refusal.Message, "developerMessage": refusal.DeveloperMessage(),
			"moreInfo": s.cfg.Base.Host() + "/errors/" + strconv.Itoa(refusal.Code),
		},
	}
	return s.signedRedirect(ctx, f, claims)
}

// signedRedirect adds the state of the client to the claims, and returns the callback of the flow
// with the signed claims.
func (s *Service) signedRedirect(ctx context.Context, f store.Flow, claims secure.Claims) (string, error) {
	switch {
	case f.State != nil:
		claims["state"] = *f.State
	case f.StateJSON != nil:
		claims["state"] = json.RawMessage(*f.StateJSON)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := s.peers.OAuth.SignAssertion(ctx, oauthapi.SignAssertion{
		Tenant: f.TenantID, Application: f.ApplicationID, KeyID: f.KeyID, Claims: text,
	})
	if err != nil {
		return "", err
	}
	return withAssertion(f.CallbackURI, signed.Token), nil
}

// withAssertion adds an assertion to the query of a callback.
func withAssertion(callback string, assertion secure.Secret) string {
	return withParameters(callback, "jwtResponse="+url.QueryEscape(assertion.Reveal()))
}

// assertionClaims are the claims of a jwtResponse that FinishLogin needs.
type assertionClaims struct {
	tenant    id.ID
	site      store.Site
	ID        string  `json:"jti"`
	Issuer    string  `json:"iss"`
	Audience  string  `json:"aud"` // id of the API key that has signed the request
	RequestID string  `json:"irt"`
	Callback  string  `json:"cb_uri"`
	Expires   float64 `json:"exp"`
}

// errInvalidAssertion is the error for a jwtResponse that is not valid.
var errInvalidAssertion = apierr.BadRequest.Because("jwtResponse is not an assertion of this service, or has expired")

// verifyAssertion verifies an assertion (jwtResponse) of a hosted login. It returns
// apierr.BadRequest for an assertion that has expired and for any other text.
func (s *Service) verifyAssertion(ctx context.Context, token secure.Secret) (a assertionClaims, err error) {
	verified, err := s.peers.OAuth.VerifyJWT(ctx, oauthapi.VerifyJWT{Token: token})
	if errors.Is(err, apierr.TokenSignature) {
		return a, errInvalidAssertion
	}
	if err != nil {
		return a, err
	}
	var header struct {
		STT string `json:"stt"`
	}
	a.tenant = verified.Tenant
	if a.site, err = s.store.TenantSite(caller.WithTenant(ctx, a.tenant), a.tenant); err != nil {
		return a, err
	}
	if json.Unmarshal(verified.Header, &header) != nil || json.Unmarshal(verified.Claims, &a) != nil ||
		header.STT != "assertion" || a.Callback == "" || a.Issuer != "https://"+a.site.DomainName || s.now().Unix() > int64(a.Expires) {
		return a, errInvalidAssertion
	}
	return a, nil
}
