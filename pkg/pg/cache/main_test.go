package cache_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type note struct {
	TenantID id.ID
	ID       id.ID
	Text     string
}

func open(t *testing.T) (*pg.DB, string) {
	t.Helper()
	url := pgtest.New(t, nil)
	db, err := pg.Open(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "notes", Migrations: []fs.FS{fstest.MapFS{
		"20260101000001_notes.sql": {Data: []byte(`-- +goose Up
CREATE TABLE notes (tenant_id uuid NOT NULL, id uuid NOT NULL, text text NOT NULL, PRIMARY KEY (tenant_id, id));`)}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, url
}
