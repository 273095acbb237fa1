package idsite

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// signOnTokenKind is the header stt of the token that brings a browser from a Client API
// to the hosted login.
const signOnTokenKind = "signOn"

// SignOn is a browser that a SAML service provider has sent to the Client API of an
// application, which is its identity provider
// (docs/interface/applications.md#saml-identity-provider).
type SignOn struct {
	Request    string        // SAMLRequest
	RelayState string        // of the service provider
	Query      string        // as the browser brought it; empty: it came by HTTP-POST
	Browser    secure.Secret // cookie that binds the login to the browser
}

// BeginSignOn verifies the request and returns where the login begins, with the
// cookie of the browser.
func (c *ClientAPI) BeginSignOn(ctx context.Context, self string, in SignOn) (Redirect, error) {
	s, tenant := c.svc, c.Application.TenantID
	verified, err := s.peers.Application.VerifySAMLRequest(ctx, applicationapi.VerifySAMLRequest{
		Tenant: tenant, Application: c.Application.ID, Request: in.Request, RelayState: in.RelayState, Query: in.Query,
	})
	if err != nil {
		return Redirect{}, err
	}
	browser := browserTokenOrNew(in.Browser)
	now := s.now()
	flow := store.Flow{
		TenantID: tenant, ID: id.New(now), ApplicationID: c.Application.ID, FactorTypes: []string{}, CreatedAt: now, ExpiresAt: now.Add(samlLoginTTL),
		SAMLRequest: &store.SAMLRequest{
			ServiceProvider: verified.ServiceProvider, ID: verified.ID, RelayState: verified.RelayState,
			ForceAuthn: verified.ForceAuthn, IsPassive: verified.IsPassive, Browser: secure.Digest(browser),
		},
	}
	if c.Config.MFARequired {
		flow.FactorTypes = slices.Clone(c.Config.FactorTypes)
	}
	flow.RequestID, flow.CallbackURI = flow.ID.String(), self+"?flow="+flow.ID.String()
	if err := s.insertFlow(ctx, flow); err != nil {
		return Redirect{}, err
	}
	token, err := s.signServiceToken(tenant, relayStatePurpose, signOnTokenKind, secure.Claims{"flow": flow.ID.String()})
	return Redirect{Location: s.cfg.Base.Host() + "/sso?signOn=" + token.Reveal(), Browser: browser}, err
}

// ContinueSignOn answers GET /sso?signOnRedirect=: the flow goes on in the browser that is
// here, which may have a session. A token is good once.
func (s *Service) ContinueSignOn(ctx context.Context, v BrowserRequest) (Redirect, error) {
	_, f, err := s.verifyRelayState(ctx, signOnTokenKind, v.Token)
	if errors.Is(err, errNotServiceToken) || errors.Is(err, apierr.NotFound) || err == nil && f.SAMLRequest == nil {
		err = apierr.BadRequest.Because("signOn is not the token of a login that goes on")
	}
	if err != nil {
		return Redirect{}, err
	}
	ctx = caller.WithTenant(ctx, f.TenantID)
	browser := browserTokenOrNew(v.Browser)
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
	location, err := s.signOnRedirect(ctx, f, site, v.Session)
	return Redirect{Location: location, Browser: browser}, err
}

// signOnRedirect returns where a login goes: back, where the session of the browser is
// enough or no page may be shown, else to the hosted pages.
func (s *Service) signOnRedirect(ctx context.Context, f store.Flow, site store.Site, cookie secure.Secret) (string, error) {
	if !f.SAMLRequest.ForceAuthn {
		if location, err := s.logInBySession(ctx, &f, site, cookie); location != "" || err != nil {
			return location, err
		}
	}
	if f.SAMLRequest.IsPassive {
		return f.CallbackURI, nil
	}
	token, err := s.newPageToken(ctx, f, site)
	return s.pageOrigin(f, site) + "/#/?jwt=" + token.Reveal(), err
}

// SignOnResponse is the answer to a service provider, which a browser posts to it.
type SignOnResponse struct {
	ConsumerURL string
	Response    secure.Secret // SAMLResponse
	RelayState  *string
}

// FinishSignOn returns the answer to the service provider of a flow, once, to the
// browser that brought its request. Nobody is logged in by a flow that has not
// ended: the answer says so. One that has ended was ended by the browser that comes with
// its assertion; another that brought the request does not get the answer.
func (c *ClientAPI) FinishSignOn(ctx context.Context, name string, browser, assertion secure.Secret) (SignOnResponse, error) {
	s, errFlow := c.svc, apierr.BadRequest.Because(
		"the login has ended, has timed out, or began in another browser; begin again at the application")
	flowID, err := id.Parse(name)
	if err != nil {
		return SignOnResponse{}, errFlow
	}
	f, err := s.store.Flow(ctx, c.Application.TenantID, flowID)
	if errors.Is(err, apierr.NotFound) || err == nil && (f.ApplicationID != c.Application.ID || f.SAMLRequest == nil ||
		!s.now().Before(f.ExpiresAt) || subtle.ConstantTimeCompare(f.SAMLRequest.Browser, secure.Digest(browser)) != 1) {
		return SignOnResponse{}, errFlow
	}
	if err != nil {
		return SignOnResponse{}, err
	}
	if f.FinishedAt != nil { // its callback names the flow
		a, err := s.verifyAssertion(ctx, assertion)
		if errors.Is(err, apierr.BadRequest) || err == nil && (a.tenant != f.TenantID || a.Callback != f.CallbackURI) {
			return SignOnResponse{}, errFlow
		}
		if err != nil {
			return SignOnResponse{}, err
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
		Tenant: f.TenantID, Application: f.ApplicationID, ServiceProvider: f.SAMLRequest.ServiceProvider, RequestID: f.SAMLRequest.ID,
	}
	switch {
	case f.FinishedAt != nil && !f.AccountID.IsZero():
		answer.Account = f.AccountID
	case f.SAMLRequest.IsPassive:
		answer.Reason, answer.Message = saml.NoPassive, "The user has no session."
	default:
		answer.Reason, answer.Message = saml.AuthnFailed, "The user has not logged in."
	}
	signed, err := s.peers.Application.SAMLResponse(ctx, answer)
	if refusal := apierr.From(err); err != nil && refusal.Status < 500 && !answer.Account.IsZero() {
		answer.Account, answer.Reason, answer.Message = id.ID{}, saml.RequestDenied, "The account may not log in to the application."
		signed, err = s.peers.Application.SAMLResponse(ctx, answer)
	}
	return SignOnResponse{ConsumerURL: signed.ConsumerURL, Response: signed.Response, RelayState: f.SAMLRequest.RelayState}, err
}
