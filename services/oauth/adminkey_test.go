package oauth_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// A tenant that has disabled its last key gets another one from the database.
func TestAnOperatorMakesAnAdministratorKey(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	last := oauthapi.Authenticate{ID: d.Key, Secret: d.Secret}
	disable := oauth.APIKeyChange{Status: field.Some(directoryapi.Disabled)}
	if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, d.Key, disable); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Service.Authenticate(t.Context(), last); !errors.Is(err, apierr.Unauthorized) {
		t.Fatalf("the disabled key returns %v", err)
	}
	ring, err := secure.ParseKeyring(d.Master)
	if err != nil {
		t.Fatal(err)
	}
	made, err := oauth.AdministratorKey(t.Context(), d.Store, ring, d.Clock.Now(), d.Tenant, d.Administrator)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Service.Authenticate(t.Context(), oauthapi.Authenticate{ID: made.ID, Secret: made.Secret})
	if err != nil || got.TenantID != d.Tenant || got.AccountID != d.Administrator {
		t.Errorf("the new key is that of %+v, %v", got, err)
	}
	enable := oauth.APIKeyChange{Status: field.Some(directoryapi.Enabled)}
	if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, d.Key, enable); err != nil {
		t.Error(err)
	}
}
