package store_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// Links from before the column are told apart by the time of the copy, and the previous
// release goes on making links beside it.
func TestLinksFromBeforeKnowWhetherALoginMadeThem(t *testing.T) {
	t.Parallel()
	cfg := store.Config(secure.Secret(pgtest.New(t, nil)))
	open := func(migrations fs.FS) *pg.DB {
		cfg.Migrations = []fs.FS{outbox.Migrations(), customdatastore.Migrations(), migrations}
		db, err := pg.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db
	}
	old := open(before(t, "20261124000200_provisioned_links.sql"))
	now := time.Date(2026, 11, 20, 20, 25, 0, 123456789, time.UTC)
	login := now.Add(time.Minute)
	tenant, away, home := id.New(now), id.New(now), id.New(now)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := pg.Exec(t.Context(), old, query, args...); err != nil {
			t.Fatal(err)
		}
	}
	account := func(directory id.ID, email string, created time.Time) id.ID {
		t.Helper()
		v := id.New(now)
		exec(`INSERT INTO accounts (tenant_id, id, directory_id, username, username_folded, email, email_folded, status,
			email_verification_status, created_at, modified_at) VALUES ($1, $2, $3, $4, $4, $4, $4, 'ENABLED', 'UNVERIFIED', $5, $5)`,
			tenant, v, directory, email, created)
		return v
	}
	link := func(left, right id.ID) id.ID {
		t.Helper()
		v := id.New(now)
		exec(`INSERT INTO account_links (tenant_id, id, left_account_id, right_account_id, created_at) VALUES ($1, $2, $3, $4, $5)`,
			tenant, v, left, right, login)
		return v
	}
	exec(`INSERT INTO tenants (tenant_id, key, name, created_at, modified_at) VALUES ($1, 'calm-otter', 'calm-otter', $2, $2)`, tenant, now)
	for directory, name := range map[id.ID]string{away: "away", home: "home"} {
		exec(`INSERT INTO directories (tenant_id, id, name, name_folded, status, schema_id, created_at, modified_at)
			VALUES ($1, $2, $3, $3, 'ENABLED', $2, $4, $4)`, tenant, directory, name, now)
	}
	jo, sam := account(away, "jo@example.test", now), account(away, "sam@example.test", now)
	copied := link(jo, account(home, "jo@example.test", login))
	joined := link(sam, account(home, "sam@example.test", now))

	data := store.New(open(store.Migrations()), func() time.Time { return now })
	later := link(account(away, "al@example.test", now), account(home, "al@example.test", now))
	for v, want := range map[id.ID]bool{copied: true, joined: false, later: false} {
		if l, err := data.AccountLink(t.Context(), tenant, v); err != nil || l.Provisioned != want {
			t.Errorf("a link is %+v, %v; want provisioned %v", l, err, want)
		}
	}
}
