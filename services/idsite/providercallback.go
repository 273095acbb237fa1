package idsite

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// ProviderResponse has the parameters and the cookie of a callback: of a browser that a provider
// has redirected back.
type ProviderResponse struct {
	State            secure.Secret
	Code             secure.Secret
	Error            string // RFC 6749, section 4.1.2.1
	ErrorDescription string
	Token            secure.Secret // oauth_token of twitter (OAuth 1.0a)
	Verifier         secure.Secret // oauth_verifier of twitter
	Denied           bool          // denied of twitter: the user refused
	Browsers         BrowserTokens // cookies of the logins that the browser has begun
}

// errProviderState is the error of a callback whose state is not valid for this browser.
var errProviderState = apierr.BadRequest.
	Because("state is that of no login of this browser, or the login has ended or has taken too long; begin again").
	Saying("This login has ended or has taken too long. Please begin again.")

// ProviderCallback is the callback (redirect_uri) of a social login that began at a hosted page,
// GET /sso/provider. It verifies the state, against login CSRF, logs the user in, and returns
// the address where the browser continues: the next step, or the application. After a refusal
// by the provider that is the login page.
func (s *Service) ProviderCallback(ctx context.Context, in ProviderResponse) (string, error) {
	l, err := s.consumeProviderLogin(ctx, in)
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, l.TenantID)
	flow, err := s.store.Flow(ctx, l.TenantID, l.FlowID)
	if errors.Is(err, apierr.NotFound) {
		return "", errProviderState
	}
	if err != nil {
		return "", err
	}
	site, err := s.store.TenantSite(ctx, l.TenantID)
	if err != nil {
		return "", err
	}
	if flow.FinishedAt != nil || !s.now().Before(flow.ExpiresAt) {
		return "", errSessionEnded
	}
	page := &PageAPI{s, flow, site}
	logged, err := s.finishProviderLogin(ctx, l, in)
	if err == nil {
		return page.finishExternalLogin(ctx, logged.LoggedIn, logged.IsNew)
	}
	if !apierr.IsRefusal(err) {
		return "", err
	}
	// The page begins again with the first step, even if that was passed elsewhere meanwhile.
	page.flow.AccountID, page.flow.IsNew = id.ID{}, false
	token, failed := page.Token(ctx)
	return s.pageOrigin(flow, site) + "/#/?failed=provider&jwt=" + token.Reveal(), failed
}

// consumeProviderLogin verifies the state of a callback and returns its login, once. It returns
// errProviderState for a state that this service has not signed, that has expired or was used,
// and for another browser than the one that began the login (login CSRF).
func (s *Service) consumeProviderLogin(ctx context.Context, in ProviderResponse) (l store.ProviderLogin, err error) {
	at, _, err := s.verifyServiceToken(in.State, providerStatePurpose, "", "jti")
	if err != nil {
		return l, errProviderState
	}
	ctx = caller.WithTenant(ctx, at.Tenant)
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		l, err = tx.ConsumeProviderLogin(ctx, at.Tenant, at.ID, in.Browsers.digests(), s.now())
		return err
	})
	if errors.Is(err, apierr.NotFound) {
		err = errProviderState
	}
	return l, err
}

// finishProviderLogin logs in the user whom the provider has redirected back with a code.
func (s *Service) finishProviderLogin(
	ctx context.Context, l store.ProviderLogin, in ProviderResponse,
) (applicationapi.ProviderLoggedIn, error) {
	if in.Error != "" || in.Denied {
		return applicationapi.ProviderLoggedIn{}, providerRefusal(in)
	}
	text, err := s.ring.Open(l.SecretsSealed, providerSecretsPurpose(l.ID))
	if err != nil {
		return applicationapi.ProviderLoggedIn{}, err
	}
	var begun directoryapi.SocialLoginBegun
	if err := json.Unmarshal([]byte(text.Reveal()), &begun); err != nil {
		return applicationapi.ProviderLoggedIn{}, err
	}
	login := directoryapi.SocialLogin{
		Provider: l.Provider, Code: in.Code, RedirectURI: l.RedirectURI, Verifier: begun.Verifier, Nonce: begun.Nonce,
		AccountStore: l.AccountStore, NameKey: l.NameKey,
	}
	if begun.RequestSecret != "" {
		login.AccessToken, login.AccessTokenSecret, login.Code = in.Token, begun.RequestSecret, in.Verifier
	}
	if login.Code == "" {
		return applicationapi.ProviderLoggedIn{}, apierr.ProviderRefused.Because("the provider sent the browser back without a code")
	}
	return s.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: l.TenantID, Application: l.ApplicationID, Directory: l.DirectoryID, Login: login,
	})
}

