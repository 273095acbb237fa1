package directory_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agent"
	"github.com/doorward/doorward/services/directory/directorytest"
)

// named is the body of an account with that user name and email.
func named(username, email string) directoryapi.NewAccount {
	return directoryapi.NewAccount{
		Username: field.Some(username), Email: field.Some(email), Password: field.Some(password),
	}
}

func (w world) create(t *testing.T, in directoryapi.NewAccount) (directoryapi.Account, error) {
	t.Helper()
	return w.CreateAccount(t.Context(),
		directoryapi.CreateAccount{Tenant: w.tenant, ID: id.New(now()), Directory: w.directory, Account: in})
}

func (w world) update(t *testing.T, account id.ID, in directoryapi.NewAccount) error {
	t.Helper()
	_, err := w.UpdateAccount(t.Context(), id.Ref{Tenant: w.tenant, ID: account}, in)
	return err
}

func TestALoginNameLeadsToOneAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{}) // with the account jo, jo@example.test
	other, err := w.create(t, named("sam", "sam@example.test"))
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]directoryapi.NewAccount{
		"a user name that is an email":                named("JO@example.test", "free@example.test"),
		"a user name that is an email in other forms": named("ｊｏ@example.test", "free@example.test"),
		"a user name that is a user name":             named("Jo", "free@example.test"),
		"an email that is an email":                   named("free", "Jo@example.test"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.create(t, in); !errors.Is(err, apierr.Exists) {
				t.Errorf("a new account: %v", err)
			}
			if err := w.update(t, other.ID, in); !errors.Is(err, apierr.Exists) {
				t.Errorf("an update: %v", err)
			}
			imported := in
			imported.Password = field.Some("$2y$10$mTkcZAKZ6TA2.q8i3kGAZe8oabf71MN3DnBmUfYdMEEEkhoEf3tBm")
			_, err := w.CreateAccount(t.Context(), directoryapi.CreateAccount{
				Tenant: w.tenant, ID: id.New(now()), Directory: w.directory, Account: imported, HashedPassword: true,
			})
			if !errors.Is(err, apierr.Exists) {
				t.Errorf("an import: %v", err)
			}
		})
	}
	if err := w.login(t, w.Service, "jo@example.test", password); err != nil {
		t.Errorf("the login after all refusals: %v", err)
	}

	t.Run("an email that is a user name", func(t *testing.T) {
		if err := w.update(t, other.ID, named("taken@example.test", "sam@example.test")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.create(t, named("free", "Taken@example.test")); !errors.Is(err, apierr.Exists) {
			t.Errorf("a new account: %v", err)
		}
		if err := w.update(t, w.account.ID, directoryapi.NewAccount{Email: field.Some("Taken@example.test")}); !errors.Is(err,
			apierr.Exists) {
			t.Errorf("an update: %v", err)
		}
	})
	t.Run("a former email is free again, but for a user name that was chosen", func(t *testing.T) {
		own, err := w.create(t,
			directoryapi.NewAccount{Email: field.Some("former@example.test"), Password: field.Some(password)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.update(t, own.ID, directoryapi.NewAccount{Email: field.Some("later@example.test")}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.create(t, named("first", "former@example.test")); err != nil {
			t.Errorf("the former email: %v", err)
		}
		if err := w.update(t, own.ID, directoryapi.NewAccount{Username: field.Some("chosen@example.test")}); err != nil {
			t.Fatal(err)
		}
		if err := w.update(t, own.ID, directoryapi.NewAccount{Email: field.Some("last@example.test")}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.create(t, named("second", "chosen@example.test")); !errors.Is(err, apierr.Exists) {
			t.Errorf("the user name that was chosen: %v", err)
		}
		if err := w.update(t, own.ID, directoryapi.NewAccount{Username: field.Some("own")}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.create(t, named("second", "chosen@example.test")); err != nil {
			t.Errorf("the user name that was given up: %v", err)
		}
	})
	t.Run("an account can exchange its own names", func(t *testing.T) {
		own, err := w.create(t, named("a@example.test", "b@example.test"))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.update(t, own.ID, named("b@example.test", "a@example.test")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a deleted account leaves its names", func(t *testing.T) {
		if err := w.DeleteAccount(t.Context(), id.Ref{Tenant: w.tenant, ID: other.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.create(t, named("sam", "taken@example.test")); err != nil {
			t.Error(err)
		}
	})
	w.checkLoginNames(t)
}

// checkLoginNames compares the login names with the accounts.
func (w world) checkLoginNames(t *testing.T) {
	t.Helper()
	wrong, err := pg.Values[string](t.Context(),
		w.db, `SELECT name || coalesce(n.account_id::text, ' leads nowhere') FROM login_names n FULL JOIN (
			SELECT tenant_id, directory_id, username_folded AS name, id FROM accounts UNION SELECT tenant_id, directory_id, email_folded, id FROM accounts
		) a USING (tenant_id, directory_id, name) WHERE n.account_id IS DISTINCT FROM a.id`)
	if err != nil || len(wrong) > 0 {
		t.Errorf("login names and accounts differ in %q, %v", wrong, err)
	}
}

// Of concurrent writers of one login name, some as user name and some as email, one succeeds, and
// the others are logged.
func TestOfParallelWritersOneGetsALoginName(t *testing.T) {
	t.Parallel()
	const writers = 50
	w := newWorld(t, directory.CreationPolicyChange{})
	var accounts [writers]id.ID
	for i := range accounts {
		a, err := w.create(t, named(fmt.Sprint("user", i), fmt.Sprintf("user%d@example.test", i)))
		if err != nil {
			t.Fatal(err)
		}
		accounts[i] = a.ID
	}
	wanted := func(name string, i int) directoryapi.NewAccount {
		if i%2 == 0 {
			return directoryapi.NewAccount{Username: field.Some(name)}
		}
		return directoryapi.NewAccount{Email: field.Some(name)}
	}
	for name, write := range map[string]func(*testing.T, int) error{
		"registrations": func(t *testing.T, i int) error {
			if i%2 == 0 {
				_, err := w.create(t, named("wanted@example.test", fmt.Sprintf("new%d@example.test", i)))
				return err
			}
			_, err := w.create(t, named(fmt.Sprint("new", i), "Wanted@example.test"))
			return err
		},
		"updates": func(t *testing.T, i int) error { return w.update(t, accounts[i], wanted("desired@example.test", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int32
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					switch err := write(t, i); {
					case err == nil:
						made.Add(1)
					case !errors.Is(err, apierr.Exists):
						t.Errorf("writer %d: %v", i, err)
					}
				})
			}
			all.Wait()
			if made.Load() != 1 {
				t.Errorf("%d writers got the name", made.Load())
			}
		})
	}
	w.checkLoginNames(t)
}

// Updates that exchange names at the same time end, and no name is lost.
func TestParallelExchangesOfLoginNamesEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	other, err := w.create(t, named("sam", "sam@example.test"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			account, name := w.account.ID, []string{"red", "blue"}[i/2%2]
			if i%2 == 0 {
				account = other.ID
			}
			if err := w.update(t, account, directoryapi.NewAccount{Username: field.Some(name)}); err != nil &&
				!errors.Is(err, apierr.Exists) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.checkLoginNames(t)
}

// lockedLog collects what is logged.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what was logged since the last call.
func (l *lockedLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func TestALoginNameThatMixesScriptsIsLogged(t *testing.T) {
	w := newWorld(t, directory.CreationPolicyChange{})
	at := directorytest.NewAgent(t, w.Service, w.tenant)
	log, former := &lockedLog{}, slog.Default()
	slog.SetDefault(slog.New(telemetry.Handler(log, slog.LevelWarn)))
	t.Cleanup(func() { slog.SetDefault(former) })
	wantLine := func(what, account string) {
		t.Helper()
		line := log.take()
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `"level":"WARN"`) ||
			!strings.Contains(line, `"account":"`+account) ||
			!strings.Contains(line, `"tenant":"`+w.tenant.String()+`"`) || strings.Contains(line, "nna") {
			t.Errorf("%s is logged as %q", what, line)
		}
	}
	wantNone := func(what string) {
		t.Helper()
		if line := log.take(); line != "" {
			t.Errorf("%s is logged: %q", what, line)
		}
	}
	create := func(username, email string) id.ID {
		t.Helper()
		a, err := w.create(t, named(username, email))
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	update := func(account id.ID, in directoryapi.NewAccount) {
		t.Helper()
		if err := w.update(t, account, in); err != nil {
			t.Fatal(err)
		}
	}
	anna := create("anna", "anna@example.test")
	create("анна", "анна@example.test")
	wantNone("an account of one script")
	lookalike := create("аnna", "other@example.test")
	wantLine("a new account", lookalike.String())
	if _, err := w.create(t, named("аnna", "third@example.test")); !errors.Is(err, apierr.Exists) {
		t.Errorf("a second account of the name: %v", err)
	}
	wantNone("an account that was refused")
	update(lookalike, directoryapi.NewAccount{Surname: field.Some("Doe"), Username: field.Some("Аnna")})
	wantNone("an update that keeps the login names")
	update(anna, directoryapi.NewAccount{Email: field.Some("anna@exаmple.test")})
	wantLine("a new email", anna.String())

	entry := agent.SyncAccount{
		ExternalID: field.Some("jo"), Username: field.Some("аnna"), Email: field.Some("jo@corp.test"),
	}
	syncWith := func(change func(*agent.SyncAccount)) {
		t.Helper()
		change(&entry)
		if err := w.Sync(t.Context(), at, agent.Sync{Accounts: field.Some([]agent.SyncAccount{entry})}); err != nil {
			t.Fatal(err)
		}
	}
	syncWith(func(*agent.SyncAccount) {})
	wantLine("a new account of a mirror", "")
	syncWith(func(a *agent.SyncAccount) { a.Surname = field.Some("Doe") })
	wantNone("an account of a mirror that keeps its login names")
	syncWith(func(a *agent.SyncAccount) { a.Username = field.Some("αnna") })
	wantLine("a new user name of an account of a mirror", "")
}
