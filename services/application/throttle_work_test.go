package application_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// A hundred concurrent attempts, half of them in another process, learn no more than sequential
// ones.
func TestParallelAttemptsShareOneLimit(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	db, _ := withCountedTrips(t, x.Deployment)
	doors := []throttledApplication{x, x.replica(db)}
	for _, c := range []struct {
		what  string
		login func(int) string
		from  func(int) string
		most  int
	}{
		{"at one address", func(int) string { return jo }, func(int) string { return home }, limits.Pair.Failures},
		{"at many", func(int) string { return "sam@example.test" }, addressNumber, limits.Account.Failures},
	} {
		t.Run(c.what, func(t *testing.T) {
			var group sync.WaitGroup
			results := make([]error, 100)
			for i := range results {
				group.Go(func() { results[i] = doors[i%2].logIn(c.from(i), c.login(i), wrong) })
			}
			group.Wait()
			answered, refused := 0, 0
			for _, err := range results {
				switch {
				case errors.Is(err, apierr.WrongPassword), errors.Is(err, apierr.NoSuchAccount):
					answered++
				case errors.Is(err, apierr.TooMany):
					refused++
				default:
					t.Error(err)
				}
			}
			if answered != c.most || answered+refused != len(results) {
				t.Errorf("%d were answered, %d were refused; want %d answered", answered, refused, c.most)
			}
			for _, at := range doors {
				at.withTB(t).expect(apierr.TooMany, c.from(0), c.login(0), right)
			}
		})
	}
}

// A right password is refused where concurrent attempts reach the limit while it is verified, also
// for an account that may not log in.
func TestARightPasswordComesTooLate(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.disabled("idle@example.test")
	for login, want := range map[string]error{jo: nil, "idle@example.test": apierr.AccountDisabled} {
		t.Run(login, func(t *testing.T) {
			x := x.withTB(t)
			asked := 0
			x.Directories.Break("Authenticate", fault.Before, func() error {
				if asked++; asked == 1 {
					x.failLogins(limits.Pair.Failures, home, login)
				}
				return nil
			})
			x.expect(apierr.TooMany, home, login, right)
			x.Clock.Move(limits.Pair.Within)
			x.expect(want, home, login, right)
		})
	}
}

// disabled creates an account that may not log in.
func (x throttledApplication) disabled(email string) {
	x.Helper()
	body := directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(applicationtest.Password),
		Status: field.Some("DISABLED")}
	if _, err := x.Directories.CreateAccount(x.Context(),
		directoryapi.CreateAccount{Tenant: x.tenant, ID: x.NewID(), Directory: x.people, Account: body}); err != nil {
		x.Fatal(err)
	}
}

// A login writes nothing where a recent success is recorded and no login has failed since. A failure
// at a busy address counts the successes there only when the limit is reached.
func TestWhatCountingCosts(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	db, count := withCountedTrips(t, x.Deployment)
	at := x.replica(db)
	cost := func(want error, login string, password secure.Secret) int64 {
		t.Helper()
		before := count.trips.Load()
		at.expect(want, home, login, password)
		return count.trips.Load() - before
	}
	first := cost(nil, jo, right)
	if again := cost(nil, jo, right); again != 2 || first <= again {
		t.Errorf("the first login takes %d round trips, the second %d", first, again)
	}
	at.failLogins(1, home, jo)
	after := cost(nil, jo, right)
	if again := cost(nil, jo, right); again != 2 || after <= again {
		t.Errorf("a login after a failure takes %d round trips, the next %d", after, again)
	}
	for n := range 40 { // make room for ten more
		x.Account(t, x.tenant, x.people, user(n))
		at.expect(nil, home, user(n), right)
	}
	failure := cost(apierr.NoSuchAccount, "x"+user(0), wrong)
	for n := range limits.Address.Failures {
		at.expect(apierr.NoSuchAccount, home, "x"+user(1+n), wrong)
	}
	if later := cost(apierr.NoSuchAccount, "y", wrong); later != failure {
		t.Errorf("a failure takes %d round trips, one in the room that was made %d", failure, later)
	}
}