// providerRefusal is the error of a login that the provider or its user has refused.
func providerRefusal(in ProviderResponse) error {
	reason := in.Error
	if in.ErrorDescription != "" {
		reason += ": " + in.ErrorDescription
	}
	if in.Denied {
		reason = "the user refused"
	}
	return apierr.ProviderRefused.Because("the provider refused the login: %.300q", reason)
}

// AuthorizeCallback is the callback of a social login that began at /authorize of the Client API
// (authorize.go), GET {client_url}/authorize/callback. It verifies the state, logs the user in,
// and returns the address of the client with an assertion (jwtResponse) or an error.
func (c *ClientAPI) AuthorizeCallback(ctx context.Context, in ProviderResponse) (string, error) {
	l, err := c.svc.consumeProviderLogin(ctx, in)
	if err == nil && (l.ReturnTo == "" || l.TenantID != c.Application.TenantID || l.ApplicationID != c.Application.ID) {
		err = errProviderState
	}
	if err != nil {
		return "", err
	}
	location, err := c.authorizeCallback(ctx, l, in)
	if err != nil {
		return errorCallback(l.ReturnTo, l.State, err)
	}
	return location, nil
}

// authorizeCallback logs the user in and signs the assertion for the client.
func (c *ClientAPI) authorizeCallback(ctx context.Context, l store.ProviderLogin, in ProviderResponse) (string, error) {
	logged, err := c.svc.finishProviderLogin(ctx, l, in)
	if err != nil {
		return "", err
	}
	now, base := c.svc.now(), c.svc.cfg.Base
	claims := secure.Claims{
		"iss": base.To("applications", l.ApplicationID), "sub": base.To("accounts", logged.Account.ID), "aud": "",
		"iat": now.Unix(), "exp": now.Add(assertionTTL).Unix(), "jti": id.New(now).String(), "irt": l.ID.String(),
		"isNewSub": logged.IsNew, "status": authenticated, "cb_uri": l.ReturnTo,
	}
	if l.State != nil {
		claims["state"] = *l.State
	}
	if !logged.Organization.IsZero() {
		claims["org"] = base.To("organizations", logged.Organization)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := c.svc.peers.OAuth.SignAssertion(ctx, oauthapi.SignAssertion{Tenant: l.TenantID, Application: l.ApplicationID, Claims: text})
	if err != nil {
		return "", err
	}
	return withAssertion(withState(l.ReturnTo, l.State), signed.Token), nil
}

// errorCallback returns the address of the client with the error of a login (RFC 6749, section
// 4.1.2.1). An error of this service (5xx) is returned as an error and does not go to the client.
func errorCallback(returnTo string, state *string, err error) (string, error) {
	refusal := apierr.From(err)
	code, description := "invalid_request", refusal.Reason
	switch {
	case errors.Is(err, apierr.Unavailable):
		code, description = "temporarily_unavailable", refusal.Message
	case !apierr.IsRefusal(err):
		return "", err
	case errors.Is(err, errResponseType):
		code = "unsupported_response_type"
	case errors.Is(err, apierr.ProviderRefused), errors.Is(err, apierr.ProviderIncomplete), errors.Is(err, apierr.ProviderOtherClient):
		code = "access_denied" // with the reason of the provider
	case refusal.Code >= 7000 && refusal.Code < 8000 || errors.Is(err, apierr.Exists):
		code, description = "access_denied", refusal.Message
	}
	if description == "" {
		description = refusal.Message
	}
	return withState(withParameters(returnTo, "error="+code+"&error_description="+url.QueryEscape(description)), state), nil
}
