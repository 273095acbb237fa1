package idsite

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/servicetoken"
	"github.com/doorward/doorward/services/idsite/store"
)

// The deployment as a SAML identity provider (IdP): it answers the AuthnRequest of a service
// provider by a hosted login. Requests are verified and responses signed in
// services/application/saml/response.go. Logins at other identity providers are in saml.go.

// signOnToken is the token that leads a browser from the Client API to the hosted login. It is in the query
// parameter signOn, and is no RelayState.
var signOnToken = servicetoken.Kind{Purpose: "idsite.relay", STT: "signOn", ID: "flow"}

// SignOn is the request of a SAML service provider (AuthnRequest), which a browser has brought to
// the Client API of the application that is its identity provider
// (docs/interface/applications.md#saml-identity-provider).
type SignOn struct {
	Request    string // SAMLRequest
	RelayState string // of the service provider
	Query      string // the whole query, whose signature is verified; "" for a request by HTTP-POST
}

// BeginSignOn verifies the AuthnRequest of a service provider and begins a flow for it. It
// redirects the browser to the hosted login (ContinueSignOn), with a cookie for FinishSignOn.
func (c *ClientAPI) BeginSignOn(ctx context.Context, self string, in SignOn) (Redirect, error) {
	s, tenant := c.svc, c.Application.TenantID
	verified, err := s.peers.Application.VerifySAMLRequest(ctx, applicationapi.VerifySAMLRequest{
		Tenant: tenant, Application: c.Application.ID, Request: in.Request, RelayState: in.RelayState, Query: in.Query,
		Address: self,
	})
	if err != nil {
		return Redirect{}, err
	}
	browser, flow := journey.NewBrowserToken(), s.Journey.NewSAMLFlow(c.ref())
	flow.CallbackURI = self + "?flow=" + flow.ID.String()
	flow.SAMLRequest = &store.SAMLRequest{
		ServiceProvider: verified.ServiceProvider, ID: verified.ID, RelayState: verified.RelayState,
		ForceAuthn: verified.ForceAuthn, IsPassive: verified.IsPassive, Browser: secure.Digest(browser),
	}
	if c.Config.MFARequired {
		flow.FactorTypes = slices.Clone(c.Config.FactorTypes)
	}
	if err := s.Journey.BeginAnonymous(ctx, flow); err != nil {
		return Redirect{}, err
	}
	token, err := signOnToken.Sign(s.ring, tenant, secure.Claims{"flow": flow.ID.String()})
	return Redirect{Location: s.cfg.Base.Host() + "/sso?signOn=" + token.Reveal(), Browser: browser}, err
}

// ContinueSignOn answers GET /sso?signOn=: it binds the flow to the browser, which may have a
// session of single sign-on, and continues the login. A token is valid once.
func (s *Service) ContinueSignOn(ctx context.Context, in BrowserRequest) (Redirect, error) {
	errToken := apierr.BadRequest.Because("signOn is not the token of a login that goes on")
	token, err := signOnToken.Verify(s.ring, in.Token)
	if err != nil {
		return Redirect{}, errToken
	}
	if err := s.Journey.CheckTenant(ctx, token.About.Tenant); err != nil {
		return Redirect{}, err
	}
	ctx = caller.WithTenant(ctx, token.About.Tenant)
	f, err := s.store.Flow(ctx, token.About.Tenant, token.About.ID)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return Redirect{}, err
	}
	if err != nil || f.SAMLRequest == nil {
		return Redirect{}, errToken
	}
	browser := journey.NewBrowserToken()
	f.Browser = secure.Digest(browser)
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.BindBrowser(ctx, f, f.Browser, s.now()) })
	if errors.Is(err, apierr.NotFound) {
		err = apierr.BadRequest.Because("the login has begun in a browser already, or has timed out")
	}
	if err != nil {
		return Redirect{}, err
	}
	site, err := s.store.TenantSite(ctx, f.TenantID)
	if err != nil {
		return Redirect{}, err
	}
	location, err := s.signOnRedirect(ctx, f, site, in.Session)
	return Redirect{Location: location, Browser: browser}, err
}

