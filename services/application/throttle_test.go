package application_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
)

const (
	jo   = "jo@example.test"
	home = "203.0.113.1"
	// server is a client with an API key that does not name the address of its user.
	server = "a server"
	wrong  = secure.Secret("Wrong1234")
	right  = secure.Secret(applicationtest.Password)
)

// limits are the limits of the deployment under test.
var limits = applicationtest.Config.Throttle

// limited is the configuration of a deployment with limits.
func limited(to throttle.Config) application.Config {
	cfg := applicationtest.Config
	cfg.Throttle = to
	return cfg
}

// throttledApplication is an application whose only store has the account Jo, in one process of a
// deployment.
type throttledApplication struct {
	testing.TB
	*applicationtest.Deployment
	service             *application.Service
	tenant, app, people id.ID
}

func openThrottled(t testing.TB) throttledApplication {
	t.Helper()
	d := applicationtest.Open(t)
	x := throttledApplication{TB: t, Deployment: d, service: d.Service.Core}
	x.tenant, _ = d.Tenant(t)
	x.app, x.people = newApplication(t, d, x.tenant), d.Directory(t, x.tenant, "People")
	newMapping(t, d, x.tenant, x.app, x.people)
	d.Account(t, x.tenant, x.people, jo)
	return x
}

// withTB returns the same application for a subtest.
func (x throttledApplication) withTB(t *testing.T) throttledApplication {
	x.TB = t
	return x
}

// replica returns the same application in another process of the deployment.
func (x throttledApplication) replica(db *pg.DB) throttledApplication {
	x.service = application.New(store.New(db, x.Clock.Now), x.Directories, applicationtest.Base, x.Clock.Now,
		limited(limits))
	return x
}

// logIn attempts a login from a client address.
func (x throttledApplication) logIn(from, login string, password secure.Secret) error {
	ctx := caller.Into(x.Context(), caller.Caller{Tenant: x.tenant, Key: "key"})
	if from != server {
		address, err := netip.ParseAddr(from)
		if err != nil {
			x.Fatal(err)
		}
		ctx = caller.Into(x.Context(), caller.Caller{Tenant: x.tenant, Address: address})
	}
	_, err := x.service.Login(ctx,
		applicationapi.Login{Tenant: x.tenant, Application: x.app, Login: login, Password: password})
	return err
}

// expect attempts a login from a client address, and checks its error.
func (x throttledApplication) expect(want error, from, login string, password secure.Secret) {
	x.Helper()
	if err := x.logIn(from, login, password); !errors.Is(err, want) {
		x.Fatalf("%s at %s gets %v, want %v", login, from, err, want)
	}
}

// failLogins attempts n logins with a wrong password.
func (x throttledApplication) failLogins(n int, from, login string) {
	x.Helper()
	for range n {
		x.expect(apierr.WrongPassword, from, login, wrong)
	}
}

// addressNumber returns one of many client addresses.
func addressNumber(n int) string { return fmt.Sprintf("198.51.%d.%d", 100+n/250, n%250) }

func TestALoginAtOneAddressHasSoManyFailures(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.expect(nil, home, jo, right)
	x.failLogins(limits.Pair.Failures-1, home, jo)
	x.expect(nil, home, jo, right) // resets the failures
	x.failLogins(1, home, jo)
	x.Clock.Move(limits.Pair.Within / 3) // of the window, which has begun
	x.failLogins(limits.Pair.Failures-1, home, jo)

	for _, password := range []secure.Secret{wrong, right} {
		refusal := apierr.From(x.logIn(home, jo, password))
		if refusal.Status != 429 || refusal.Code != 429 || refusal.RetryAfter != limits.Pair.Within*2/3 {
			t.Errorf("the refusal is %+v", refusal)
		}
	}
	for range 3 * limits.Pair.Failures {
		x.expect(apierr.TooMany, home, jo, wrong)
	}
	x.expect(apierr.TooMany, home, "JO@example.test", right)
	x.expect(nil, "203.0.113.2", jo, right)
	x.expect(apierr.NoSuchAccount, home, "sam@example.test", right)

	t.Run("which the refusals do not make more of", func(t *testing.T) {
		x := x.withTB(t)
		x.Clock.Move(limits.Pair.Within*2/3 - time.Millisecond)
		x.expect(apierr.TooMany, home, jo, right)
		x.Clock.Move(time.Millisecond)
		x.failLogins(limits.Pair.Failures, home, jo)
		x.expect(apierr.TooMany, home, jo, right)
		x.Clock.Move(limits.Pair.Within)
		x.expect(nil, home, jo, right)
	})
}

