package provider_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/directorytest"
)

// world is the service with a tenant, a directory and the account jo in it.
type world struct {
	*app.Service
	db                *pg.DB
	tenant, directory id.ID
	account           directoryapi.Account
}

func newWorld(t *testing.T) world {
	t.Helper()
	d := directorytest.New(t, pgtest.Open(t, directorytest.Config), "https://localhost:8443/v1", now)
	w := world{Service: d.Rules, db: d.DB, tenant: d.NewTenant().Tenant.ID}
	w.directory = d.NewDirectory(w.tenant, "Staff")
	w.account = d.NewAccount(w.tenant, w.directory, directoryapi.NewAccount{
		Email: field.Some("jo@example.test"), Username: field.Some("jo"),
	})
	return w
}

// home makes a directory that is the default account store of logins.
func (w world) home(t *testing.T, name string) directoryapi.Store {
	t.Helper()
	v := id.New(now())
	if _, err := w.CreateDirectory(t.Context(),
		directoryapi.CreateDirectory{Tenant: w.tenant, ID: v, Name: name}); err != nil {
		t.Fatal(err)
	}
	return directoryapi.Store{Kind: directoryapi.Directories, ID: v}
}

// links lets the account log in where a store is the default, after a dry run
// that has to tell the same, and returns the outcome.
func (w world) links(t *testing.T, home directoryapi.Store) directoryapi.LinkOutcome {
	t.Helper()
	in := directoryapi.LinkedAccountRequest{
		Tenant: w.tenant, Account: w.account.ID, Store: home, ByEmail: true, Provision: true, DryRun: true,
	}
	dry, err := w.LinkedAccount(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	in.DryRun = false
	out, err := w.LinkedAccount(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if dry.Outcome != out.Outcome || dry.Reason != out.Reason {
		t.Errorf("a dry run tells %s, %s; the login %s, %s", dry.Outcome, dry.Reason, out.Outcome, out.Reason)
	}
	return out.Outcome
}

func (w world) mirror(t *testing.T, directory id.ID) {
	t.Helper()
	if err := pg.MustChange(t.Context(), w.db, `UPDATE directories SET provider_id = 'ldap' WHERE id = $1`,
		directory); err != nil {
		t.Fatal(err)
	}
}

func TestACopyIsAnAccountThatItsDirectoryTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for what, c := range map[string]struct {
		set  func(*testing.T, id.Ref)
		want directoryapi.LinkOutcome
	}{
		"without lists": {func(*testing.T, id.Ref) {}, directoryapi.Provisioned},
		"with its domain on the whitelist": {func(t *testing.T, home id.Ref) {
			w.restrict(t, home, directory.CreationPolicyChange{EmailDomainWhitelist: field.Some([]string{"example.*"})})
		}, directoryapi.Provisioned},
		"with its domain not on the whitelist": {func(t *testing.T, home id.Ref) {
			w.restrict(t, home, directory.CreationPolicyChange{EmailDomainWhitelist: field.Some([]string{"other.test"})})
		}, directoryapi.Unchanged},
		"with its domain on the blacklist": {func(t *testing.T, home id.Ref) {
			w.restrict(t, home, directory.CreationPolicyChange{EmailDomainBlacklist: field.Some([]string{"example.test"})})
		}, directoryapi.Unchanged},
		"that requires a name that it lacks": {func(t *testing.T, home id.Ref) {
			if err := pg.MustChange(t.Context(), w.db,
				`UPDATE schema_fields SET required = true WHERE directory_id = $1 AND name = 'surname'`, home.ID); err != nil {
				t.Fatal(err)
			}
		}, directoryapi.Unchanged},
		"that mirrors another": {func(t *testing.T, home id.Ref) { w.mirror(t, home.ID) }, directoryapi.Unchanged},
	} {
		t.Run("a directory "+what, func(t *testing.T) {
			w := w
			w.account = w.another(t)
			home := w.home(t, what)
			c.set(t, id.Ref{Tenant: w.tenant, ID: home.ID})
			if got := w.links(t, home); got != c.want {
				t.Errorf("the outcome is %s, want %s", got, c.want)
			}
		})
	}
}

// An email that one of the accounts has not verified may be that of another person.
func TestAMatchNeedsAddressesThatAreVerifiedOnBothSides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	account := func(at id.ID, email, status string) directoryapi.Account {
		t.Helper()
		a, err := w.CreateAccount(t.Context(),
			directoryapi.CreateAccount{Tenant: w.tenant, ID: id.New(now()), Directory: at, Account: directoryapi.NewAccount{
				Email: field.Some(email), Password: field.Some(directorytest.Password), EmailVerificationStatus: field.Some(status),
			}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	home := w.home(t, "Home")
	for _, c := range []struct {
		arrival, there string
		want           directoryapi.LinkOutcome
	}{
		{"VERIFIED", "VERIFIED", directoryapi.Linked}, {"VERIFIED", "UNVERIFIED", directoryapi.Unchanged},
		{"UNVERIFIED", "VERIFIED", directoryapi.Unchanged}, {"UNVERIFIED", "UNVERIFIED", directoryapi.Unchanged},
	} {
		t.Run(c.arrival+" "+c.there, func(t *testing.T) {
			w, email := w, id.New(now()).String()+"@example.test"
			w.account = account(w.directory, email, c.arrival)
			account(home.ID, email, c.there)
			if got := w.links(t, home); got != c.want {
				t.Errorf("the outcome is %s, want %s", got, c.want)
			}
		})
	}
}

// restrict changes an account creation policy.
func (w world) restrict(t *testing.T, home id.Ref, change directory.CreationPolicyChange) {
	t.Helper()
	if _, err := w.UpdateCreationPolicy(t.Context(), home, change); err != nil {
		t.Fatal(err)
	}
}

// another makes an account beside that of the world, without names.
func (w world) another(t *testing.T) directoryapi.Account {
	t.Helper()
	v := id.New(now())
	a, err := w.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: w.tenant, ID: v, Directory: w.directory,
		Account: directoryapi.NewAccount{
			Email: field.Some(v.String() + "@example.test"), Password: field.Some(directorytest.Password),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnAccountOfAMirrorIsCopied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mirror(t, w.directory)
	home := w.home(t, "Home")
	if got := w.links(t, home); got != directoryapi.Provisioned {
		t.Errorf("the outcome is %s", got)
	}
	if got := w.links(t, home); got != directoryapi.Followed {
		t.Errorf("the next outcome is %s", got)
	}
}

func TestACopySendsNoMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	home := w.home(t, "Home")
	w.restrict(t, id.Ref{Tenant: w.tenant, ID: home.ID}, directory.CreationPolicyChange{
		VerificationEmailStatus: field.Some("ENABLED"), WelcomeEmailStatus: field.Some("ENABLED"),
	})
	if got := w.links(t, home); got != directoryapi.Provisioned {
		t.Fatalf("the outcome is %s", got)
	}
	if events, err := pg.Value[int](t.Context(), w.db, `SELECT count(*) FROM outbox`); err != nil || events != 0 {
		t.Errorf("the outbox holds %d events, %v", events, err)
	}
}

// counter counts the queries of a pool.
type counter struct{ queries atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.queries.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// counted is the service on a pool whose queries are counted.
func (w world) counted(t *testing.T) (*app.Service, *counter) {
	t.Helper()
	count := &counter{}
	config := w.db.Config()
	config.ConnConfig.Tracer = count
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return directorytest.New(t, pg.FromPool(pool), "https://localhost:8443/v1", now).Rules, count
}

func TestTheQueriesOfALoginDoNotGrowWithItsStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	svc, count := w.counted(t)
	home := w.home(t, "Home")
	w.links(t, home)
	var stores []directoryapi.Store
	for i := range 199 {
		stores = append(stores, w.home(t, fmt.Sprint("Store ", i)))
	}
	last := directoryapi.Store{Kind: directoryapi.Directories, ID: w.directory}
	for what, c := range map[string]struct {
		want int64
		ask  func(stores []directoryapi.Store) error
	}{
		"a password": {1, func(stores []directoryapi.Store) error {
			_, err := svc.Authenticate(t.Context(),
				directoryapi.Authenticate{Tenant: w.tenant, Stores: stores, Login: "jo", Password: directorytest.Password})
			return err
		}},
		"a link that is there": {2, func([]directoryapi.Store) error {
			_, err := svc.LinkedAccount(t.Context(),
				directoryapi.LinkedAccountRequest{
					Tenant: w.tenant, Account: w.account.ID, Store: home, ByEmail: true, Provision: true,
				})
			return err
		}},
		"the directories of a sign-in page": {1, func(stores []directoryapi.Store) error {
			var named []id.ID
			for _, at := range stores {
				named = append(named, at.ID)
			}
			list, err := svc.LoginDirectories(t.Context(), directoryapi.LoginDirectories{Tenant: w.tenant, Directories: named})
			if err == nil && !slices.EqualFunc(list.Items, named,
				func(d directoryapi.LoginDirectory, at id.ID) bool { return d.ID == at }) {
				t.Error("the directories are not those that were asked for, in that order")
			}
			return err
		}},
		"an explanation": {2, func(stores []directoryapi.Store) error {
			_, err := svc.ExplainLogin(t.Context(), directoryapi.ExplainLogin{Tenant: w.tenant, Stores: stores, Login: "jo"})
			return err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			for _, n := range []int{1, 199} {
				before := count.queries.Load()
				if err := c.ask(append(slices.Clone(stores[len(stores)-n:]), last)); err != nil {
					t.Fatal(err)
				}
				if took := count.queries.Load() - before; took != c.want {
					t.Errorf("with %d stores it took %d queries, want %d", n+1, took, c.want)
				}
			}
		})
	}
}
