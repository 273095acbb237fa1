package store_test

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// before returns the migrations that are older than the named one.
func before(t *testing.T, name string) fs.FS {
	t.Helper()
	older := fstest.MapFS{}
	all := store.Migrations()
	names, err := fs.Glob(all, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		if file >= name {
			continue
		}
		data, err := fs.ReadFile(all, file)
		if err != nil {
			t.Fatal(err)
		}
		older[file] = &fstest.MapFile{Data: data}
	}
	if len(older) == 0 || len(older) == len(names) {
		t.Fatalf("%d of %d migrations are older than %s", len(older), len(names), name)
	}
	return older
}

func TestADirectoryFromBeforeSchemasGetsItsFields(t *testing.T) {
	t.Parallel()
	url := secure.Secret(pgtest.New(t, nil))
	open := func(migrations fs.FS) *pg.DB {
		db, err := pg.Open(t.Context(), pg.Config{URL: url, Schema: "directory", Migrations: []fs.FS{outbox.Migrations(), customdatastore.Migrations(), migrations}, Extensions: store.Config(url).Extensions})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db
	}
	now := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	tenant, directory, schema := id.New(now), id.New(now), id.New(now)
	old := open(before(t, "20261121001200_schemas.sql"))
	if _, err := pg.Exec(t.Context(), old, `INSERT INTO tenants (tenant_id, key, name, created_at, modified_at) VALUES ($1, 'calm-otter', 'calm-otter', $2, $2)`, tenant, now); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), old, `INSERT INTO directories (tenant_id, id, name, name_folded, status, schema_id, created_at, modified_at)
		VALUES ($1, $2, 'Staff', 'staff', 'ENABLED', $3, $4, $4)`, tenant, directory, schema, now); err != nil {
		t.Fatal(err)
	}

	data := store.New(open(store.Migrations()), func() time.Time { return now })
	page, err := data.ListFields(t.Context(), id.Ref{Tenant: tenant, ID: schema}, list.First())
	if err != nil || page.Size != 2 || page.Items[0].Name != store.GivenName || page.Items[1].Name != store.Surname {
		t.Fatalf("the fields are %+v, %v", page, err)
	}
	for _, f := range page.Items {
		if f.Required || f.SchemaID != schema || !f.CreatedAt.Equal(now) {
			t.Errorf("the field is %+v", f)
		}
	}
	made, err := data.Schema(t.Context(), tenant, schema)
	if err != nil || made.DirectoryID != directory || !made.ModifiedAt.Equal(now) {
		t.Errorf("the schema is %+v, %v", made, err)
	}
}
