package directorytest

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/providertest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/provider"
)

// callback is the redirect URI of the directories of NewMirror.
const callback = "https://app.localhost/cb"

var socialNames = []string{"google", "facebook", "github", "linkedin", "twitter"}

// socialProvider stands in for all social providers, of all tests of a binary.
type socialProvider struct {
	*providertest.Provider
	authority string // its certificate in PEM
}

// socialProviders starts the provider at its first call. It ends with the test binary.
var socialProviders = sync.OnceValue(func() socialProvider {
	p := providertest.New()
	server := httptest.NewTLSServer(p)
	p.URL = server.URL
	return socialProvider{p, providertest.Authority(server)}
})

// client returns a client that finds every social provider there. The provider has a clock of its own.
func (p socialProvider) client(t testing.TB) *connect.Client {
	t.Helper()
	guard, err := outbound.Config{PrivateNetworks: []string{"127.0.0.0/8"}, CA: p.authority}.Open()
	check(t, err)
	all := map[string]map[string]string{}
	for _, name := range socialNames {
		all[name] = map[string]string{
			"authorizationEndpoint": p.URL + "/authorize", "tokenEndpoint": p.URL + "/token",
			"resourceEndpoint":  p.URL + "/user",
			"tokeninfoEndpoint": p.URL + "/tokeninfo", "jwksUri": p.URL + "/jwks", "issuer": p.URL,
			"introspectionEndpoint": p.URL + "/introspect",
			"tokenCheckEndpoint":    p.URL + "/applications/{clientId}/token",
		}
	}
	all["twitter"] = map[string]string{"resourceEndpoint": p.URL + "/user", "tokenEndpoint": p.URL + "/token"}
	all["google"]["tokenCheckEndpoint"] = p.URL + "/tokeninfo"
	all["facebook"]["tokenCheckEndpoint"] = p.URL + "/debug_token"
	text, err := json.Marshal(all)
	check(t, err)
	endpoints, err := connect.ParseEndpoints(string(text))
	check(t, err)
	return connect.New(guard, endpoints, time.Now)
}

// AuthorizeURL is the address of the provider to which a login sends the browser.
func AuthorizeURL() string { return socialProviders().URL + "/authorize" }

// NewMirror adds a directory that mirrors a social provider, or a generic one under another name.
func (s *Service) NewMirror(t testing.TB, tenant id.ID, name, providerID string) id.ID {
	t.Helper()
	in := provider.NewProvider{
		ProviderID: field.Some(providerID), ClientID: field.Some(providertest.ClientID),
		ClientSecret: field.Some(providertest.ClientSecret),
	}
	if slices.Contains(socialNames, providerID) {
		in.RedirectURI = field.Some(callback)
	} else {
		p := socialProviders()
		in.ProviderType, in.AuthorizationEndpoint = field.Some("oauth2"), field.Some(p.URL+"/authorize")
		in.TokenEndpoint, in.ResourceEndpoint = field.Some(p.URL+"/token"), field.Some(p.URL+"/user")
		in.IntrospectionEndpoint = field.Some(p.URL + "/introspect")
	}
	out, err := s.Rules.CreateDirectoryIn(context.Background(), tenant, provider.NewDirectory{
		NewDirectory: directory.NewDirectory{Name: field.Some(name)}, Provider: field.Some(in),
	})
	return must(t, out, err).ID
}

// UserToken returns an access token of a user of any social provider, whose email is verified there.
func UserToken(externalID, email string) secure.Secret {
	return secure.Secret(socialProviders().AddUser(externalID, map[string]any{
		"id": externalID, "email": email, "verified_email": true,
		"emails": []any{map[string]any{"email": email, "primary": true, "verified": true}},
	}))
}

// UserCode returns an authorization code of a user as that of UserToken.
func UserCode(externalID, email string) secure.Secret {
	UserToken(externalID, email)
	return secure.Secret(socialProviders().Code(externalID, callback, ""))
}
