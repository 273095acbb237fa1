package idsite

import (
	"context"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// The redirects of logins and logouts at SAML identity providers (journey/saml.go): this deployment is the SAML
// service provider. The deployment as a SAML identity provider is in samlsignon.go.

// BeginSAML answers GET {app}/saml/sso/idpRedirect: it begins a login at the identity provider of a
// directory (SP-initiated) for a token that a client has signed
// (docs/interface/applications.md#saml-policy). It returns the address of the identity provider
// with an AuthnRequest.
func (s *Service) BeginSAML(ctx context.Context, application id.ID, token secure.Secret) (string, error) {
	r, err := s.verifySAMLInitiation(ctx, application, token)
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	if err := r.validate(s.now()); err != nil {
		return "", err
	}
	flow := s.Journey.NewSAMLFlow(id.Ref{Tenant: r.tenant, ID: application})
	if flow.CallbackURI, err = journey.ChooseCallback(r.application, r.stringClaim("cb_uri")); err != nil {
		return "", err
	}
	where := r.accountStore()
	directory, err := s.Journey.SAMLDirectory(ctx, where, r.stringClaim("ash"))
	if err != nil {
		return "", err
	}
	flow.KeyID, flow.RequestID = r.key, r.stringClaim("jti")
	flow.NameKey, flow.AccountStore = where.NameKey, where.AccountStore.Href
	flow.State, flow.StateJSON = r.state()
	if err := s.Journey.Begin(ctx, flow); err != nil {
		return "", err
	}
	return s.Journey.BeginAtSAML(ctx, flow, directory, false)
}

// verifySAMLInitiation verifies the token (accessToken) that begins a login. Its issuer is the
// application, or the API key that has signed it, with the application as the subject.
func (s *Service) verifySAMLInitiation(ctx context.Context, application id.ID, token secure.Secret) (request, error) {
	verified, err := s.verifySignature(ctx, "accessToken", token)
	if err != nil {
		return request{}, err
	}
	r, err := parseRequest("accessToken", verified, verified.Claims)
	if err != nil {
		return r, err
	}
	if r.claims["err"] != nil { // an error assertion, which this service signs without stt
		return r, apierr.BadRequest.Because("accessToken is a token of another kind: its claims have err")
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	issuer := r.stringClaim("iss")
	if issuer == r.key {
		issuer = r.stringClaim("sub")
	}
	ref, ok := s.cfg.Base.Parse(issuer)
	if !ok || ref.Kind != "applications" || ref.ID != application {
		return r, apierr.BadRequest.Because(
			"iss must be the href of the application, or the id of the API key with the href as sub")
	}
	r.application, err = s.peers.Application.Application(ctx, id.Ref{Tenant: r.tenant, ID: application})
	return r, err
}

// FinishSAML answers POST /directories/{id}/saml/sso/post, the assertion consumer service (ACS): it
// takes a SAML response with its RelayState, logs the user in, and returns the address where the
// browser goes. An error goes to the callback, if that can be trusted.
func (s *Service) FinishSAML(ctx context.Context, directory id.ID, response, relay secure.Secret) (string, error) {
	from, err := s.Journey.ReadRelayState(ctx, directory, relay)
	if err != nil {
		return "", err
	}
	f := &from.Flow
	if err := s.Journey.CheckTenant(ctx, f.TenantID); err != nil {
		return "", err
	}
	if from.RequestID != "" && !from.IsHosted && f.KeyID == "" {
		// The login began at /authorize, which returns its state in the query too.
		f.CallbackURI = withState(f.CallbackURI, f.State)
	}
	begun, ctx := *f, caller.WithTenant(ctx, f.TenantID)
	location, err := s.finishSAML(ctx, directory, &from, response)
	if err != nil && from.IsCallbackTrusted {
		return s.errorRedirect(ctx, begun, err)
	}
	return location, err
}

// finishSAML logs the user of a SAML response in, and returns where the browser goes.
func (s *Service) finishSAML(ctx context.Context, directory id.ID, from *journey.SAMLCallback,
	response secure.Secret) (string, error) {
	result, err := s.Journey.FinishAtSAML(ctx, directory, from, response)
	if err != nil {
		return "", err
	}
	if !from.IsHosted {
		return s.assertionRedirect(ctx, from.Flow, store.Site{}, outcome{
			status: authenticated, isNew: result.IsNew, issuer: s.cfg.Base.To("applications", from.Flow.ApplicationID),
		})
	}
	site, err := s.store.TenantSite(ctx, from.Flow.TenantID)
	if err != nil {
		return "", err
	}
	return s.page(from.Flow, site).resume(ctx, result)
}

// FinishSAMLLogout answers /sso/logout with RelayState and SAMLResponse, the end of a single
// logout (SLO). It returns the callback of the logout.
func (s *Service) FinishSAMLLogout(ctx context.Context, relay, response secure.Secret) (string, error) {
	f, err := s.Journey.FinishSAMLLogout(ctx, relay, response)
	if err != nil {
		return "", err
	}
	if err := s.Journey.CheckTenant(ctx, f.TenantID); err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, f.TenantID)
	site, err := s.store.TenantSite(ctx, f.TenantID)
	if err != nil {
		return "", err
	}
	return s.assertionRedirect(ctx, f, site, outcome{status: loggedOut})
}
