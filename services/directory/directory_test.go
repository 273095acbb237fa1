package directory_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/directory/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var cheap = pwhash.Cost{Memory: 64, Time: 1, Threads: 1}

func now() time.Time { return time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC) }

func open(t testing.TB, db *pg.DB, cost pwhash.Cost) *app.Service {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return newService(store.New(db, now), ring, cost)
}

// newService makes a replica of the service.
func newService(s *store.Store, ring *secure.Keyring, cost pwhash.Cost) *app.Service {
	return app.New(s, secure.NewPasswords(cost, 2, 1000), ring, "https://localhost:8443/v1", now, app.Rules{
		Config: directory.Config{VerificationTTL: time.Hour, Alias: "service"},
	})
}

// sealing is a service whose master key the test has, with a tenant.
func sealing(t testing.TB) (*app.Service, *pg.DB, *secure.Keyring, id.ID) {
	t.Helper()
	d := directorytest.New(t, pgtest.Open(t, store.Config), "https://localhost:8443/v1", now)
	return d.Rules, d.DB, d.Ring, d.NewTenant().Tenant.ID
}

// world is a tenant with one directory and one account.
type world struct {
	*app.Service
	db        *pg.DB
	tenant    id.ID
	directory id.ID
	account   directoryapi.Account
}

const password = "Changeme1!"

func newWorld(t testing.TB, policy directory.CreationPolicyChange) world {
	t.Helper()
	db := pgtest.Open(t, store.Config)
	w := world{Service: open(t, db, cheap), db: db, tenant: id.New(now()), directory: id.New(now())}
	w.fill(t, policy)
	return w
}

