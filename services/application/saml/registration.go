package saml

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// maxRelayState is the limit of a RelayState, in characters. It is enough for a URL or a token.
const maxRelayState = 4000

// NewRegistration is the body that registers a service provider with the
// identity provider of the path
// (docs/interface/applications.md#saml-identity-provider).
type NewRegistration struct {
	ServiceProvider  field.Link `json:"serviceProvider"`
	IdentityProvider field.Link `json:"identityProvider"`
	RegistrationChange
}

// RegistrationChange is the body that updates a registration. The service provider and the
// identity provider of a registration cannot be changed.
type RegistrationChange struct {
	Status            field.Text `json:"status"`
	DefaultRelayState field.Text `json:"defaultRelayState"`
}

// apply writes the members of a body into a registration and checks them.
func (in RegistrationChange) apply(r *store.SAMLRegistration, isNew bool) (err error) {
	var errs field.Errors
	errs.Enum(&r.Status, in.Status.NullIsAbsent(isNew), "status", directoryapi.Enabled, directoryapi.Disabled)
	errs.Optional(&r.DefaultRelayState, in.DefaultRelayState, "defaultRelayState", maxRelayState)
	return errs.First()
}

// SAMLRegistration returns a registration, or apierr.NotFound.
func (s *Service) SAMLRegistration(ctx context.Context, at id.Ref) (store.SAMLRegistration, error) {
	return s.store.SAMLRegistration(ctx, at)
}

// ListSAMLRegistrations returns a page of the registrations with an identity provider, or
// apierr.NotFound for an unknown identity provider.
func (s *Service) ListSAMLRegistrations(
	ctx context.Context, provider id.Ref, query list.Query,
) (list.Page[store.SAMLRegistration], error) {
	return list.PageOf(ctx, s.SAMLIdentityProvider, s.store.ListSAMLRegistrations, provider, query)
}

// ListSAMLServiceProvidersOfIdentityProvider returns a page of the service providers that are
// registered with an identity provider, or apierr.NotFound for an unknown identity provider.
func (s *Service) ListSAMLServiceProvidersOfIdentityProvider(
	ctx context.Context, provider id.Ref, query list.Query,
) (list.Page[store.SAMLServiceProvider], error) {
	return list.PageOf(ctx, s.SAMLIdentityProvider, s.store.ListSAMLServiceProvidersOfIdentityProvider, provider, query)
}

// CreateSAMLRegistration registers a service provider with an identity provider. A service
// provider that the tenant does not have is apierr.Reference, and so is another identity
// provider than that of the path. A second registration of the two is apierr.SAMLRegistration.
func (s *Service) CreateSAMLRegistration(ctx context.Context, provider id.Ref,
	in NewRegistration) (store.SAMLRegistration, error) {
	now := s.now()
	r := store.SAMLRegistration{
		TenantID: provider.Tenant, ID: id.New(now), IdentityProviderID: provider.ID, Status: directoryapi.Enabled,
		CreatedAt:  now,
		ModifiedAt: now,
	}
	if _, err := s.SAMLIdentityProvider(ctx, provider); err != nil {
		return r, err
	}
	if !in.ServiceProvider.Given() { // Invalid in place of Required, the error of other bodies
		return r, apierr.Invalid.Because("serviceProvider is required; it cannot be null")
	}
	if err := in.apply(&r, true); err != nil {
		return r, err
	}
	if err := s.readProviders(&r, in); err != nil {
		return r, err
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.LockSAMLServiceProvider(ctx, r.TenantID, r.ServiceProviderID)
		if errors.Is(err, apierr.NotFound) {
			return apierr.Reference.Because("serviceProvider: there is no registered service provider %q",
				in.ServiceProvider.Value.Href)
		}
		if err != nil {
			return err
		}
		return tx.InsertSAMLRegistration(ctx, r)
	})
	if errors.Is(err, apierr.Exists) {
		return r, apierr.SAMLRegistration.Because(
			"the service provider is registered with the identity provider already")
	}
	return r, err
}

// readProviders parses the links to the service provider and the identity provider.
func (s *Service) readProviders(r *store.SAMLRegistration, in NewRegistration) error {
	service, err := s.core.ParseReference(in.ServiceProvider, "serviceProvider", "registeredSamlServiceProviders")
	if err != nil {
		return err
	}
	r.ServiceProviderID = service.ID
	if !in.IdentityProvider.Given() {
		return nil
	}
	identity, err := s.core.ParseReference(in.IdentityProvider, "identityProvider", "samlIdentityProviders")
	if err == nil && identity.ID != r.IdentityProviderID {
		err = apierr.Reference.Because("identityProvider: %q is not the identity provider of the path",
			in.IdentityProvider.Value.Href)
	}
	return err
}

// UpdateSAMLRegistration changes the members that the body names.
func (s *Service) UpdateSAMLRegistration(ctx context.Context, at id.Ref,
	in RegistrationChange) (store.SAMLRegistration, error) {
	var r store.SAMLRegistration
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if r, err = tx.LockSAMLRegistration(ctx, at); err != nil {
			return err
		}
		if err := in.apply(&r, false); err != nil {
			return err
		}
		r.ModifiedAt = s.now()
		return tx.UpdateSAMLRegistration(ctx, r)
	})
	return r, err
}

// DeleteSAMLRegistration deletes a registration.
func (s *Service) DeleteSAMLRegistration(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSAMLRegistration(ctx, at) })
}
