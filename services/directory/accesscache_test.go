package directory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
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
// also a change by a sync of a third process.
func TestAChangeOfAnAccountShowsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	svc, db, ring, tenant := sealing(t)
	made, err := svc.CreateDirectory(t.Context(), directoryapi.CreateDirectory{Tenant: tenant, ID: id.New(now()), Name: "Staff"})
	if err != nil {
		t.Fatal(err)
	}
	stores := []*store.Store{listening(t, db), listening(t, db)}
	service := func(s *store.Store) *app.Service {
		return newService(s, ring, cheap)
	}
	here, elsewhere := service(stores[0]), service(stores[1])
	var account id.Ref
	register := func(email string) {
		t.Helper()
		account = id.Ref{Tenant: tenant, ID: id.New(now())}
		if _, err := here.CreateAccount(t.Context(), directoryapi.CreateAccount{
			Tenant: tenant, ID: account.ID, Directory: made.ID, Account: directoryapi.NewAccount{Email: field.Some(email),
				GivenName: field.Some("Jo"), Surname: field.Some("Doe"), Password: field.Some("Passw0rd!long")},
		}); err != nil {
			t.Fatal(err)
		}
	}
	access := func(s *app.Service) error {
		_, err := s.CheckAccess(t.Context(), directoryapi.CheckAccess{Tenant: tenant, Account: account.ID,
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
	register("jo@example.test")
	third := store.New(pg.FromPool(db.Pool), now)
	inSync := func(fn func(*store.Tx) error) func() error {
		return func() error { return third.Tx(t.Context(), fn) }
	}
	mirrored := func(before, after string) func() error {
		return inSync(func(tx *store.Tx) error {
			return tx.SetMirroredStatuses(t.Context(), tenant, made.ID, []store.MirroredAccountWrite{{
				Account:         directoryapi.Account{Status: after, ModifiedAt: now()},
				MirroredAccount: store.MirroredAccount{AccountID: account.ID, Status: before},
			}})
		})
	}
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO mirrored_accounts
		(tenant_id, directory_id, external_id, account_id, digest, disabled, assigned_status, seen) VALUES ($1, $2, 'jo', $3, '', false, 'ENABLED', 1)`, tenant, made.ID, account.ID); err != nil {
		t.Fatal(err)
	}
	vanished := store.Vanished{TenantID: tenant, DirectoryID: made.ID, ExternalIDs: []string{"jo"}}
	type change struct {
		what   string
		make   func() error
		want   error
		silent bool // no client made it
	}
	shows := func(c change) {
		t.Helper()
		for _, s := range stores { // until it is kept
			worktest.Await(t, c.what, func() bool {
				first, err := s.Access(t.Context(), tenant, account.ID)
				again, _ := s.Access(t.Context(), tenant, account.ID)
				return err == nil && first.PasswordModifiedAt == again.PasswordModifiedAt
			})
		}
		reported := worktest.Changes(t, elsewhere.AccessChanges)
		if err := c.make(); err != nil {
			t.Fatalf("the change, %s, failed: %v", c.what, err)
		}
		worktest.Await(t, "the report that "+c.what, func() bool { changed, _ := reported(account.ID, made.ID); return changed })
		if err := access(here); !c.silent && !errors.Is(err, c.want) {
			t.Errorf("%s: the process that changed it returns %v", c.what, err)
		}
		worktest.Await(t, c.what, func() bool { return errors.Is(access(elsewhere), c.want) && errors.Is(access(here), c.want) })
	}
	for _, c := range []change{
		{"the account is disabled", update(directoryapi.Disabled), apierr.TokenAccountDisabled, false},
		{"the account is enabled", update(directoryapi.Enabled), nil, false},
		{"the directory is disabled", updateDirectory(directoryapi.Disabled), apierr.TokenStoreDisabled, false},
		{"the directory is enabled", updateDirectory(directoryapi.Enabled), nil, false},
		{"a sync disables the account", mirrored(directoryapi.Enabled, directoryapi.Disabled),
			apierr.TokenAccountDisabled, true},
		{"a sync enables the account", mirrored(directoryapi.Disabled, directoryapi.Enabled), nil, true},
		{"a sync makes the account absent", inSync(func(tx *store.Tx) error {
			_, _, err := tx.MakeAccountsAbsent(t.Context(), vanished, now(), 10)
			return err
		}), apierr.TokenAccountDisabled, true},
		{"a sync has the account again", mirrored(directoryapi.Disabled, directoryapi.Enabled), nil, true},
		{"a sync deletes the account", inSync(func(tx *store.Tx) error {
			deleted, err := tx.DeleteVanishedAccounts(t.Context(), vanished, 10)
			if err == nil && len(deleted) != 1 {
				t.Errorf("the sync has deleted %v, want one account", deleted)
			}
			return err
		}), apierr.TokenAccountDisabled, true},
	} {
		shows(c)
	}
	register("sam@example.test")
	deleted := func() error { return here.DeleteAccount(t.Context(), account) }
	shows(change{"the account is deleted", deleted, apierr.TokenAccountDisabled, false})
}

// The cached access has the time of a new password, which revokes older tokens.
func TestAChangedPasswordIsReported(t *testing.T) {
	t.Parallel()
	svc, db, _, tenant := sealing(t)
	s := listening(t, db)
	owner, err := s.Owner(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	recent := func() store.Access {
		a, err := s.Access(t.Context(), tenant, owner.ID)
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
	if _, err := svc.UpdateAccount(t.Context(), id.Ref{Tenant: tenant, ID: owner.ID},
		directoryapi.NewAccount{Password: field.Some("An0ther!password")}); err != nil {
		t.Fatal(err)
	}
	worktest.Await(t, "the change to be reported", func() bool {
		after := recent()
		return after.PasswordModifiedAt != nil && (before.PasswordModifiedAt == nil || !after.PasswordModifiedAt.Equal(*before.PasswordModifiedAt))
	})
}

// The answer to a change names what the change has ended, or begun, and nothing where no row that decides about
// access has changed.
func TestOnlyAChangeOfAccessIsNamed(t *testing.T) {
	t.Parallel()
	svc, db, _, tenant := sealing(t)
	owner, err := listening(t, db).Owner(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	made, err := svc.CreateDirectory(t.Context(), directoryapi.CreateDirectory{Tenant: tenant, ID: id.New(now()), Name: "Named"})
	if err != nil {
		t.Fatal(err)
	}
	group := id.Ref{Tenant: tenant, ID: id.New(now())}
	if _, err := svc.CreateGroup(t.Context(), directoryapi.CreateGroup{
		Tenant: tenant, ID: group.ID, Directory: made.ID, Group: directoryapi.NewGroup{Name: field.Some("Staff")}}); err != nil {
		t.Fatal(err)
	}
	account, in := id.Ref{Tenant: tenant, ID: id.New(now())}, id.Ref{Tenant: tenant, ID: made.ID}
	if _, err := svc.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: tenant, ID: account.ID, Directory: made.ID, Account: directoryapi.NewAccount{Email: field.Some("jo@example.test"),
			GivenName: field.Some("Jo"), Surname: field.Some("Doe"), Password: field.Some("Passw0rd!long")},
	}); err != nil {
		t.Fatal(err)
	}
	updateAccount := func(in directoryapi.NewAccount) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := svc.UpdateAccount(ctx, account, in)
			return err
		}
	}
	updateGroup := func(in directoryapi.NewGroup) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := svc.UpdateGroup(ctx, group, in)
			return err
		}
	}
	enabled, disabled := field.Some(directoryapi.Enabled), field.Some(directoryapi.Disabled)
	for _, c := range []struct {
		what   string
		change func(context.Context) error
		want   id.ID
	}{
		{"a save of a whole account with the same status", updateAccount(directoryapi.NewAccount{Email: field.Some("jo@example.test"),
			GivenName: field.Some("Joe"), Surname: field.Some("Doe"), Status: enabled}), id.ID{}},
		{"a new password", updateAccount(directoryapi.NewAccount{Password: field.Some("An0ther!password")}), account.ID},
		{"a disabled account", updateAccount(directoryapi.NewAccount{Status: disabled}), account.ID},
		{"an enabled account", updateAccount(directoryapi.NewAccount{Status: enabled}), account.ID},
		{"a save of a group with the same status", updateGroup(directoryapi.NewGroup{Description: field.Some("x"), Status: enabled}), id.ID{}},
		{"a disabled group", updateGroup(directoryapi.NewGroup{Status: disabled}), group.ID},
		{"a save of a directory with the same status", func(ctx context.Context) error {
			_, err := svc.UpdateDirectory(ctx, in, directory.NewDirectory{Description: field.Some("x"), Status: enabled})
			return err
		}, id.ID{}},
		{"a refused change", func(ctx context.Context) error {
			if _, err := svc.UpdateAccount(ctx, id.Ref{Tenant: tenant, ID: owner.ID}, directoryapi.NewAccount{Status: disabled}); err == nil {
				t.Error("the owner can be disabled")
			}
			return nil
		}, id.ID{}},
		{"a deleted group", func(ctx context.Context) error { return svc.DeleteGroup(ctx, group) }, group.ID},
		{"a deleted account", func(ctx context.Context) error { return svc.DeleteAccount(ctx, account) }, account.ID},
	} {
		ctx, endings := caller.CollectEndings(caller.Into(t.Context(), caller.Caller{Tenant: tenant}))
		if err := c.change(ctx); err != nil {
			t.Fatalf("the change, %s, failed: %v", c.what, err)
		}
		var want caller.IDs
		if !c.want.IsZero() {
			want = want.With(c.want)
		}
		if named := caller.ParseEnded([]byte(endings.Header()))[tenant]; named != want {
			t.Errorf("%s names %x, want %x", c.what, named, want)
		}
	}
}
