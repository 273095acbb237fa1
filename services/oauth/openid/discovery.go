package openid

import (
	"context"
	"net/url"
	"slices"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/oauth/dpop"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
)

// Discovery returns the metadata of the provider that an application is (RFC 8414; OpenID Connect Discovery, section
// 3). It has nothing but what the provider answers to.
func (s *Service) Discovery(ctx context.Context, application id.ID) (map[string]any, error) {
	i, err := s.issuer(ctx, application)
	if err != nil {
		return nil, err
	}
	claims := []string{"sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr"}
	for _, scope := range builtinScopes {
		for name := range scopeClaims[scope] {
			claims = append(claims, name)
		}
	}
	for _, m := range i.provider.Settings.Claims {
		claims = append(claims, m.Claim)
	}
	slices.Sort(claims)
	methods, introspection := relyingparty.AuthMethods, []string{relyingparty.AuthBasic, relyingparty.AuthPost,
		relyingparty.AuthKey}
	if i.isFAPI() {
		methods, introspection = []string{relyingparty.AuthKey}, []string{relyingparty.AuthKey}
	}
	document := map[string]any{
		"issuer":                 i.url,
		"authorization_endpoint": i.url + "/authorize",
		"jwks_uri":               i.url + "/jwks",
		"token_endpoint":         i.url + "/token",
		"userinfo_endpoint":      i.url + "/userinfo",
		"introspection_endpoint": i.url + "/introspect",
		"revocation_endpoint":    i.url + "/revoke",
		"end_session_endpoint":   i.url + "/logout",

		"pushed_authorization_request_endpoint": i.url + "/par",
		"require_pushed_authorization_requests": i.isFAPI(),
		"device_authorization_endpoint":         i.url + "/device_authorization",

		"scopes_supported":                      i.scopeNames(),
		"claims_supported":                      slices.Compact(claims),
		"grant_types_supported":                 relyingparty.GrantTypes,
		"response_types_supported":              []string{"code"},
		"response_modes_supported":              []string{modeQuery, modeFormPost},
		"prompt_values_supported":               prompts,
		"acr_values_supported":                  acrValues,
		"subject_types_supported":               []string{relyingparty.SubjectPublic, relyingparty.SubjectPairwise},
		"id_token_signing_alg_values_supported": i.algorithms(),
		"userinfo_signing_alg_values_supported": i.algorithms(),
		"code_challenge_methods_supported":      []string{"S256"},
		"dpop_signing_alg_values_supported":     dpop.Algorithms,

		"request_object_signing_alg_values_supported": i.algorithms(),

		"client_id_metadata_document_supported":          i.provider.Settings.ClientIDMetadataDocuments,
		"claims_parameter_supported":                     true,
		"request_parameter_supported":                    true,
		"request_uri_parameter_supported":                false,
		"authorization_response_iss_parameter_supported": true,
		"backchannel_logout_supported":                   true,
		"backchannel_logout_session_supported":           true,
		"frontchannel_logout_supported":                  true,
		"frontchannel_logout_session_supported":          true,

		"token_endpoint_auth_methods_supported":                    methods,
		"token_endpoint_auth_signing_alg_values_supported":         i.algorithms(),
		"introspection_endpoint_auth_methods_supported":            introspection,
		"introspection_signing_alg_values_supported":               i.algorithms(),
		"introspection_endpoint_auth_signing_alg_values_supported": i.algorithms(),
		"revocation_endpoint_auth_methods_supported":               methods,
		"revocation_endpoint_auth_signing_alg_values_supported":    i.algorithms(),
	}
	if i.provider.Settings.ClientRegistration != relyingparty.RegistrationNone {
		document["registration_endpoint"] = i.url + "/register"
	}
	return document, nil
}

// acrValues are the values of the claim acr that the hosted pages give.
var acrValues = []string{oauthapi.ACRPassword, oauthapi.ACRMFA}

// Keys returns the key set of the provider that an application is.
func (s *Service) Keys(ctx context.Context, application id.ID) (signing.KeySet, error) {
	i, err := s.issuer(ctx, application)
	if err != nil {
		return signing.KeySet{}, err
	}
	return s.KeySet(ctx, i.app.TenantID)
}

// AllowsOrigin reports whether pages of an origin may call the endpoints of a provider (CORS): those of the redirect
// URIs of its clients, and of the application's authorizedOriginUris.
func (s *Service) AllowsOrigin(ctx context.Context, application id.ID, origin string) (bool, error) {
	i, err := s.issuer(ctx, application)
	if err != nil {
		return false, err
	}
	if redirecturi.IsListedOrigin(origin, i.app.AuthorizedOriginURIs) {
		return true, nil
	}
	uris, err := s.Store.RedirectURIs(ctx, i.ref())
	return slices.ContainsFunc(uris, func(uri string) bool {
		u, err := url.Parse(uri)
		return err == nil && u.Host != "" && u.Scheme+"://"+u.Host == origin
	}), err
}
