package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// relayStateType is the header stt of a default relay state.
const relayStateType = "assertion"

// NewRelayState is the body that asks for a default relay state. What it leaves
// out is decided when somebody logs in with the relay state.
type NewRelayState struct {
	CallbackURI  field.Text                       `json:"callbackUri"`
	Organization field.Of[directoryapi.StoreName] `json:"organization"`
	State        field.Text                       `json:"state"`
}

// NewDefaultRelayState makes the relay state that an identity provider sends
// along when it begins a login to an application by itself (resolutions, section
// 4.10). It is good for ever and any number of times. The tenant of its header
// leads to the key that signed it, its claim spUid to the application.
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
		organization, err := s.namedOrganization(ctx, a, in.Organization)
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

// namedOrganization finds an organization that is mapped to an application. One
// that is not is apierr.NotMapped, one that the tenant does not have Reference.
func (s *Service) namedOrganization(ctx context.Context, a applicationapi.Application, in field.Of[directoryapi.StoreName]) (store.Organization, error) {
	where, err := directoryapi.ReadStoreName(in, "organization")
	if err != nil {
		return store.Organization{}, err
	}
	o, err := s.organizationNamed(ctx, a.TenantID, where)
	if errors.Is(err, apierr.NotFound) {
		return o, apierr.Reference.Because("organization: there is no organization %q", where.Href+where.NameKey)
	}
	if err != nil {
		return o, err
	}
	reach, err := s.store.Reach(ctx, a.TenantID, a.ID)
	if err != nil {
		return o, err
	}
	if len(reach.Within(func(p store.Place) bool { return p.OrganizationID == o.ID }).Places) == 0 {
		return o, apierr.NotMapped.Because("organization: the organization %q is not mapped to the application", o.NameKey)
	}
	return o, nil
}

// organizationNamed gives the organization of an href or a key, or
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

// relayKey gives the key that signs the default relay states of a tenant. It is
// made when it is first asked for.
func (s *Service) relayKey(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	sealed, err := s.store.SAMLRelayKey(ctx, tenant)
	if errors.Is(err, apierr.NotFound) {
		err = s.tx(ctx, func(tx *store.Tx) error {
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