func TestAnotherSpellingIsTheSameLogin(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.Account(t, x.tenant, x.people, "strauß@example.test")
	spellings := []string{"strauß@example.test", "STRAUSS@example.test", "ｓｔｒａｕß@example.test"}
	for i := range limits.Pair.Failures {
		x.failLogins(1, home, spellings[i%len(spellings)])
	}
	for _, login := range spellings {
		x.expect(apierr.TooMany, home, login, right)
	}
}

func TestANetworkIsOneAddress(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	for i := range limits.Pair.Failures {
		x.failLogins(1, fmt.Sprintf("2001:db8:0:1::%x", i), jo)
	}
	x.expect(apierr.TooMany, "2001:db8:0:1:ffff::1", jo, right)
	x.expect(nil, "2001:db8:0:2::1", jo, right)
	x.failLogins(limits.Pair.Failures, "::ffff:203.0.113.9", jo)
	x.expect(apierr.TooMany, "203.0.113.9", jo, right)
	x.expect(nil, "203.0.113.10", jo, right)
}

func TestAnAttackFromManyAddressesDoesNotLockTheOwnerOut(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.expect(nil, home, jo, right)
	for i := range limits.Account.Failures {
		x.failLogins(1, addressNumber(i), jo)
	}
	refusal := apierr.From(x.logIn(addressNumber(1000), jo, right))
	if refusal.Code != 429 || refusal.RetryAfter != limits.Account.Within {
		t.Errorf("the refusal is %+v", refusal)
	}
	x.expect(apierr.TooMany, addressNumber(0), jo, wrong)

	x.expect(nil, home, jo, right)
	x.failLogins(limits.Pair.Failures-1, home, jo) // and mistypes as often as ever
	x.expect(nil, home, jo, right)
	x.expect(apierr.NoSuchAccount, addressNumber(1000), "sam@example.test", right)

	t.Run("and ends with its window", func(t *testing.T) {
		x := x.withTB(t)
		x.Clock.Move(limits.Account.Within)
		x.expect(nil, addressNumber(1000), jo, right)
	})
	t.Run("nor on the device that was new then", func(t *testing.T) {
		x := x.withTB(t)
		for i := range limits.Account.Failures {
			x.failLogins(1, addressNumber(i), jo)
		}
		x.expect(nil, addressNumber(1000), jo, right)
	})
	t.Run("while an address is known", func(t *testing.T) {
		x := x.withTB(t)
		x.Clock.Move(limits.KnownFor - time.Millisecond)
		for i := range limits.Account.Failures {
			x.failLogins(1, addressNumber(i), jo)
		}
		x.expect(nil, addressNumber(1000), jo, right)
	})
	t.Run("which is for so long after the last login", func(t *testing.T) {
		x := x.withTB(t)
		x.Clock.Move(limits.KnownFor)
		for i := range limits.Account.Failures {
			x.failLogins(1, addressNumber(i), jo)
		}
		x.expect(apierr.TooMany, addressNumber(1000), jo, right)
	})
}

