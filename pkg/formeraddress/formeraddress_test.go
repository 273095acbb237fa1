package formeraddress

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The former address of a tenant is kept once, and leads to its resources beside the current one.
func TestTheFormerAddressOfATenantIsKept(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, func(url secure.Secret) pg.Config {
		return pg.Config{URL: url, Schema: "notes", Migrations: []fs.FS{fstest.MapFS{"20261128000100_notes.sql": {
			Data: []byte("-- +goose Up\nCREATE TABLE notes (tenant_id uuid PRIMARY KEY);"),
		}}}}
	})
	tenant := id.New(time.Unix(1_790_000_000, 0))
	for range 2 {
		if err := Add(t.Context(), db, tenant, "https://old.example.test/v1"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := All(t.Context(), db)
	if err != nil || len(all) != 1 {
		t.Fatalf("the former addresses are %q, %v", all, err)
	}
	base := href.NewBase("https://id.example.test/v1", "https://older.example.test/v1").WithFormer(all...)
	for _, address := range []string{"https://id.example.test/v1", "https://older.example.test/v1", "https://old.example.test/v1"} {
		if !base.Is(address+"/tenants/"+tenant.String(), "tenants", tenant) {
			t.Errorf("an address below %s leads nowhere", address)
		}
	}
	if base.To("tenants", tenant) != "https://id.example.test/v1/tenants/"+tenant.String() {
		t.Errorf("new addresses are below %s", base)
	}
}
