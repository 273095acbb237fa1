package tenants

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	idsite "github.com/doorward/doorward/services/idsite/store"
)

const masterKey = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// named is a tenant with a name, an email of its owner, and a key, if it is not empty.
func named(name, owner, key string) Creation {
	in := Creation{NewTenant: idsiteapi.NewTenant{Name: field.Some(name), OwnerEmail: field.Some(owner)}}
	if key != "" {
		in.Key = field.Some(key)
	}
	return in
}

// An operator creates a tenant in the databases. Its API key works, and for a recipient its secret is sealed.
func TestATenantIsCreated(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, migrated)
	create := func(in Creation, variables ...string) (made shown, e operatorlog.Event, err error) {
		source := env.New(append([]string{"DATABASE_URL=" + url, "DOORWARD_MASTER_KEY=" + masterKey,
			"DOORWARD_IDSITE_SUFFIX=example.net"}, variables...))
		app.DeclareOperator(source)
		var out bytes.Buffer
		if err = Create(t.Context(), source, in, &e, &out); err == nil {
			err = json.Unmarshal(out.Bytes(), &made)
		}
		return made, e, err
	}

	first, e, err := create(named("Calm Otter", "jo@example.test", "calm-otter"))
	if err != nil || first.Key != "calm-otter" || first.Name != "Calm Otter" || first.Owner == nil ||
		first.Owner.Email != "jo@example.test" || first.Applications != 2 || first.Accounts != 1 {
		t.Fatalf("the tenant was created as %+v, %v", first, err)
	}
	if e.Tenant == nil || *e.Tenant != first.ID {
		t.Errorf("the record names the tenant %v, want %s", e.Tenant, first.ID)
	}
	data, err := app.OpenDeployment(t.Context(), env.New([]string{"DATABASE_URL=" + url, "DOORWARD_MASTER_KEY=" + masterKey}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := data.Close(); err != nil {
			t.Error(err)
		}
	})
	keys := peersOf(data, alias.Neutral).OAuth
	used, err := keys.Authenticate(t.Context(), oauthapi.Authenticate{ID: first.APIKey.ID, Secret: secure.Secret(first.APIKey.Secret)})
	if err != nil || used.TenantID != first.ID || used.AccountID != first.Owner.ID {
		t.Errorf("the API key is that of %+v, %v", used, err)
	}
	site, err := idsite.New(open(t, idsite.Config(secure.Secret(url))), time.Now).TenantSite(t.Context(), first.ID)
	if err != nil || site.DomainName != "calm-otter.id.example.net" {
		t.Errorf("the hosted pages are at %q, %v", site.DomainName, err)
	}

	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	in := named("Blue River", "sam@example.test", "")
	in.Recipients = mine.Recipient().String()
	second, _, err := create(in, "KUBERNETES_SERVICE_HOST=10.0.0.1")
	if err != nil || second.APIKey.Secret != "" || second.Key == "" {
		t.Fatalf("for a recipient the tenant was created as %+v, %v", second, err)
	}
	plain, err := age.Decrypt(armor.NewReader(strings.NewReader(second.APIKey.Sealed)), mine)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	_, err = keys.Authenticate(t.Context(), oauthapi.Authenticate{ID: second.APIKey.ID, Secret: secure.Secret(secret)})
	if err != nil {
		t.Errorf("the sealed secret is refused with %v", err)
	}

	if _, err := pg.Exec(t.Context(), data.DBs["directory"], `UPDATE tenants SET status = 'DELETED' WHERE key = $1`, second.Key); err != nil {
		t.Fatal(err)
	}
	for _, taken := range []string{"calm-otter", second.Key} {
		if _, e, err := create(named("Another", "jo@example.test", taken)); err == nil || app.IsUsage(err) || e.Tenant != nil ||
			!strings.Contains(err.Error(), taken) {
			t.Errorf("the key %s is refused with %v", taken, err)
		}
	}
	for what, in := range map[string]Creation{
		"without a name": named("", "jo@example.test", ""), "with an email that is none": named("Another", "jo", ""),
		"with a wrong key": named("Another", "jo@example.test", "Another!"),
	} {
		if _, _, err := create(in); !errors.Is(err, app.ErrUsage) || strings.HasPrefix(err.Error(), "usage") {
			t.Errorf("a tenant %s is refused with %v, want a usage error", what, err)
		}
	}
	if _, _, err := create(named("Another", "jo@example.test", ""), "KUBERNETES_SERVICE_HOST=10.0.0.1"); !errors.Is(err, app.ErrUsage) {
		t.Errorf("without a recipient the command returns %v on Kubernetes, want a usage error", err)
	}
	other := "DOORWARD_MASTER_KEY=k1:AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	if _, _, err := create(named("Another", "jo@example.test", "another"), other); err == nil {
		t.Error("a tenant is created under another master key")
	}
}