// An address whose record has expired is known again after the next successful login, also where
// the record is younger than the age at which successes are renewed.
func TestAnAddressIsTrustedAgain(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	brief := limits
	brief.KnownFor = time.Hour
	x.service = application.New(store.New(x.DB, x.Clock.Now), x.Directories, applicationtest.Base, x.Clock.Now,
		limited(brief))
	for range 2 {
		x.expect(nil, home, jo, right)
		for i := range limits.Account.Failures {
			x.failLogins(1, addressNumber(i), jo)
		}
		x.expect(nil, home, jo, right)
		x.Clock.Move(limits.Account.Within)
	}
}

// A successful login renews the record of the last one, so that an address stays known for as long
// as it is used.
func TestAnAddressStaysTrustedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	for range 2 {
		x.expect(nil, home, jo, right)
		x.Clock.Move(limits.KnownFor * 2 / 3)
	}
	for i := range limits.Account.Failures {
		x.failLogins(1, addressNumber(i), jo)
	}
	x.expect(nil, home, jo, right)
}

// The clocks of two processes differ by a little.
func TestAProcessWhoseClockIsBehindDoesNotRefuseASuccess(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.expect(nil, home, jo, right)
	behind := func() time.Time { return x.Clock.Now().Add(-time.Minute) }
	x.service = application.New(store.New(x.DB, behind), x.Directories, applicationtest.Base, behind, limited(limits))
	x.expect(nil, home, jo, right)
}

// A failure at a known address does not count as one of the attempts from other addresses.
func TestFailuresAtATrustedAddressDoNotCountElsewhere(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	for range limits.Account.Failures/(limits.Pair.Failures-1) + 1 {
		x.expect(nil, home, jo, right)
		x.failLogins(limits.Pair.Failures-1, home, jo)
	}
	x.expect(nil, addressNumber(1), jo, right)
}

func TestAnAddressHasSoManyFailuresWithAllLogins(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.Account(t, x.tenant, x.people, "ann@example.test")
	x.expect(nil, home, jo, right)
	for i := range limits.Address.Failures {
		x.expect(apierr.NoSuchAccount, home, user(i), wrong)
	}
	refusal := apierr.From(x.logIn(home, "ann@example.test", right))
	if refusal.Code != 429 || refusal.RetryAfter != limits.Address.Within {
		t.Errorf("the refusal is %+v", refusal)
	}
	x.expect(apierr.TooMany, home, user(1000), wrong)
	x.expect(nil, addressNumber(1), "ann@example.test", right)
	x.expect(nil, home, jo, right) // a user of that address, whatever others do there
	x.failLogins(limits.Pair.Failures, home, jo)
	x.expect(apierr.TooMany, home, jo, right)
	x.Clock.Move(limits.Address.Within)
	x.expect(nil, home, "ann@example.test", right)
}

// A client with an API key that does not name the addresses of its users has one address for all of
// them: its failures are those of the login and, at a rate that no honest site reaches, of the application.
func TestAServerThatNamesNoAddressesDoesNotLockItsUsersOut(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.Account(t, x.tenant, x.people, "ann@example.test")
	x.Account(t, x.tenant, x.people, "bob@example.test")
	other := x
	other.app = newApplication(t, x.Deployment, x.tenant)
	newMapping(t, x.Deployment, x.tenant, other.app, x.people)
	guess := func(from, to int) {
		for i := from; i < to; i++ {
			x.expect(apierr.NoSuchAccount, server, user(i), wrong)
		}
	}
	guess(0, limits.Address.Failures)
	x.expect(nil, server, "ann@example.test", right)
	x.failLogins(limits.Pair.Failures, server, jo)
	x.expect(apierr.TooMany, server, jo, right)
	x.expect(nil, server, "ann@example.test", right)

	guess(limits.Address.Failures, limits.Application.Failures-limits.Pair.Failures)
	refusal := apierr.From(x.logIn(server, "bob@example.test", right))
	if refusal.Code != 429 || refusal.RetryAfter != limits.Application.Within {
		t.Errorf("after %d failures at the application the refusal is %+v", limits.Application.Failures, refusal)
	}
	x.expect(nil, server, "ann@example.test", right) // a user of the application, whatever others do there
	x.expect(nil, home, "bob@example.test", right)   // by a client that names the address
	other.expect(nil, server, "bob@example.test", right)

	noted, err := pg.Values[id.ID](t.Context(), x.DB, `SELECT application_id FROM missing_user_addresses
		WHERE tenant_id = $1 ORDER BY seen_at`, x.tenant)
	if err != nil || len(noted) != 2 || noted[0] != x.app && noted[1] != x.app {
		t.Errorf("noted are the applications %v, %v; want %v and %v", noted, err, x.app, other.app)
	}
}

