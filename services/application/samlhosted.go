package application

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
)

// SAMLEntityID is the name in SAML of an application as an identity provider.
func SAMLEntityID(name alias.Alias, application id.ID) string {
	return name.Spell("urn:service:application:") + application.String() + ":provider:idp"
}

// SAMLRelayState reads a relay state that NewDefaultRelayState made.
func (s *Service) SAMLRelayState(ctx context.Context, in applicationapi.SAMLRelayState) (out applicationapi.SAMLDestination, err error) {
	unknown := apierr.SAMLMalformed.Because("the RelayState is none of this service")
	var tenant id.ID
	_, claims, err := secure.ParseJWT(in.Token.Reveal(), func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
		name, _ := header["tid"].(string)
		var err error
		if tenant, err = id.Parse(name); err != nil || header["stt"] != relayStateType {
			return "", unknown
		}
		sealed, err := s.store.SAMLRelayKey(caller.WithTenant(ctx, tenant), tenant)
		if err != nil {
			return "", err
		}
		return s.ring.Open(sealed, relayKeyPurpose(tenant))
	})
	if err != nil {
		return out, unknown
	}
	text := func(name string) string { value, _ := claims[name].(string); return value }
	policy, err := id.Parse(text("spUid"))
	if err != nil {
		return out, unknown
	}
	out.Application, err = s.SAMLPolicy(caller.WithTenant(ctx, tenant), id.Ref{Tenant: tenant, ID: policy})
	if errors.Is(err, apierr.NotFound) {
		return out, unknown
	}
	out.CallbackURI, out.AccountStore = text("cb_uri"), href.Link{Href: text("ash")}
	if state, ok := claims["state"].(string); ok {
		out.State = &state
	}
	return out, err
}

// SAMLApplication returns the oldest application that a directory is mapped to.
func (s *Service) SAMLApplication(ctx context.Context, directory directoryapi.Ref) (applicationapi.Application, error) {
	page, err := s.ListDirectoryApplications(ctx, directory, list.Query{Limit: 1, Order: []list.Order{{Attribute: "createdAt"}}})
	if err != nil {
		return applicationapi.Application{}, err
	}
	if len(page.Items) == 0 {
		return applicationapi.Application{}, apierr.NotFound
	}
	return page.Items[0], nil
}

// hostedIdentityProvider returns the identity provider of an application.
func (s *Service) hostedIdentityProvider(ctx context.Context, tenant, application id.ID) (SAMLIdentityProvider, error) {
	a, err := s.store.Application(ctx, tenant, application)
	if err != nil {
		return SAMLIdentityProvider{}, err
	}
	return s.SAMLIdentityProvider(ctx, id.Ref{Tenant: tenant, ID: a.SAMLPolicyID})
}

// VerifySAMLRequest verifies a request that a browser brought.
func (s *Service) VerifySAMLRequest(ctx context.Context, in applicationapi.VerifySAMLRequest) (out applicationapi.SAMLRequest, err error) {
	identity, err := s.hostedIdentityProvider(ctx, in.Tenant, in.Application)
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
	if to := verified.request.Destination; to != "" && to != identity.LoginURL {
		return out, apierr.Format.Because("samlRequest has the Destination %q, and this is %q", to, identity.LoginURL)
	}
	return applicationapi.SAMLRequest{
		ServiceProvider: verified.ServiceProvider, ID: verified.RequestID, RelayState: verified.RelayState,
		ForceAuthn: verified.request.ForceAuthn, IsPassive: verified.request.IsPassive,
	}, nil
}

// SAMLResponse signs the response to a request that was verified.
func (s *Service) SAMLResponse(ctx context.Context, in applicationapi.SAMLAnswer) (out applicationapi.SAMLResponse, err error) {
	identity, err := s.hostedIdentityProvider(ctx, in.Tenant, in.Application)
	if err != nil {
		return out, err
	}
	provider, err := s.store.SAMLServiceProvider(ctx, in.Tenant, in.ServiceProvider)
	if err != nil {
		return out, err
	}
	if _, err := s.usableRegistration(ctx, identity, provider); err != nil {
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
			Issuer: SAMLEntityID(s.Alias(), identity.ApplicationID), ConsumerURL: out.ConsumerURL, InResponseTo: in.RequestID,
			Reason: in.Reason, Message: in.Message, Now: s.now(),
		}.Sign(pair, identity.SignatureAlgorithm)
		out.Response = secure.Secret(base64.StdEncoding.EncodeToString(signed))
		return out, err
	}
	account, err := s.admittedAccount(ctx, identity, in.Account)
	if err != nil {
		return out, err
	}
	signed, err = s.samlResponse(ctx, identity, provider, account, in.RequestID)
	out.Response = secure.Secret(base64.StdEncoding.EncodeToString(signed))
	return out, err
}
