package saml

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// relayStateType is the header stt (token type) of the JWT of a default relay state. Its claims
// are spUid (id of the SAML policy), jti (nonce), cb_uri (callback URI), ash (account store href,
// here of an organization) and state.
const relayStateType = "assertion"

// NewRelayState is the body that requests a default relay state. Members that it leaves out are
// decided at the login.
type NewRelayState struct {
	CallbackURI  field.Text                             `json:"callbackUri"`
	Organization field.Nullable[directoryapi.StoreName] `json:"organization"`
	State        field.Text                             `json:"state"`
}

// CreateDefaultRelayState creates the RelayState that an external identity provider sends with
// an unsolicited response (IdP-initiated login, docs/interface/applications.md#saml-policy). It
// is a JWT without expiry, which may be used any number of times. Its header tid names the
// tenant, whose key signs it, its claim spUid the SAML policy of the application. It is read by
// SAMLRelayState. The RelayState of all other SAML messages is in services/idsite/journey/relaystate.go.
func (s *Service) CreateDefaultRelayState(ctx context.Context, policy id.Ref, in NewRelayState) (secure.Secret, error) {
	a, err := s.core.ApplicationOfSAMLPolicy(ctx, policy)
	if err != nil {
		return "", err
	}
	claims := secure.Claims{"spUid": policy.ID.String(), "jti": secure.Token(22).Reveal()}
	if in.CallbackURI.Given() {
		if err := checkAuthorizedCallback(a, in.CallbackURI.Value); err != nil {
			return "", err
		}
		claims["cb_uri"] = in.CallbackURI.Value
	}
	if in.Organization.Given() {
		organization, err := s.core.NamedOrganization(ctx, a.TenantID, in.Organization)
		if err != nil {
			return "", err
		}
		claims["ash"] = s.base.To(string(store.OrganizationKind), organization.ID)
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

// SAMLRelayState verifies and reads a RelayState of CreateDefaultRelayState, of any tenant. Any
// other text is apierr.SAMLMalformed.
func (s *Service) SAMLRelayState(ctx context.Context,
	in applicationapi.SAMLRelayState) (out applicationapi.SAMLDestination, err error) {
	unknown := apierr.SAMLMalformed.Because("the RelayState is none of this service")
	var tenant id.ID
	_, claims, err := secure.ParseJWT(in.Token.Reveal(),
		func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
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
	out.Application, err = s.core.ApplicationOfSAMLPolicy(caller.WithTenant(ctx, tenant),
		id.Ref{Tenant: tenant, ID: policy})
	if errors.Is(err, apierr.NotFound) {
		return out, unknown
	}
	out.CallbackURI, out.AccountStore = text("cb_uri"), href.Link{Href: text("ash")}
	if state, ok := claims["state"].(string); ok {
		out.State = &state
	}
	return out, err
}

// relayKey returns the key that signs the default relay states of a tenant. The first call
// creates the key.
func (s *Service) relayKey(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	sealed, err := s.store.SAMLRelayKey(ctx, tenant)
	if errors.Is(err, apierr.NotFound) {
		err = s.store.Tx(ctx, func(tx *store.Tx) error {
			return tx.InsertSAMLRelayKeyIfAbsent(ctx, tenant, s.ring.Seal(secure.Token(43), relayKeyPurpose(tenant)),
				s.now())
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

// relayKeyPurpose binds the encrypted key to its tenant.
func relayKeyPurpose(tenant id.ID) string { return "application.relay/" + tenant.String() }
