package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// relayStateType is the header stt of a default relay state.
const relayStateType = "assertion"

// NewRelayState is the body that asks for a default relay state. What it leaves out
// is decided at a login with the relay state.
type NewRelayState struct {
	CallbackURI  field.Text                       `json:"callbackUri"`
	Organization field.Of[directoryapi.StoreName] `json:"organization"`
	State        field.Text                       `json:"state"`
}

// NewDefaultRelayState makes the relay state that an identity provider sends along
// when it begins a login to an application by itself
// (docs/interface/applications.md#saml-policy). It is good for ever and any number
// of times. The tenant of its header leads to the key that signed it, its claim
// spUid to the application.
func (s *Service) NewDefaultRelayState(ctx context.Context, serviceProvider id.Ref, in NewRelayState) (secure.Secret, error) {
	a, err := s.SAMLPolicy(ctx, serviceProvider)
	if err != nil {
		return "", err
	}
	claims := secure.Claims{"spUid": serviceProvider.ID.String(), "jti": secure.Token(22).Reveal()}
	if in.CallbackURI.Given() {
		if err := wantCallback(a, in.CallbackURI.Value); err != nil {
			return "", err
		}
		claims["cb_uri"] = in.CallbackURI.Value
	}
	if in.Organization.Given() {
		organization, err := s.namedOrganization(ctx, a.TenantID, in.Organization)
		if err != nil {
			return "", err
		}
		claims["ash"] = s.base.To(organizations.name(), organization.ID)
	}
	if in.State.Given() {
		if _, err := field.Optional(in.State, "state", maxRelayState); err != nil {
			return "", err
		}
		claims["state"] = in.State.Value
	}
	key, err := s.relayKey(ctx, a.TenantID)
	if err != nil {
		return "", err
	}
	token, err := secure.SignJWT(map[string]any{"tid": a.TenantID.String(), "stt": relayStateType}, claims, key)
	return secure.Secret(token), err
}

// namedOrganization returns an organization of the tenant, mapped or not: whether
// the application reaches it shows at the login. One that the tenant does not have
// is apierr.Reference.
func (s *Service) namedOrganization(ctx context.Context, tenant id.ID, in field.Of[directoryapi.StoreName]) (store.Organization, error) {
	where, err := directoryapi.ReadStoreName(in, "organization")
	if err != nil {
		return store.Organization{}, err
	}
	o, err := s.organizationNamed(ctx, tenant, where)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("organization: there is no organization %q", where.Href+where.NameKey)
	}
	return o, err
}

// organizationNamed returns the organization of an href or a key, or
// apierr.NotFound.
func (s *Service) organizationNamed(ctx context.Context, tenant id.ID, where directoryapi.StoreName) (store.Organization, error) {
	if where.Href == "" {
		key, err := hostLabel(field.Some(where.NameKey), "nameKey")
		if err != nil {
			return store.Organization{}, apierr.NotFound // no organization has it
		}
		return s.store.OrganizationOfKey(ctx, tenant, key)
	}
	ref, ok := s.base.Parse(where.Href)
	if !ok || ref.Kind != organizations.name() {
		return store.Organization{}, apierr.NotFound
	}
	return s.store.Organization(ctx, tenant, ref.ID)
}

// relayKey returns the key that signs the default relay states of a tenant. It is
// made when it is first asked for.
func (s *Service) relayKey(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	sealed, err := s.store.SAMLRelayKey(ctx, tenant)
	if errors.Is(err, apierr.NotFound) {
		err = s.store.Tx(ctx, func(tx *store.Tx) error {
			return tx.KeepSAMLRelayKey(ctx, tenant, s.ring.Seal(secure.Token(43), relayKeyPurpose(tenant)), s.now())
		})
		if err == nil {
			sealed, err = s.store.SAMLRelayKey(ctx, tenant)
		}
	}
	if err != nil {
		return "", err
	}
	return s.ring.Open(sealed, relayKeyPurpose(tenant))
}

func relayKeyPurpose(tenant id.ID) string { return "application.relay/" + tenant.String() }
