package tenantpurge

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/tenantsize"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// config is a schema with notes and their lines.
func config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "notes", Migrations: []fs.FS{fstest.MapFS{"20261128000100_notes.sql": {Data: []byte(`-- +goose Up
		CREATE TABLE notes (tenant_id uuid NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
		CREATE TABLE lines (tenant_id uuid NOT NULL, note int NOT NULL, line int NOT NULL, PRIMARY KEY (tenant_id, note, line),
			FOREIGN KEY (tenant_id, note) REFERENCES notes);
		CREATE TABLE routes (host text PRIMARY KEY, tenant_id uuid NOT NULL);
		CREATE TABLE tenants (tenant_id uuid PRIMARY KEY);`)}}}}
}

// All rows of a deleted tenant go, in slices, and none of another; a purge that ends goes on; the tenant itself stays.
func TestTheRowsOfADeletedTenantGo(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, config)
	gone, stays := id.New(time.Unix(1_790_000_000, 0)), id.New(time.Unix(1_790_000_001, 0))
	for _, tenant := range []id.ID{gone, stays} {
		for _, sql := range []string{
			`INSERT INTO tenants (tenant_id) VALUES ($1)`, `INSERT INTO routes (host, tenant_id) VALUES ($1::uuid::text, $1)`,
			`INSERT INTO notes (tenant_id, id) SELECT $1, n FROM generate_series(1, 2500) n`,
			`INSERT INTO lines (tenant_id, note, line) SELECT $1, n, 1 FROM generate_series(1, 2500) n`,
		} {
			if _, err := db.Exec(t.Context(), sql, tenant); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows := func(tenant id.ID) map[string]int64 {
		t.Helper()
		sizes, err := tenantsize.New(db, time.Now).Sizes(t.Context(), sizeapi.Tenants{IDs: []id.ID{tenant}})
		if err != nil || len(sizes.Sizes) != 1 {
			t.Fatal(err)
		}
		return sizes.Sizes[0].Rows
	}
	if n := rows(gone); n["notes"] != 2500 || n["lines"] != 2500 || n["routes"] != 1 || n["tenants"] != 1 {
		t.Fatalf("the tenant has %v", n)
	}
	d := func(context.Context, directoryapi.Empty) (directoryapi.DeletedTenants, error) {
		return directoryapi.DeletedTenants{IDs: []id.ID{gone}}, nil
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Purge(ended, db, d); err == nil {
		t.Error("a purge whose process ends returns no error")
	}
	for range 2 {
		if err := Purge(t.Context(), db, d); err != nil {
			t.Fatal(err)
		}
		if n := rows(gone); len(n) != 1 || n["tenants"] != 1 {
			t.Errorf("of the deleted tenant %v is left", n)
		}
	}
	if n := rows(stays); n["notes"] != 2500 || n["lines"] != 2500 || n["routes"] != 1 {
		t.Errorf("of the other tenant %v is left", n)
	}
	if done, err := pg.Values[id.ID](t.Context(), db, `SELECT id FROM purged_tenants`); err != nil || len(done) != 1 || done[0] != gone {
		t.Errorf("done are %v, %v", done, err)
	}

	// A transaction that had begun before the tenant was done writes a row.
	if _, err := db.Exec(t.Context(), `INSERT INTO notes (tenant_id, id) VALUES ($1, 1)`, gone); err != nil {
		t.Fatal(err)
	}
	if err := Purge(t.Context(), db, d); err != nil {
		t.Fatal(err)
	}
	if n := rows(gone); n["notes"] != 0 {
		t.Errorf("of a transaction that was under way %v is left", n)
	}
	if _, err := db.Exec(t.Context(), `UPDATE purged_tenants SET purged_at = now() - interval '11 minutes'`); err != nil {
		t.Fatal(err)
	}
	if left, err := unfinished(t.Context(), db, []id.ID{gone, stays}); err != nil || len(left) != 1 || left[0] != stays {
		t.Errorf("minutes later passes look at %v, %v, want only what is not done", left, err)
	}
}