// fill creates the tenant, its directory with the policy, and the account.
func (w *world) fill(t testing.TB, policy directory.CreationPolicyChange) {
	t.Helper()
	_, err := w.SignUp(t.Context(), directoryapi.SignUp{
		Tenant: w.tenant, Directory: id.New(now()), Owner: id.New(now()), Key: "calm-otter",
		DirectoryName: "Service Administrators", Email: "owner@example.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateDirectory(t.Context(),
		directoryapi.CreateDirectory{Tenant: w.tenant, ID: w.directory, Name: "Staff"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.UpdateCreationPolicy(t.Context(), id.Ref{Tenant: w.tenant, ID: w.directory}, policy); err != nil {
		t.Fatal(err)
	}
	w.account, err = w.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: w.tenant, ID: id.New(now()), Directory: w.directory, Workflow: true,
		Account: directoryapi.NewAccount{
			Email: field.Some("jo@example.test"), Username: field.Some("jo"), Password: field.Some(password),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w world) login(t *testing.T, svc *app.Service, login, password string) error {
	t.Helper()
	_, err := svc.Authenticate(t.Context(), directoryapi.Authenticate{
		Tenant: w.tenant, Stores: []directoryapi.Store{{Kind: "directories", ID: w.directory}}, Login: login,
		Password: secure.Secret(password),
	})
	return err
}

// Clients compare these literals.
func TestReasonsOfRefusedLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	for login, want := range map[string]string{
		"jo": "Login attempt failed because the specified password is incorrect.",
		"al": "Login attempt failed because there is no Account in the Application's associated Account Stores with the specified " +
			"username or email.",
	} {
		if text := apierr.From(w.login(t, w.Service, login, "wrong")).DeveloperMessage(); text != want {
			t.Errorf("of %s it is %q", login, text)
		}
	}
}

func (w world) hash(t *testing.T) string {
	t.Helper()
	hash, err := pg.Value[string](t.Context(), w.db, `SELECT password_hash FROM accounts WHERE id = $1`, w.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestALoginUnderAnotherCostHashesThePasswordAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	former := w.hash(t)
	dearer := open(t, w.db, pwhash.Cost{Memory: 128, Time: 1, Threads: 1})
	if err := w.login(t, dearer, "jo", "wrong"); !errors.Is(err, apierr.WrongPassword) || w.hash(t) != former {
		t.Fatalf("a wrong password: %v", err)
	}
	if err := w.login(t, dearer, "JO", password); err != nil {
		t.Fatal(err)
	}
	if hash := w.hash(t); hash == former || !strings.Contains(hash, "m=128,") {
		t.Fatalf("the stored hash is %.30s…", hash)
	}
	if err := w.login(t, w.Service, "jo@example.test", password); err != nil {
		t.Fatalf("the same password under its new hash: %v", err)
	}
}

func TestTheStateOfAnAccountShowsOnlyToWhoKnowsItsPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	for status, want := range map[string]*apierr.Error{
		"DISABLED": apierr.AccountDisabled, "UNVERIFIED": apierr.AccountUnverified,
	} {
		if _, err := w.UpdateAccount(t.Context(), id.Ref{Tenant: w.tenant, ID: w.account.ID},
			directoryapi.NewAccount{Status: field.Some(status)}); err != nil {
			t.Fatal(err)
		}
		if err := w.login(t, w.Service, "jo", "wrong"); !errors.Is(err, apierr.WrongPassword) {
			t.Errorf("%s with a wrong password: %v", status, err)
		}
		if err := w.login(t, w.Service, "jo", password); !errors.Is(err, want) {
			t.Errorf("%s with the password: %v", status, err)
		}
	}
}

func TestAnUnknownLoginCostsTheSameWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	costly := open(t, w.db, pwhash.Cost{Memory: 8 * 1024, Time: 1, Threads: 1})
	if err := w.login(t, costly, "jo", password); err != nil { // hashed again under the cost of this test
		t.Fatal(err)
	}
	timed := func(login string, want *apierr.Error) time.Duration {
		started := time.Now()
		if err := w.login(t, costly, login, "wrong"); !errors.Is(err, want) {
			t.Fatal(err)
		}
		return time.Since(started)
	}
	var ratios []float64 // pair by pair, so that a busy machine counts for both
	for range 41 {
		ratios = append(ratios, float64(timed("jo", apierr.WrongPassword))/float64(timed("nobody", apierr.NoSuchAccount)))
	}
	slices.Sort(ratios)
	if median := ratios[len(ratios)/2]; median < 0.5 || median > 2 {
		t.Errorf("a known login takes %.2f times as long as an unknown one", median)
	}
}

// outbox returns the types of the events in the outbox, in order.
func (w world) outbox(t *testing.T) []string {
	t.Helper()
	rows, err := pg.All[struct{ Type string }](t.Context(), w.db,
		`SELECT convert_from(envelope, 'UTF8')::json->>'type' AS type FROM outbox ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	types := []string{}
	for _, row := range rows {
		types = append(types, row.Type)
	}
	return types
}

func TestFactsAndTheirEventsAreCommittedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{VerificationEmailStatus: field.Some("ENABLED")})
	ctx := t.Context()
	if _, err := w.VerifyEmail(ctx,
		directoryapi.VerifyEmail{Tenant: w.tenant, Token: w.account.VerificationToken}); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteAccount(ctx, id.Ref{Tenant: w.tenant, ID: w.account.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.DeleteDirectory(ctx, directoryapi.Ref{Tenant: w.tenant, ID: w.directory}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.outbox(t),
		[]string{"AccountRegistered", "AccountVerified", "AccountDeleted", "DirectoryDeleted"}; !slices.Equal(got, want) {
		t.Errorf("the outbox holds %v, want %v", got, want)
	}
	// A failed call writes neither a row nor an event.
	if err := w.DeleteAccount(ctx, id.Ref{Tenant: w.tenant, ID: w.account.ID}); !errors.Is(err, apierr.NotFound) {
		t.Fatal(err)
	}
	if n := len(w.outbox(t)); n != 4 {
		t.Errorf("the outbox holds %d events after a refusal", n)
	}
}

func TestATokenIsNeverStoredOrSentInClear(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{VerificationEmailStatus: field.Some("ENABLED")})
	token := w.account.VerificationToken.Reveal()
	for _, table := range []string{"accounts", "outbox"} {
		rows, err := pg.All[struct{ Row string }](t.Context(), w.db, `SELECT t::text AS row FROM `+table+` t`)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if strings.Contains(row.Row, token) || strings.Contains(row.Row, password) {
				t.Errorf("%s shows a secret: %s", table, row.Row)
			}
		}
	}
}

// Neither the error for a wrong password nor its time tells whether an account exists or is disabled
// (user enumeration): one hash is computed. Hashes are counted by the memory that each allocates, so
// that no other test may run in parallel.
func TestEveryLoginTakesOneHash(t *testing.T) {
	const memory = 16 << 20
	w := newWorld(t, directory.CreationPolicyChange{})
	dear := open(t, w.db, pwhash.Cost{Memory: memory >> 10, Time: 1, Threads: 1})
	account := func(login, status string) {
		t.Helper()
		_, err := dear.CreateAccount(t.Context(),
			directoryapi.CreateAccount{Tenant: w.tenant, ID: id.New(now()), Directory: w.directory,
				Account: directoryapi.NewAccount{
					Email: field.Some(login + "@example.test"), Username: field.Some(login), Password: field.Some(password),
					Status: field.Some(status),
				}})
		if err != nil {
			t.Fatal(err)
		}
	}
	account("known", "ENABLED")
	account("idle", "DISABLED")
	account("new", "UNVERIFIED")
	account("mirrored", "ENABLED")
	if _, err := pg.Exec(t.Context(), w.db,
		`UPDATE accounts SET password_hash = '' WHERE username = 'mirrored'`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		login, password string
		want            error
	}{
		{"known", "wrong", apierr.WrongPassword},
		{"nobody", "wrong", apierr.NoSuchAccount},
		{"mirrored", "wrong", apierr.WrongPassword},
		{"idle", "wrong", apierr.WrongPassword},
		{"new", "wrong", apierr.WrongPassword},
		{"idle", password, apierr.AccountDisabled},
		{"new", password, apierr.AccountUnverified},
		{"known", password, nil},
	} {
		t.Run(c.login+" "+c.password, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := w.login(t, dear, c.login, c.password)
			runtime.ReadMemStats(&after)
			if refusal := apierr.From(err); !errors.Is(err, c.want) || err != nil &&
				(refusal.Status != 400 || refusal.Message != apierr.WrongPassword.Message) {
				t.Errorf("the login returns %v, want %v", err, c.want)
			}
			if hashes := (after.TotalAlloc - before.TotalAlloc) / memory; hashes != 1 {
				t.Errorf("the login takes %d hashes", hashes)
			}
		})
	}
}
