package directory_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// listening returns the store of another process, whose caches are enabled.
func listening(t *testing.T, db *pg.DB) *store.Store {
	t.Helper()
	replica := pg.FromPool(db.Pool)
	s := store.New(replica, now) // which says what to listen to
	worktest.Start(t, replica.Listen)
	return s
}

// The access of an account is read from the cache while nothing changes. A change invalidates the
// cache of its own process at once, and those of other processes when PostgreSQL has notified them,
// also a change by SQL.
func TestAChangeOfAnAccountShowsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	svc, db, ring, tenant := sealing(t)
	made, err := svc.CreateDirectory(t.Context(), directoryapi.CreateDirectory{Tenant: tenant, ID: id.New(now()), Name: "Staff"})
	if err != nil {
		t.Fatal(err)
	}
	stores := []*store.Store{listening(t, db), listening(t, db)}
	service := func(s *store.Store) *directory.Service {
		return directory.New(s, secure.NewPasswords(cheap, 2, 1000), ring, "https://localhost:8443/v1", now, directory.Config{})
	}
	here, elsewhere := service(stores[0]), service(stores[1])
	account := id.Ref{Tenant: tenant, ID: id.New(now())}
	if _, err := here.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: tenant, ID: account.ID, Directory: made.ID, Account: directoryapi.NewAccount{Email: field.Some("jo@example.test"),
			GivenName: field.Some("Jo"), Surname: field.Some("Doe"), Password: field.Some("Passw0rd!long")},
	}); err != nil {
		t.Fatal(err)
	}
	access := func(s *directory.Service) error {
		_, err := s.CheckAccess(t.Context(), directoryapi.CheckAccess{Tenant: tenant, Account: account.ID, Brief: true, Recent: true,
			Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: made.ID}}})
		return err
	}
	update := func(status string) func() error {
		return func() error {
			_, err := here.UpdateAccount(t.Context(), account, directoryapi.NewAccount{Status: field.Some(status)})
			return err
		}
	}
	updateDirectory := func(status string) func() error {
		return func() error {
			_, err := here.UpdateDirectory(t.Context(), id.Ref{Tenant: tenant, ID: made.ID}, directory.NewDirectory{Status: field.Some(status)})
			return err
		}
	}
	exec := func(sql string) func() error {
		return func() error { return pg.MustChange(t.Context(), db, sql, tenant, account.ID) }
	}
	for _, c := range []struct {
		what   string
		change func() error
		want   error
		silent bool // no client made it
	}{
		{"the account is disabled", update(directoryapi.Disabled), apierr.TokenAccountDisabled, false},
		{"the account is enabled", update(directoryapi.Enabled), nil, false},
		{"the directory is disabled", updateDirectory(directoryapi.Disabled), apierr.TokenStoreDisabled, false},
		{"the directory is enabled", updateDirectory(directoryapi.Enabled), nil, false},
		{"the status of a mirrored account", exec(`UPDATE accounts SET status = 'DISABLED' WHERE tenant_id = $1 AND id = $2`),
			apierr.TokenAccountDisabled, true},
		{"it is back", exec(`UPDATE accounts SET status = 'ENABLED' WHERE tenant_id = $1 AND id = $2`), nil, true},
		{"the account is deleted", func() error { return here.DeleteAccount(t.Context(), account) }, apierr.TokenAccountDisabled, false},
	} {
		for _, s := range stores { // until it is kept
			worktest.Await(t, c.what, func() bool {
				first, err := s.RecentAccess(t.Context(), tenant, account.ID)
				again, _ := s.RecentAccess(t.Context(), tenant, account.ID)
				return err == nil && first.PasswordModifiedAt == again.PasswordModifiedAt
			})
		}
		reported := worktest.Changes(t, elsewhere.AccessChanges)
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		worktest.Await(t, "the report that "+c.what, func() bool { changed, _ := reported(account.ID, made.ID); return changed })
		if err := access(here); !c.silent && !errors.Is(err, c.want) {
			t.Errorf("%s: the process that changed it returns %v", c.what, err)
		}
		worktest.Await(t, c.what, func() bool { return errors.Is(access(elsewhere), c.want) && errors.Is(access(here), c.want) })
	}
}

// The cached access has the time of a new password, which revokes older tokens.
func TestAChangedPasswordIsReported(t *testing.T) {
	t.Parallel()
	_, db, _, tenant := sealing(t)
	s := listening(t, db)
	owner, err := s.Owner(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	recent := func() store.Access {
		a, err := s.RecentAccess(t.Context(), tenant, owner.ID)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before := recent()
	worktest.Await(t, "the access to be kept", func() bool {
		first := before
		before = recent()
		return first.PasswordModifiedAt == before.PasswordModifiedAt // the same pointer
	})
	if err := pg.MustChange(t.Context(), db, `UPDATE accounts SET password_modified_at = $3 WHERE tenant_id = $1 AND id = $2`, tenant,
		owner.ID, now().Add(1)); err != nil {
		t.Fatal(err)
	}
	worktest.Await(t, "the change to be reported", func() bool {
		after := recent()
		return after.PasswordModifiedAt != nil && (before.PasswordModifiedAt == nil || !after.PasswordModifiedAt.Equal(*before.PasswordModifiedAt))
	})
}
