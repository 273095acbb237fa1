package relyingparty

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// The profiles of a provider.
const (
	ProfileNone  = "NONE"
	ProfileFAPI2 = "FAPI2" // FAPI 2.0 Security Profile
)

// FAPIAlgorithms are the signature algorithms that the profile allows (FAPI 2.0 Security Profile, section 5.4.1).
var FAPIAlgorithms = []string{secure.PS256, secure.ES256, secure.EdDSA}

// CheckFAPI refuses, by apierr.Format, a client that does not conform to the FAPI 2.0 Security Profile (section 5.3):
// it names the member to change.
func CheckFAPI(v store.OpenIDClientSettings) error {
	must := func(member, value string) error {
		return apierr.Format.Because("the profile %s demands %s %s", ProfileFAPI2, member, value)
	}
	switch {
	case v.TokenEndpointAuthMethod != AuthKey:
		return must("tokenEndpointAuthMethod", AuthKey)
	case !v.DPoPBoundAccessTokens:
		return must("dpopBoundAccessTokens", "true")
	case slices.Contains(v.GrantTypes, GrantCode) && !v.RequirePushedAuthorizationRequests:
		return must("requirePushedAuthorizationRequests", "true")
	case !v.RequirePKCE:
		return must("requirePkce", "true")
	case v.RefreshTokenRotation != Keep:
		return must("refreshTokenRotation", Keep)
	}
	for _, m := range []struct {
		name  string
		value *string
	}{
		{"tokenEndpointAuthSigningAlg", v.TokenEndpointAuthSigningAlg},
		{"requestObjectSigningAlg", v.RequestObjectSigningAlg},
		{"idTokenSignedResponseAlg", v.IDTokenSignedResponseAlg},
		{"userinfoSignedResponseAlg", v.UserinfoSignedResponseAlg},
	} {
		if m.value != nil && !slices.Contains(FAPIAlgorithms, *m.value) {
			return must(m.name, field.Or(FAPIAlgorithms))
		}
	}
	for _, uri := range v.RedirectURIs {
		if u, ok := plainURL(uri); ok && u.Scheme == "http" && v.ApplicationType != TypeNative {
			return must("redirectUris", "with https")
		}
	}
	return nil
}

// CheckProvider refuses a provider of the profile FAPI2 that does not conform to it, or has a client that does not.
func CheckProvider(ctx context.Context, tx *store.Tx, application id.Ref, p store.OpenIDProviderSettings) error {
	code, err := field.ParseDuration(p.AuthorizationCodeTTL)
	switch {
	case err != nil:
		return err
	case code > time.Minute:
		return apierr.AfterMaximum.Because("authorizationCodeTtl is at most PT1M with the profile %s", p.Profile)
	case !slices.Contains(FAPIAlgorithms, p.SigningAlgorithm):
		return apierr.Format.Because("signingAlgorithm is %s with the profile %s", field.Or(FAPIAlgorithms),
			p.Profile)
	}
	clients, err := tx.ClientsOfApplication(ctx, application)
	if err != nil {
		return err
	}
	for _, c := range clients {
		if err := CheckFAPI(c.Settings); err != nil {
			return apierr.Format.Because("the client %s does not conform: %s", c.ClientID, apierr.From(err).Reason)
		}
	}
	return nil
}

// profile returns the profile of the provider of an application; "": none.
func (s *Clients) profile(ctx context.Context, application id.Ref) (string, error) {
	p, err := s.Store.OpenIDProvider(ctx, application)
	if errors.Is(err, apierr.NotFound) { // it was never changed
		err = nil
	}
	return p.Settings.Profile, err
}