// signOnRedirect returns where the browser goes: back to the Client API, where the session of the
// browser is enough or the service provider allows no page (IsPassive), else to the hosted pages.
func (s *Service) signOnRedirect(ctx context.Context, f store.Flow, site store.Site,
	cookie secure.Secret) (string, error) {
	if !f.SAMLRequest.ForceAuthn {
		if location, err := s.logInBySession(ctx, &f, site, cookie); location != "" || err != nil {
			return location, err
		}
	}
	if f.SAMLRequest.IsPassive {
		return f.CallbackURI, nil
	}
	return s.beginPage(ctx, f, site, "/")
}

// SignOnResponse is the SAML response to a service provider, which the browser posts to
// ConsumerURL.
type SignOnResponse struct {
	ConsumerURL string
	Response    secure.Secret // SAMLResponse
	RelayState  *string
}

// FinishSignOn returns the SAML response to the service provider of a flow, once, to the browser
// that has brought the AuthnRequest. For a flow that has not ended the response says that no user
// has logged in. For a flow that has ended the browser must also have the assertion: otherwise
// an attacker could begin the flow and get the response to the login of a victim.
func (c *ClientAPI) FinishSignOn(
	ctx context.Context, name string, browsers BrowserTokens, assertion secure.Secret,
) (SignOnResponse, error) {
	s, errFlow := c.svc, apierr.BadRequest.Because(
		"the login has ended, has timed out, or began in another browser; begin again at the application")
	flowID, err := id.Parse(name)
	if err != nil {
		return SignOnResponse{}, errFlow
	}
	f, err := s.store.Flow(ctx, c.Application.TenantID, flowID)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return SignOnResponse{}, err
	}
	if err != nil || f.ApplicationID != c.Application.ID || f.SAMLRequest == nil || !s.now().Before(f.ExpiresAt) ||
		!browsers.Include(f.SAMLRequest.Browser) {
		return SignOnResponse{}, errFlow
	}
	if f.FinishedAt != nil { // the callback names the flow, so that only its assertion has this callback
		a, err := s.verifyAssertion(ctx, assertion)
		if err != nil && !errors.Is(err, apierr.BadRequest) {
			return SignOnResponse{}, err
		}
		if err != nil || a.tenant != f.TenantID || a.Callback != f.CallbackURI {
			return SignOnResponse{}, errFlow
		}
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.ConsumeSAMLRequest(ctx, f, s.now()) })
	if errors.Is(err, apierr.NotFound) {
		return SignOnResponse{}, errFlow
	}
	if err != nil {
		return SignOnResponse{}, err
	}
	answer := applicationapi.SAMLAnswer{
		Tenant: f.TenantID, Application: f.ApplicationID, ServiceProvider: f.SAMLRequest.ServiceProvider,
		RequestID: f.SAMLRequest.ID,
	}
	switch {
	case f.FinishedAt != nil && !f.AccountID.IsZero():
		answer.Account, answer.SessionIndex, answer.AuthenticatedAt = f.AccountID, f.SessionIndex, f.ProvedAt()
	case f.SAMLRequest.IsPassive:
		answer.Reason, answer.Message = saml.NoPassive, "The user has no session."
	default:
		answer.Reason, answer.Message = saml.AuthnFailed, "The user has not logged in."
	}
	signed, err := s.peers.Application.SAMLResponse(ctx, answer)
	if apierr.IsRefusal(err) && !answer.Account.IsZero() {
		answer.Account, answer.Reason = id.ID{}, saml.RequestDenied
		answer.Message = "The account may not log in to the application."
		signed, err = s.peers.Application.SAMLResponse(ctx, answer)
	}
	return SignOnResponse{ConsumerURL: signed.ConsumerURL, Response: signed.Response,
		RelayState: f.SAMLRequest.RelayState}, err
}
