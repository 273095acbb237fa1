package saml

import (
	"context"
	"encoding/base64"
	"slices"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
)

// EntityID returns the entity id of an application as a SAML identity provider.
func EntityID(name alias.Alias, application id.ID) string {
	return name.Spell("urn:service:application:") + application.String() + ":provider:idp"
}

// maxCallbackApplications is how many applications of a directory are searched for a callback.
const maxCallbackApplications = 100

// SAMLApplication returns the application of an IdP-initiated SAML login without a RelayState of this
// service: the oldest application that the directory is mapped to and that lists the callback, else the
// oldest of all, or apierr.NotFound.
func (s *Service) SAMLApplication(ctx context.Context,
	in applicationapi.SAMLApplication) (applicationapi.Application, error) {
	query := list.Query{Limit: 1, Order: []list.Order{{Attribute: "createdAt"}}}
	if in.CallbackURI != "" {
		query.Limit = maxCallbackApplications
	}
	page, err := s.core.ListDirectoryApplications(ctx, in.Directory, query)
	if err != nil {
		return applicationapi.Application{}, err
	}
	if len(page.Items) == 0 {
		return applicationapi.Application{}, apierr.NotFound
	}
	at := slices.IndexFunc(page.Items, func(a applicationapi.Application) bool {
		return in.CallbackURI != "" && redirecturi.IsListed(in.CallbackURI, a.AuthorizedCallbackURIs)
	})
	return page.Items[max(at, 0)], nil
}

// identityProviderOfApplication returns the SAML identity provider of an application.
func (s *Service) identityProviderOfApplication(ctx context.Context, tenant,
	application id.ID) (IdentityProvider, error) {
	a, err := s.store.Application(ctx, tenant, application)
	if err != nil {
		return IdentityProvider{}, err
	}
	return s.SAMLIdentityProvider(ctx, id.Ref{Tenant: tenant, ID: a.SAMLPolicyID})
}

// VerifySAMLRequest verifies a SAML authentication request (AuthnRequest) that a browser has
// brought from a service provider to the hosted login. Single sign-on itself is in
// services/idsite/samlsignon.go.
func (s *Service) VerifySAMLRequest(ctx context.Context,
	in applicationapi.VerifySAMLRequest) (out applicationapi.SAMLRequest, err error) {
	identity, err := s.identityProviderOfApplication(ctx, in.Tenant, in.Application)
	if err != nil {
		return out, err
	}
	if !field.IsText(in.RelayState) {
		return out, apierr.Format.Because("the RelayState must be UTF-8 without the character NUL")
	}
	body := AuthnVerificationRequest{SAMLRequest: field.Some(in.Request)}
	if in.RelayState != "" {
		body.RelayState = field.Some(in.RelayState)
	}
	if in.Query != "" {
		body.QueryString = field.Some(in.Query)
	}
	verified, err := s.VerifyAuthnRequest(ctx, id.Ref{Tenant: in.Tenant, ID: identity.ID}, body)
	if err != nil {
		return out, err
	}
	if to := verified.request.Destination; to != "" && to != identity.LoginURL && to != in.Address {
		return out, apierr.Format.Because("samlRequest has the Destination %q, and this is %q", to, identity.LoginURL)
	}
	return applicationapi.SAMLRequest{
		ServiceProvider: verified.ServiceProvider, ID: verified.RequestID, RelayState: verified.RelayState,
		ForceAuthn: verified.request.ForceAuthn, IsPassive: verified.request.IsPassive,
	}, nil
}

// SAMLResponse signs the response to a request that was verified: for an account that has
// logged in, or a refusal. The assertion is made in response.go.
func (s *Service) SAMLResponse(ctx context.Context,
	in applicationapi.SAMLAnswer) (out applicationapi.SAMLResponse, err error) {
	identity, err := s.identityProviderOfApplication(ctx, in.Tenant, in.Application)
	if err != nil {
		return out, err
	}
	provider, err := s.store.SAMLServiceProvider(ctx, in.Tenant, in.ServiceProvider)
	if err != nil {
		return out, err
	}
	if _, err := s.enabledRegistration(ctx, identity, provider); err != nil {
		return out, err
	}
	out.ConsumerURL = provider.AssertionConsumerServiceURL
	var signed []byte
	if in.Account.IsZero() {
		pair, err := s.samlKeyPair(identity)
		if err != nil {
			return out, err
		}
		signed, err = saml.Refusal{
			Issuer: EntityID(s.core.Alias(), identity.ApplicationID), ConsumerURL: out.ConsumerURL,
			InResponseTo: in.RequestID,
			Reason:       in.Reason, Message: in.Message, Now: s.now(),
		}.Sign(pair, identity.SignatureAlgorithm)
		out.Response = secure.Secret(base64.StdEncoding.EncodeToString(signed))
		return out, err
	}
	account, err := s.accountForResponse(ctx, identity, in.Account)
	if err != nil {
		return out, err
	}
	signed, err = s.signSAMLResponse(ctx, identity, provider, account, saml.Response{
		InResponseTo: in.RequestID, AuthenticatedAt: in.AuthenticatedAt, SessionIndex: in.SessionIndex, Now: s.now(),
	})
	out.Response = secure.Secret(base64.StdEncoding.EncodeToString(signed))
	return out, err
}
