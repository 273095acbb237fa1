package idsite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/openid"
	"github.com/doorward/doorward/services/idsite/store"
)

// The values of the claim status.
const (
	authenticated = "AUTHENTICATED"
	registered    = "REGISTERED"
	loggedOut     = "LOGOUT"
)

// outcome is what an assertion, the jwtResponse, says of a login or a logout besides its flow
// (docs/interface/id-site.md#assertions).
type outcome struct {
	status string
	isNew  bool
	issuer string // empty: the domain of the hosted pages
}

// assertionRedirect returns the callback of a flow with a signed assertion as its last parameter,
// jwtResponse.
func (s *Service) assertionRedirect(ctx context.Context, f store.Flow, site store.Site, o outcome) (string, error) {
	token, err := s.assertion(ctx, f, site, o)
	return withAssertion(f.CallbackURI, token), err
}

// assertion returns a signed assertion of a flow. Its subject is the account of the flow, if there is one: a logout
// without a session has none.
func (s *Service) assertion(ctx context.Context, f store.Flow, site store.Site, o outcome) (secure.Secret, error) {
	now := s.now()
	claims := secure.Claims{
		"iss": cmp.Or(o.issuer, "https://"+site.DomainName), "sub": nil, "aud": f.KeyID,
		"iat": now.Unix(), "exp": now.Add(journey.AssertionTTL).Unix(),
		"jti": id.New(now).String(), "irt": f.RequestID, "isNewSub": o.isNew, "status": o.status, "cb_uri": f.CallbackURI,
	}
	if f.AssertionID != nil {
		claims["jti"] = *f.AssertionID
	}
	if !f.AccountID.IsZero() {
		claims["sub"] = s.cfg.Base.To("accounts", f.AccountID)
	}
	if methods := journey.Methods(f); methods != nil {
		claims["amr"] = methods
	}
	if !f.OrganizationID.IsZero() {
		claims["org"] = s.cfg.Base.To("organizations", f.OrganizationID)
	}
	return s.signAssertion(ctx, f, claims)
}

// errorRedirect returns the callback of a flow with an error assertion, which has the claim err in
// place of status and sub, the application as its issuer, and no audience. An error of this
// service (5xx) is returned as an error and does not go to the callback.
func (s *Service) errorRedirect(ctx context.Context, f store.Flow, cause error) (string, error) {
	if !apierr.IsRefusal(cause) {
		return "", cause
	}
	if f.OpenIDRequest != nil {
		return openid.ResumeAddress(f), nil
	}
	refusal := apierr.From(cause)
	now := s.now()
	claims := secure.Claims{
		"iss": s.cfg.Base.To("applications", f.ApplicationID), "iat": now.Unix(), "exp": now.Add(journey.AssertionTTL).Unix(),
		"jti": id.New(now).String(), "irt": f.RequestID,
		"err": map[string]any{
			"status": refusal.Status, "code": refusal.Code, "message": refusal.Message,
			"developerMessage": refusal.DeveloperMessage(),
			"moreInfo":         s.cfg.Base.Host() + "/errors/" + strconv.Itoa(refusal.Code),
		},
	}
	token, err := s.signAssertion(ctx, f, claims)
	return withAssertion(f.CallbackURI, token), err
}

// signAssertion adds the state of the client to the claims, and signs them.
func (s *Service) signAssertion(ctx context.Context, f store.Flow, claims secure.Claims) (secure.Secret, error) {
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
	return signed.Token, err
}

// withAssertion adds an assertion to the query of a callback.
func withAssertion(callback string, assertion secure.Secret) string {
	return journey.WithParameters(callback, url.Values{"jwtResponse": {assertion.Reveal()}})
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
	if err := s.Journey.CheckTenant(ctx, a.tenant); err != nil {
		return a, err
	}
	if a.site, err = s.store.TenantSite(caller.WithTenant(ctx, a.tenant), a.tenant); err != nil {
		return a, err
	}
	if json.Unmarshal(verified.Header, &header) != nil || json.Unmarshal(verified.Claims, &a) != nil ||
		header.STT != "assertion" || a.Callback == "" || a.Issuer != "https://"+a.site.DomainName ||
		s.now().Unix() > int64(a.Expires) {
		return a, errInvalidAssertion
	}
	return a, nil
}