// Known and unknown login names take the same calls and the same queries.
func TestKnownAndUnknownLoginsTakeTheSameWork(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	db, count := withCountedTrips(t, x.Deployment)
	asked := 0
	x.Directories.Break("Authenticate", fault.Before, func() error {
		asked++
		return nil
	})
	at := x.replica(db)
	work := func(from, login string) (all []int64) {
		for i := range limits.Pair.Failures + 2 {
			trips, questions := count.trips.Load(), asked
			err := at.logIn(from, login, wrong)
			if refused := errors.Is(err, apierr.TooMany); refused != (i >= limits.Pair.Failures) {
				t.Fatalf("the try %d of %s returns %v", i+1, login, err)
			}
			all = append(all, count.trips.Load()-trips, int64(asked-questions))
		}
		return all
	}
	work(addressNumber(0), "warm@example.test")
	known, unknown := work(addressNumber(1), jo), work(addressNumber(2), "nobody@example.test")
	if fmt.Sprint(known) != fmt.Sprint(unknown) {
		t.Errorf("a known login takes the round trips and questions %v, an unknown one %v", known, unknown)
	}
	if refused := known[len(known)-2:]; refused[0] != 1 || refused[1] != 0 {
		t.Errorf("a refusal takes %d round trips and %d questions, want 1 and 0", refused[0], refused[1])
	}
}

func TestNothingIsStoredInClear(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.expect(nil, home, jo, right)
	x.failLogins(3, addressNumber(1), jo)
	rows, err := pg.Values[string](t.Context(), x.DB, `SELECT t::text FROM login_counters t`)
	if err != nil || len(rows) != 4 {
		t.Fatalf("there are %d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		for _, clear := range []string{"jo", "example", home, addressNumber(1), "Wrong"} {
			if strings.Contains(row, clear) && clear != "jo" || strings.Contains(row, jo) {
				t.Errorf("%s holds %s", row, clear)
			}
		}
	}
	other := limits
	other.LoginKey = "another key"
	svc := application.New(store.New(x.DB, x.Clock.Now), x.Directories, applicationtest.Base, x.Clock.Now, limited(other))
	x.service = svc
	x.failLogins(3, addressNumber(1), jo)
	if n, err := pg.Value[int](t.Context(), x.DB,
		`SELECT count(DISTINCT login) FROM login_counters WHERE login <> ''`); err != nil || n != 2 {
		t.Errorf("under two keys a login is stored as %d hashes, %v", n, err)
	}
}

func TestCountersArePurged(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.expect(nil, home, jo, right)
	x.failLogins(1, home, jo)
	x.failLogins(1, addressNumber(1), jo)
	insert := func(n int, expires time.Time) {
		t.Helper()
		_, err := pg.Exec(t.Context(), x.DB, `INSERT INTO login_counters (tenant_id, login, address, failures, failure_limit,
			ends_at, expires_at)
			SELECT $1, 'l' || $3::timestamptz, 'a' || n, 1, 1, $3, $3 FROM generate_series(1, $2) n`, x.tenant, n, expires)
		if err != nil {
			t.Fatal(err)
		}
	}
	insert(2500, x.Clock.Now().Add(-time.Millisecond))
	insert(7, x.Clock.Now())
	left := func(want int) {
		t.Helper()
		if err := x.service.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := pg.Value[int](t.Context(), x.DB, `SELECT count(*) FROM login_counters`); err != nil || n != want {
			t.Errorf("%d counters are left, %v; want %d", n, err, want)
		}
	}
	left(7 + 1 + 3)
	x.Clock.Move(limits.Account.Within + time.Millisecond)
	left(1) // that makes the address known
	x.Clock.Move(limits.KnownFor)
	left(0)
}

// What a login costs besides its hash: the stand-in of the directory service has
// none. Before anything was counted it was the first of these.
func BenchmarkLogin(b *testing.B) {
	x := openThrottled(b)
	data := store.New(x.DB, x.Clock.Now)
	x.expect(nil, home, jo, right)
	for what, run := range map[string]func() error{
		"login order alone": func() error {
			_, err := data.LoginOrder(b.Context(), x.tenant, x.app)
			return err
		},
		"success":       func() error { return x.logIn(home, jo, right) },
		"success again": func() error { x.Clock.Move(13 * time.Hour); return x.logIn(home, jo, right) },
		"failure": func() error {
			x.Clock.Move(time.Hour)
			x.expect(apierr.WrongPassword, addressNumber(1), jo, wrong)
			return nil
		},
		"refusal": func() error { x.expect(apierr.TooMany, addressNumber(2), "sam@example.test", wrong); return nil },
	} {
		b.Run(what, func(b *testing.B) {
			if what == "refusal" {
				for range limits.Pair.Failures {
					x.expect(apierr.NoSuchAccount, addressNumber(2), "sam@example.test", wrong)
				}
			}
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
