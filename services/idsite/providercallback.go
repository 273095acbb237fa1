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

// ProviderResponse is a browser that a provider has sent back.
type ProviderResponse struct {
	State            secure.Secret
	Code             secure.Secret
	Error            string // RFC 6749, section 4.1.2.1
	ErrorDescription string
	Token            secure.Secret // of twitter: the request token
	Verifier         secure.Secret // of twitter
	Denied           bool          // of twitter: the user refused
	Browser          secure.Secret // cookie
}

var errProviderState = apierr.BadRequest.
	Because("state is that of no login of this browser, or the login has ended or has taken too long; begin again").
	Saying("This login has ended or has taken too long. Please begin again.")

// ProviderCallback answers GET /sso/provider: it returns the address where a browser
// continues after the redirect of its provider. A login that is refused leads back to the
// page.
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
	if apierr.From(err).Status >= 500 {
		return "", err
	}
	// The token is for the first step, whoever may have passed it in another browser.
	page.flow.AccountID, page.flow.IsNew = id.ID{}, false
	token, failed := page.Token(ctx)
	return s.pageOrigin(flow, site) + "/#/?failed=provider&jwt=" + token.Reveal(), failed
}

// consumeProviderLogin returns the login of a state, once, for the browser that began
// it.
func (s *Service) consumeProviderLogin(ctx context.Context, in ProviderResponse) (l store.ProviderLogin, err error) {
	at, _, err := s.verifyServiceToken(in.State, providerStatePurpose, "", "jti")
	if err != nil || len(in.Browser) != browserTokenLength {
		return l, errProviderState
	}
	ctx = caller.WithTenant(ctx, at.Tenant)
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		l, err = tx.ConsumeProviderLogin(ctx, at.Tenant, at.ID, secure.Digest(in.Browser), s.now())
		return err
	})
	if errors.Is(err, apierr.NotFound) {
		err = errProviderState
	}
	return l, err
}

// finishProviderLogin logs in the user that the provider has redirected back.
func (s *Service) finishProviderLogin(ctx context.Context, l store.ProviderLogin, in ProviderResponse) (applicationapi.ProviderLoggedIn, error) {
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

// providerRefusal is what a provider that refuses a login has said.
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

// AuthorizeCallback answers GET {client_url}/authorize/callback: it returns where the
// browser goes with the assertion of its login.
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

// errorCallback is where a browser goes whose login is refused (RFC 6749, section
// 4.1.2.1). A fault of the service stays here.
func errorCallback(returnTo string, state *string, err error) (string, error) {
	refusal := apierr.From(err)
	code, description := "invalid_request", refusal.Reason
	switch {
	case errors.Is(err, apierr.Unavailable):
		code, description = "temporarily_unavailable", refusal.Message
	case refusal.Status >= 500:
		return "", err
	case errors.Is(err, errResponseType):
		code = "unsupported_response_type"
	case errors.Is(err, apierr.ProviderRefused), errors.Is(err, apierr.ProviderIncomplete), errors.Is(err, apierr.ProviderOtherClient):
		code = "access_denied" // with what the provider has said
	case refusal.Code >= 7000 && refusal.Code < 8000 || errors.Is(err, apierr.Exists):
		code, description = "access_denied", refusal.Message
	}
	if description == "" {
		description = refusal.Message
	}
	return withState(withParameters(returnTo, "error="+code+"&error_description="+url.QueryEscape(description)), state), nil
}
