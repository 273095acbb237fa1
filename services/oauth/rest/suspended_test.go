package rest_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// The OpenID providers of a suspended tenant refuse every call, each in its form, and work again when the tenant is
// resumed.
func TestTheOpenIDProvidersOfASuspendedTenant(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	base := "/oidc/" + d.Application.String()
	documents := []string{base + "/.well-known/openid-configuration", base + "/jwks",
		"/.well-known/oauth-authorization-server" + base}
	for _, path := range documents {
		want(t, 200, raw(t, d, "GET", path, ""))
	}
	for _, status := range []string{directoryapi.Suspended, directoryapi.Deleting} {
		d.Directories.SetTenantStatus(t, d.Tenant, status)
		for _, path := range documents {
			refused(t, 403, 1930, raw(t, d, "GET", path, ""))
		}
		for _, call := range []string{"token", "par", "device_authorization", "introspect", "revoke", "userinfo", "register"} {
			answer := want(t, 403, raw(t, d, "POST", base+"/"+call, "token=x&client_id=y"))
			if body := decode(t, answer); body["error"] != "access_denied" || len(body) != 3 {
				t.Errorf("%s of a %s tenant answers %s, want access_denied", call, status, answer.Body)
			}
		}
	}
	d.Directories.SetTenantStatus(t, d.Tenant, directoryapi.Enabled)
	want(t, 200, raw(t, d, "GET", base+"/jwks", ""))
}