func user(n int) string { return fmt.Sprintf("user-%d@example.test", n) }

// All users of a server come from its address.
func TestABusyServerIsNotStoppedByTypingErrors(t *testing.T) {
	t.Parallel()
	const users = 200
	x := openThrottled(t)
	x.Account(t, x.tenant, x.people, "newcomer@example.test")
	for n := range users {
		x.Account(t, x.tenant, x.people, user(n))
		x.expect(nil, home, user(n), right)
	}
	misspell := func(x throttledApplication, n int) {
		x.Helper()
		for i := range n {
			x.expect(apierr.NoSuchAccount, home, "x"+user(i), right)
		}
	}
	misspell(x, limits.Address.Failures+users*limits.AddressShare/100)
	x.expect(apierr.TooMany, home, "newcomer@example.test", right)
	for n := range users {
		x.failLogins(limits.Pair.Failures/2, home, user(n))
		x.expect(nil, home, user(n), right)
	}
	err := store.New(x.DB, x.Clock.Now).Tx(t.Context(), func(tx *store.Tx) error {
		address, err := pg.Value[string](t.Context(), tx, `SELECT address FROM login_counters WHERE login = ''`)
		if err != nil {
			return err
		}
		for _, most := range []int{users - 1, users + 1} {
			n, err := tx.CountSucceeded(t.Context(), x.tenant, address, x.Clock.Now().Add(-time.Hour), most)
			if n != min(users, most) || err != nil {
				t.Errorf("up to %d, %d logins are counted, %v", most, n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Run("where they have logged in within a day", func(t *testing.T) {
		x := x.withTB(t)
		x.Clock.Move(25 * time.Hour)
		misspell(x, limits.Address.Failures)
		x.expect(apierr.TooMany, home, "newcomer@example.test", right)
	})
}

// Only a wrong password and an unknown login are attempts.
func TestWhatIsNoWrongPasswordIsNotCounted(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	closed := x.Directory(t, x.tenant, "Closed")
	newMapping(t, x.Deployment, x.tenant, x.app, closed)
	x.Account(t, x.tenant, closed, "shut@example.test")
	x.Directories.Disable(t, directoryapi.Ref{Tenant: x.tenant, ID: closed})
	unmapped := x.Directory(t, x.tenant, "Unmapped")
	at := func(to id.ID, where directoryapi.StoreName) func() error {
		return func() error {
			_, err := x.service.AttemptLogin(t.Context(), id.Ref{Tenant: x.tenant, ID: to}, attempt(where))
			return err
		}
	}
	bare := newApplication(t, x.Deployment, x.tenant)
	for _, c := range []struct {
		what string
		try  func() error
		want error
	}{
		{"the right password of a disabled directory", func() error { return x.logIn(home, "shut@example.test", right) },
			apierr.DirectoryDisabled},
		{"a store that is not mapped",
			at(x.app, directoryapi.StoreName{Href: applicationtest.Base.To("directories", unmapped)}), apierr.NotMapped},
		{"a store that never was", at(x.app, directoryapi.StoreName{NameKey: "nobody"}), apierr.Reference},
		{"an application without stores", at(bare, directoryapi.StoreName{}), apierr.NoStores},
		{"a pool without room", func() error {
			x.Directories.Break("Authenticate", fault.Before, func() error { return apierr.Unavailable })
			return x.logIn(home, jo, wrong)
		}, apierr.Unavailable},
	} {
		t.Run(c.what, func(t *testing.T) {
			for range limits.Pair.Failures + 1 {
				if err := c.try(); !errors.Is(err, c.want) {
					t.Fatalf("the error is %v, want %v", err, c.want)
				}
			}
		})
	}
	rows, err := pg.Value[int](t.Context(), x.DB, `SELECT count(*) FROM login_counters`)
	if err != nil || rows != 0 {
		t.Errorf("there are %d counters, %v", rows, err)
	}
}

// After too many failures the right password of an account that may not log in is refused as any
// other: another answer would tell that the password is right.
func TestARefusalHidesThatAPasswordIsRight(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.disabled("idle@example.test")
	x.expect(apierr.AccountDisabled, home, "idle@example.test", right)
	x.failLogins(limits.Pair.Failures, home, "idle@example.test")
	x.expect(apierr.TooMany, home, "idle@example.test", right)
}

func TestAnotherTenantCountsForItself(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	other := x
	other.tenant, _ = x.Tenant(t)
	other.app, other.people = newApplication(t, x.Deployment, other.tenant), x.Directory(t, other.tenant, "People")
	newMapping(t, x.Deployment, other.tenant, other.app, other.people)
	x.Account(t, other.tenant, other.people, jo)
	x.failLogins(limits.Pair.Failures, home, jo)
	x.expect(apierr.TooMany, home, jo, right)
	other.expect(nil, home, jo, right)
	// A reader of the table does not see that both tenants have a user of the same name.
	if n, err := pg.Value[int](t.Context(), x.DB,
		`SELECT count(DISTINCT login) FROM login_counters WHERE login <> ''`); err != nil || n != 2 {
		t.Errorf("two tenants store a login as %d hashes, %v", n, err)
	}
}

// After a password reset a user can log in by user name and by email, from a new address and
// during an attack.
func TestAPasswordResetMakesTheAddressTrusted(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	body := directoryapi.NewAccount{Username: field.Some("ann"), Email: field.Some("ann@example.test"),
		Password: field.Some(applicationtest.Password)}
	if _, err := x.Directories.CreateAccount(t.Context(),
		directoryapi.CreateAccount{Tenant: x.tenant, ID: x.NewID(), Directory: x.people, Account: body}); err != nil {
		t.Fatal(err)
	}
	all := func(want error, from string, password secure.Secret) {
		t.Helper()
		x.expect(want, from, "ann", password)
		x.expect(want, from, "ann@example.test", password)
	}
	for i := range limits.Account.Failures {
		all(apierr.WrongPassword, addressNumber(i), wrong)
	}
	at := id.Ref{Tenant: x.tenant, ID: x.app}
	reset, err := x.service.CreatePasswordReset(t.Context(), at, application.NewPasswordReset{Email: field.Some("ann")})
	if err != nil {
		t.Fatal(err)
	}
	all(apierr.TooMany, home, right)
	ctx := caller.Into(t.Context(), caller.Caller{Tenant: x.tenant, Address: netip.MustParseAddr(home)})
	if _, err := x.service.ConsumePasswordReset(ctx, at, "no token",
		application.NewPassword{Password: field.Some("Another1!")}); !errors.Is(err, apierr.NotFound) {
		t.Fatal(err)
	}
	all(apierr.TooMany, home, right)
	if _, err := x.service.ConsumePasswordReset(ctx, at, reset.Token,
		application.NewPassword{Password: field.Some("Another1!")}); err != nil {
		t.Fatal(err)
	}
	all(nil, home, "Another1!")
	all(apierr.TooMany, addressNumber(1), "Another1!")
}
