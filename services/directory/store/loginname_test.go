package store_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// Accounts from before login names keep their logins. Where the email of one was
// the user name of another, the name leads to the latter, the log names both,
// and the former gets the name when it is free.
func TestLoginNamesOfAccountsFromBefore(t *testing.T) {
	var log bytes.Buffer
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(former)

	const migration = "20261122001600_login_names.sql"
	cfg := store.Config(secure.Secret(pgtest.New(t, nil)))
	all := cfg.Migrations
	cfg.Migrations = append(cfg.Migrations[:0:0], outbox.Migrations(), customdatastore.Migrations(), before(t, migration))
	old, err := pg.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	now := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	tenant, directory := id.New(now), id.New(now)
	insert := func(username, email string) id.ID {
		t.Helper()
		account := id.New(now)
		if _, err := pg.Exec(t.Context(), old, `INSERT INTO accounts (tenant_id, id, directory_id, username, username_folded, email, email_folded,
			status, email_verification_status, created_at, modified_at)
			VALUES ($1, $2, $3, $4, $4, $5, $5, 'ENABLED', 'UNVERIFIED', $6, $6)`, tenant, account, directory, username, email, now); err != nil {
			t.Fatal(err)
		}
		return account
	}
	if _, err := pg.Exec(t.Context(), old, `INSERT INTO tenants (tenant_id, key, name, created_at, modified_at) VALUES ($1, 'calm-otter', 'calm-otter', $2, $2)`,
		tenant, now); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), old, `INSERT INTO directories (tenant_id, id, name, name_folded, status, schema_id, created_at, modified_at)
		VALUES ($1, $2, 'Staff', 'staff', 'ENABLED', $2, $3, $3)`, tenant, directory, now); err != nil {
		t.Fatal(err)
	}
	same := insert("jo@example.test", "jo@example.test")
	victim := insert("sam", "sam@example.test")
	thief := insert("sam@example.test", "thief@example.test")

	cfg.Migrations = all
	db, err := pg.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	line, err := pg.Value[string](t.Context(), db, `SELECT format('the email of the account %s is the user name of the account %s', $1::uuid, $2::uuid)`, victim, thief)
	if err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "user name of the account") != 1 || !strings.Contains(text, line) {
		t.Errorf("the log names the clash wrongly: %s", text)
	}
	data := store.New(db, func() time.Time { return now })
	leadsTo := func(login string, want id.ID) {
		t.Helper()
		found, err := data.FindLogin(t.Context(), tenant, []directoryapi.Store{{Kind: directoryapi.Directories, ID: directory}}, login)
		if want.IsZero() && errors.Is(err, apierr.NotFound) {
			return
		}
		if err != nil || found.ID != want {
			t.Errorf("%s leads to %v, %v, not to %v", login, found.ID, err, want)
		}
	}
	leadsTo("jo@example.test", same)
	leadsTo("sam", victim)
	leadsTo("sam@example.test", thief)
	leadsTo("thief@example.test", thief)

	// What the previous release writes is found, and its clashes are refused.
	late := insert("late", "late@example.test")
	leadsTo("late", late)
	leadsTo("late@example.test", late)
	_, err = pg.Exec(t.Context(), old, `UPDATE accounts SET username = 'jo@example.test', username_folded = 'jo@example.test' WHERE tenant_id = $1 AND id = $2`, tenant, late)
	if !errors.Is(err, apierr.Exists) {
		t.Errorf("an update to the email of another: %v", err)
	}

	// An update of the account that lost the name is not refused for it.
	if _, err := pg.Exec(t.Context(), db, `UPDATE accounts SET username = 'sammy', username_folded = 'sammy' WHERE tenant_id = $1 AND id = $2`, tenant, victim); err != nil {
		t.Error(err)
	}
	leadsTo("sam", id.ID{})
	leadsTo("sammy", victim)
	if _, err := pg.Exec(t.Context(), db, `DELETE FROM accounts WHERE tenant_id = $1 AND id = $2`, tenant, thief); err != nil {
		t.Fatal(err)
	}
	leadsTo("sam@example.test", victim)
	leadsTo("thief@example.test", id.ID{})
}
