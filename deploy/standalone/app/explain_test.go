package app

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	applicationstore "github.com/doorward/doorward/services/application/store"
)

// Without a tenant an application is found by its id, and by its name where one tenant alone has one of that name.
func TestAnApplicationIsExplainedWithoutItsTenant(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, migrated)
	db, err := pg.Open(t.Context(), applicationstore.Config(secure.Secret(url)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Now().UTC().Truncate(time.Millisecond)
	tenants := []id.ID{id.New(now), id.New(now)}
	named := func(tenant id.ID, name string) applicationapi.Application {
		return applicationapi.Application{TenantID: tenant, ID: id.New(now), Name: name, Status: directoryapi.Enabled,
			AuthorizedCallbackURIs: []string{}, AuthorizedOriginURIs: []string{}, SAMLPolicyID: id.New(now), WebConfigID: id.New(now),
			AccountLinkingPolicyID: id.New(now), CreatedAt: now, ModifiedAt: now}
	}
	shop, first, second := named(tenants[0], "Shop"), named(tenants[0], "Office"), named(tenants[1], "Office")
	err = applicationstore.New(db, time.Now).Tx(t.Context(), func(tx *applicationstore.Tx) error {
		for _, a := range []applicationapi.Application{shop, first, second} {
			if err := tx.InsertApplication(t.Context(), a, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"SHOP": "the login would be refused", shop.ID.String(): "the login would be refused", second.ID.String(): "the login would be refused",
		"office": "--tenant", "Store": "no application", id.New(now).String(): "no application",
	} {
		source := env.New([]string{"DATABASE_URL=" + url, "DOORWARD_MASTER_KEY=k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
			"DOORWARD_INTERNAL_SECRET=" + strings.Repeat("s", 32)})
		err := Explain(t.Context(), source, "", name, "jo@example.test", false, io.Discard)
		if err == nil || IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("a login at %s is explained with %v, want %q", name, err, want)
		}
	}
}
