package directory_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/directory"
)

// imported is a hash of the password of these tests.
const imported = "$service2$SHA-256$3$AAECAwQFBgcICQoLDA0ODw==$+mC8VNjL4pfW9AEZcmD6uHTXr3fyJMmF/UG/KleRnEw="

// preventReuse sets the directory's policy.
func (w world) preventReuse(t *testing.T, entries int) {
	t.Helper()
	if _, err := pg.Exec(t.Context(), w.db, `UPDATE password_policies SET prevent_reuse = $2 WHERE directory_id = $1`,
		w.directory, entries); err != nil {
		t.Fatal(err)
	}
}

// change sets the account's password.
func (w world) change(t *testing.T, password string) error {
	t.Helper()
	_, err := w.UpdateAccount(t.Context(), id.Ref{Tenant: w.tenant, ID: w.account.ID},
		directoryapi.NewAccount{Password: field.Some(password)})
	return err
}

// history counts the former hashes that are kept.
func (w world) history(t *testing.T) int {
	t.Helper()
	n, err := pg.Value[int](t.Context(), w.db, `SELECT count(*) FROM password_history WHERE account_id = $1`, w.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// importAccount makes w's account one that was imported.
func (w *world) importAccount(t *testing.T, hash string) error {
	t.Helper()
	a, err := w.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: w.tenant, ID: id.New(now()), Directory: w.directory, HashedPassword: true,
		Account: directoryapi.NewAccount{
			Email: field.Some("al@example.test"), Username: field.Some("al"), Password: field.Some(hash),
		},
	})
	if err == nil {
		w.account = a
	}
	return err
}

func TestAPasswordMayComeBackAfterSoManyOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.preventReuse(t, 3)
	number := func(n int) string { return fmt.Sprintf("Changeme%d!", n) } // the account begins with 1
	for n := 2; n <= 4; n++ {
		for used := max(1, n-3); used < n; used++ {
			before := w.hash(t)
			if err := w.change(t, number(used)); !errors.Is(err, apierr.PasswordReused) || w.hash(t) != before {
				t.Fatalf("password %d again before password %d: %v", used, n, err)
			}
		}
		if err := w.change(t, number(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.change(t, number(1)); err != nil { // the last three are 2, 3 and 4
		t.Errorf("the fourth last password: %v", err)
	}
	if err := w.login(t, w.Service, "jo", number(1)); err != nil {
		t.Error(err)
	}
}

func TestThePresentPasswordIsTheLastEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	if err := w.change(t, password); err != nil {
		t.Errorf("where reuse is allowed: %v", err)
	}
	w.preventReuse(t, 1)
	if err := w.change(t, password); !errors.Is(err, apierr.PasswordReused) {
		t.Errorf("the present password: %v", err)
	}
	if err := w.change(t, "Changeme2!"); err != nil {
		t.Fatal(err)
	}
	if err := w.change(t, password); err != nil {
		t.Errorf("the second last password: %v", err)
	}
}

func TestAHistoryIsKeptWhileReuseIsForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	if err := w.change(t, "Changeme2!"); err != nil || w.history(t) != 0 {
		t.Fatalf("where reuse is allowed: %v, %d are kept", err, w.history(t))
	}
	w.preventReuse(t, 1)
	for n := range 30 {
		if err := w.change(t, fmt.Sprintf("Changeme1!%d", n)); err != nil {
			t.Fatal(err)
		}
		if got, want := w.history(t), min(n+1, 24); got != want {
			t.Fatalf("after %d changes %d former hashes are kept, want %d", n+1, got, want)
		}
	}
	w.preventReuse(t, 25)
	if err := w.change(t, "Changeme1!5"); !errors.Is(err, apierr.PasswordReused) { // the last 25 are 5 to 29
		t.Errorf("the 25th last password: %v", err)
	}
	if err := w.change(t, "Changeme1!4"); err != nil {
		t.Errorf("the 26th last password: %v", err)
	}
	w.preventReuse(t, 0)
	if err := w.change(t, "Changeme1!4"); err != nil || w.history(t) != 0 {
		t.Errorf("where reuse is allowed again: %v, %d are kept", err, w.history(t))
	}
}

func TestParallelChangesLoseNoHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.preventReuse(t, 25)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if err := w.change(t, fmt.Sprintf("Changeme1!%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.history(t); n != 20 {
		t.Errorf("20 changes left %d former hashes", n)
	}
	for n := range 20 {
		if err := w.change(t, fmt.Sprintf("Changeme1!%d", n)); !errors.Is(err, apierr.PasswordReused) {
			t.Errorf("password %d: %v", n, err)
		}
	}
}

func TestOfParallelChangesToOnePasswordOneIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.preventReuse(t, 1)
	for n := range 5 {
		var made atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				switch err := w.change(t, fmt.Sprintf("Different%d!", n)); {
				case err == nil:
					made.Add(1)
				case !errors.Is(err, apierr.PasswordReused):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if made.Load() != 1 || w.history(t) != n+1 {
			t.Fatalf("the change was made %d times, and %d former hashes are kept", made.Load(), w.history(t))
		}
	}
}

func TestAHistoryEndsWithItsAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.preventReuse(t, 5)
	if err := w.change(t, "Changeme2!"); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteAccount(t.Context(), id.Ref{Tenant: w.tenant, ID: w.account.ID}); err != nil {
		t.Fatal(err)
	}
	if n := w.history(t); n != 0 {
		t.Errorf("%d former hashes are left", n)
	}
}

func TestAnImportedPasswordIsHashedAnewAtTheFirstLogin(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]string{
		"an iterated digest": imported,
		"bcrypt":             "$2y$05$CCCCCCCCCCCCCCCCCCCCC.pULYvdlH63mlfGJ2244MMfsVnwlPAxe",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, directory.CreationPolicyChange{})
			if err := w.importAccount(t, hash); err != nil {
				t.Fatal(err)
			}
			if w.hash(t) != hash {
				t.Fatalf("stored as %s", w.hash(t))
			}
			if err := w.login(t, w.Service, "al", "wrong"); !errors.Is(err, apierr.WrongPassword) || w.hash(t) != hash {
				t.Fatalf("a wrong password: %v", err)
			}
			if err := w.login(t, w.Service, "al", password); err != nil {
				t.Fatal(err)
			}
			own := w.hash(t)
			if !strings.HasPrefix(own, "$argon2id$") {
				t.Fatalf("after a login it is stored as %s", own)
			}
			if err := w.login(t, w.Service, "al", password); err != nil || w.hash(t) != own {
				t.Errorf("the second login: %v, stored as %s", err, w.hash(t))
			}
		})
	}
}

func TestParallelFirstLoginsLeaveOneHash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	if err := w.importAccount(t, imported); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), w.db, `CREATE TABLE written (hash text);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO written VALUES (NEW.password_hash); RETURN NEW; END $$;
		CREATE TRIGGER note AFTER UPDATE OF password_hash ON accounts FOR EACH ROW EXECUTE FUNCTION note()`); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := w.login(t, w.Service, "al", password); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, err := pg.Value[int](t.Context(), w.db, `SELECT count(*) FROM written`); err != nil || n != 1 {
		t.Errorf("50 logins wrote %d hashes (%v)", n, err)
	}
}

func TestALateRehashLeavesAChangedPasswordAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	if err := w.importAccount(t, imported); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { _ = w.login(t, w.Service, "al", password) }) // fails where the change was first
	}
	if err := w.change(t, "Another1!"); err != nil {
		t.Error(err)
	}
	all.Wait()
	if err := w.login(t, w.Service, "al", "Another1!"); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if err := w.login(t, w.Service, "al", password); !errors.Is(err, apierr.WrongPassword) {
		t.Errorf("the former password: %v", err)
	}
}

func TestAnImportedPasswordIsAnEntryOfTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.preventReuse(t, 2)
	if err := w.importAccount(t, imported); err != nil {
		t.Fatal(err)
	}
	if err := w.change(t, password); !errors.Is(err, apierr.PasswordReused) {
		t.Errorf("the imported password, never used here: %v", err)
	}
	if err := w.change(t, "Another1!"); err != nil {
		t.Fatal(err)
	}
	if err := w.change(t, password); !errors.Is(err, apierr.PasswordReused) {
		t.Errorf("the imported password as the former one: %v", err)
	}
}

func TestACreationThatIsRepeatedIsNoReuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.preventReuse(t, 5)
	again, err := w.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: w.tenant, ID: w.account.ID, Directory: w.directory,
		Account: directoryapi.NewAccount{
			Email: field.Some("jo@example.test"), Username: field.Some("jo"), Password: field.Some(password),
		},
	})
	if err != nil || again.ID != w.account.ID {
		t.Errorf("the same creation again: %v", err)
	}
}

func TestAPasswordIsNotCutAtWhereBcryptStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	const hash = "$2a$04$CCCCCCCCCCCCCCCCCCCCC.mDyzbhj.9K0apb9O/AGMWwoLXiYAu6u" // of a, 72 times
	if err := w.importAccount(t, hash); err != nil {
		t.Fatal(err)
	}
	a := func(n int) string { return strings.Repeat("a", n) }
	if err := w.login(t, w.Service, "al", a(71)); !errors.Is(err, apierr.WrongPassword) {
		t.Errorf("71 characters: %v", err)
	}
	if err := w.login(t, w.Service, "al", a(80)); err != nil { // as where it comes from
		t.Fatal(err)
	}
	if err := w.login(t, w.Service, "al", a(72)); !errors.Is(err, apierr.WrongPassword) {
		t.Errorf("72 of 80 characters after the first login: %v", err)
	}
	if err := w.login(t, w.Service, "al", a(80)); err != nil {
		t.Errorf("all characters: %v", err)
	}
}

func TestAnAbsurdPasswordAtLoginIsAWrongOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	for _, each := range []string{strings.Repeat("a", 1<<20), password + "\x00", "\xff\xfe"} {
		if err := w.login(t, w.Service, "jo", each); !errors.Is(err, apierr.WrongPassword) {
			t.Errorf("the login with %.12q returned %v, want %v", each, err, apierr.WrongPassword)
		}
		if err := w.login(t, w.Service, "nobody", each); !errors.Is(err, apierr.NoSuchAccount) {
			t.Errorf("%.12q for an unknown login: %v", each, err)
		}
	}
	if err := w.login(t, w.Service, "jo", password); err != nil {
		t.Error(err)
	}
}
