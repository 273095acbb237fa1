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
)

const (
	jo    = "jo@example.test"
	home  = "203.0.113.1"
	wrong = secure.Secret("Wrong1234")
	right = secure.Secret(applicationtest.Password)
)

// limits are those of the deployment under test.
var limits = applicationtest.Config

// door is an application whose only store holds Jo, as one of the processes of
// a deployment has it.
type door struct {
	testing.TB
	*applicationtest.Deployment
	service             *application.Service
	tenant, app, people id.ID
}

func openDoor(t testing.TB) door {
	t.Helper()
	d := applicationtest.Open(t)
	x := door{TB: t, Deployment: d, service: d.Service}
	x.tenant, _ = d.Tenant(t)
	x.app, x.people = newApplication(t, d, x.tenant), d.Directory(t, x.tenant, "People")
	newMapping(t, d, x.tenant, x.app, x.people)
	d.Account(t, x.tenant, x.people, jo)
	return x
}

// in is the same door in a part of the test.
func (x door) in(t *testing.T) door {
	x.TB = t
	return x
}

// replica is the same deployment by another process of it.
func (x door) replica(db *pg.DB) door {
	x.service = application.New(store.New(db, x.Clock.Now), x.Directories, x.Ring, applicationtest.Base, x.Clock.Now, limits)
	return x
}

// try logs in from an address.
func (x door) try(from, login string, password secure.Secret) error {
	address, err := netip.ParseAddr(from)
	if err != nil {
		x.Fatal(err)
	}
	ctx := caller.Into(x.Context(), caller.Caller{Tenant: x.tenant, Address: address})
	_, err = x.service.Login(ctx, applicationapi.Login{Tenant: x.tenant, Application: x.app, Login: login, Password: password})
	return err
}

// want logs in from an address, which must end so.
func (x door) want(want error, from, login string, password secure.Secret) {
	x.Helper()
	if err := x.try(from, login, password); !errors.Is(err, want) {
		x.Fatalf("%s at %s gets %v, want %v", login, from, err, want)
	}
}

// fail logs in wrongly n times.
func (x door) fail(n int, from, login string) {
	x.Helper()
	for range n {
		x.want(apierr.WrongPassword, from, login, wrong)
	}
}

// elsewhere is one of many addresses.
func elsewhere(n int) string { return fmt.Sprintf("198.51.%d.%d", 100+n/250, n%250) }

func TestALoginAtOneAddressHasSoManyFailures(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	x.want(nil, home, jo, right)
	x.fail(limits.Pair.Failures-1, home, jo)
	x.want(nil, home, jo, right) // takes back what has failed
	x.fail(1, home, jo)
	x.Clock.Move(limits.Pair.Within / 3) // of the window, which has begun
	x.fail(limits.Pair.Failures-1, home, jo)

	for _, password := range []secure.Secret{wrong, right} {
		refusal := apierr.From(x.try(home, jo, password))
		if refusal.Status != 429 || refusal.Code != 429 || refusal.RetryAfter != limits.Pair.Within*2/3 {
			t.Errorf("the refusal is %+v", refusal)
		}
	}
	for range 3 * limits.Pair.Failures {
		x.want(apierr.TooMany, home, jo, wrong)
	}
	x.want(apierr.TooMany, home, "JO@example.test", right)
	x.want(nil, "203.0.113.2", jo, right)
	x.want(apierr.NoSuchAccount, home, "sam@example.test", right)

	t.Run("which the refusals do not make more of", func(t *testing.T) {
		x := x.in(t)
		x.Clock.Move(limits.Pair.Within*2/3 - time.Millisecond)
		x.want(apierr.TooMany, home, jo, right)
		x.Clock.Move(time.Millisecond)
		x.fail(limits.Pair.Failures, home, jo)
		x.want(apierr.TooMany, home, jo, right)
		x.Clock.Move(limits.Pair.Within)
		x.want(nil, home, jo, right)
	})
}

func TestAnotherSpellingIsTheSameLogin(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	x.Account(t, x.tenant, x.people, "strauß@example.test")
	spellings := []string{"strauß@example.test", "STRAUSS@example.test", "ｓｔｒａｕß@example.test"}
	for i := range limits.Pair.Failures {
		x.fail(1, home, spellings[i%len(spellings)])
	}
	for _, login := range spellings {
		x.want(apierr.TooMany, home, login, right)
	}
}

func TestANetworkIsOneAddress(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	for i := range limits.Pair.Failures {
		x.fail(1, fmt.Sprintf("2001:db8:0:1::%x", i), jo)
	}
	x.want(apierr.TooMany, "2001:db8:0:1:ffff::1", jo, right)
	x.want(nil, "2001:db8:0:2::1", jo, right)
	x.fail(limits.Pair.Failures, "::ffff:203.0.113.9", jo)
	x.want(apierr.TooMany, "203.0.113.9", jo, right)
	x.want(nil, "203.0.113.10", jo, right)
}

func TestAnAttackFromManyAddressesDoesNotLockTheOwnerOut(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	x.want(nil, home, jo, right)
	for i := range limits.Account.Failures {
		x.fail(1, elsewhere(i), jo)
	}
	refusal := apierr.From(x.try(elsewhere(1000), jo, right))
	if refusal.Code != 429 || refusal.RetryAfter != limits.Account.Within {
		t.Errorf("the refusal is %+v", refusal)
	}
	x.want(apierr.TooMany, elsewhere(0), jo, wrong)

	x.want(nil, home, jo, right)
	x.fail(limits.Pair.Failures-1, home, jo) // and mistypes as often as ever
	x.want(nil, home, jo, right)
	x.want(apierr.NoSuchAccount, elsewhere(1000), "sam@example.test", right)

	t.Run("and ends with its window", func(t *testing.T) {
		x := x.in(t)
		x.Clock.Move(limits.Account.Within)
		x.want(nil, elsewhere(1000), jo, right)
	})
	t.Run("nor on the device that was new then", func(t *testing.T) {
		x := x.in(t)
		for i := range limits.Account.Failures {
			x.fail(1, elsewhere(i), jo)
		}
		x.want(nil, elsewhere(1000), jo, right)
	})
	t.Run("while an address is known", func(t *testing.T) {
		x := x.in(t)
		x.Clock.Move(limits.KnownFor - time.Millisecond)
		for i := range limits.Account.Failures {
			x.fail(1, elsewhere(i), jo)
		}
		x.want(nil, elsewhere(1000), jo, right)
	})
	t.Run("which is for so long after the last login", func(t *testing.T) {
		x := x.in(t)
		x.Clock.Move(limits.KnownFor)
		for i := range limits.Account.Failures {
			x.fail(1, elsewhere(i), jo)
		}
		x.want(apierr.TooMany, elsewhere(1000), jo, right)
	})
}

// An address is known again by every login that succeeds there after it was
// forgotten, also where that is sooner than notes of a success are renewed.
func TestAnAddressIsTrustedAgain(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	brief := limits
	brief.KnownFor = time.Hour
	x.service = application.New(store.New(x.DB, x.Clock.Now), x.Directories, x.Ring, applicationtest.Base, x.Clock.Now, brief)
	for range 2 {
		x.want(nil, home, jo, right)
		for i := range limits.Account.Failures {
			x.fail(1, elsewhere(i), jo)
		}
		x.want(nil, home, jo, right)
		x.Clock.Move(limits.Account.Within)
	}
}

// A login renews the note of the last one, so that an address stays known for as
// long as it is used.
func TestAnAddressStaysTrustedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	for range 2 {
		x.want(nil, home, jo, right)
		x.Clock.Move(limits.KnownFor * 2 / 3)
	}
	for i := range limits.Account.Failures {
		x.fail(1, elsewhere(i), jo)
	}
	x.want(nil, home, jo, right)
}

// The clocks of two processes differ by a little.
func TestAProcessWhoseClockIsBehindDoesNotRefuseASuccess(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	x.want(nil, home, jo, right)
	behind := func() time.Time { return x.Clock.Now().Add(-time.Minute) }
	x.service = application.New(store.New(x.DB, behind), x.Directories, x.Ring, applicationtest.Base, behind, limits)
	x.want(nil, home, jo, right)
}

// What fails at a known address is none of the attack's tries from elsewhere.
func TestFailuresAtATrustedAddressDoNotCountElsewhere(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	for range limits.Account.Failures/(limits.Pair.Failures-1) + 1 {
		x.want(nil, home, jo, right)
		x.fail(limits.Pair.Failures-1, home, jo)
	}
	x.want(nil, elsewhere(1), jo, right)
}

func TestAnAddressHasSoManyFailuresWithAllLogins(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	x.Account(t, x.tenant, x.people, "ann@example.test")
	x.want(nil, home, jo, right)
	for i := range limits.Address.Failures {
		x.want(apierr.NoSuchAccount, home, user(i), wrong)
	}
	refusal := apierr.From(x.try(home, "ann@example.test", right))
	if refusal.Code != 429 || refusal.RetryAfter != limits.Address.Within {
		t.Errorf("the refusal is %+v", refusal)
	}
	x.want(apierr.TooMany, home, user(1000), wrong)
	x.want(nil, elsewhere(1), "ann@example.test", right)
	x.want(nil, home, jo, right) // a user of that address, whatever others do there
	x.fail(limits.Pair.Failures, home, jo)
	x.want(apierr.TooMany, home, jo, right)
	x.Clock.Move(limits.Address.Within)
	x.want(nil, home, "ann@example.test", right)
}

func user(n int) string { return fmt.Sprintf("user-%d@example.test", n) }

// All users of a server come from its address.
func TestABusyServerIsNotStoppedByTypingErrors(t *testing.T) {
	t.Parallel()
	const users = 200
	x := openDoor(t)
	x.Account(t, x.tenant, x.people, "newcomer@example.test")
	for n := range users {
		x.Account(t, x.tenant, x.people, user(n))
		x.want(nil, home, user(n), right)
	}
	misspell := func(x door, n int) {
		x.Helper()
		for i := range n {
			x.want(apierr.NoSuchAccount, home, "x"+user(i), right)
		}
	}
	misspell(x, limits.Address.Failures+users*limits.AddressShare/100)
	x.want(apierr.TooMany, home, "newcomer@example.test", right)
	for n := range users {
		x.fail(limits.Pair.Failures/2, home, user(n))
		x.want(nil, home, user(n), right)
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
		x := x.in(t)
		x.Clock.Move(25 * time.Hour)
		misspell(x, limits.Address.Failures)
		x.want(apierr.TooMany, home, "newcomer@example.test", right)
	})
}

// Only a wrong password and an unknown login are attempts.
func TestWhatIsNoWrongPasswordIsNotCounted(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
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
		{"the right password of a disabled directory", func() error { return x.try(home, "shut@example.test", right) }, apierr.DirectoryDisabled},
		{"a store that is not mapped", at(x.app, directoryapi.StoreName{Href: applicationtest.Base.To("directories", unmapped)}), apierr.NotMapped},
		{"a store that never was", at(x.app, directoryapi.StoreName{NameKey: "nobody"}), apierr.Reference},
		{"an application without stores", at(bare, directoryapi.StoreName{}), apierr.NoStores},
		{"a pool without room", func() error {
			x.Directories.Break("Authenticate", fault.Before, func() error { return apierr.Unavailable })
			return x.try(home, jo, wrong)
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

// The right password of an account that may not log in is refused like any other
// where too many have failed: it would tell that it is right.
func TestARefusalHidesThatAPasswordIsRight(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	x.disabled("idle@example.test")
	x.want(apierr.AccountDisabled, home, "idle@example.test", right)
	x.fail(limits.Pair.Failures, home, "idle@example.test")
	x.want(apierr.TooMany, home, "idle@example.test", right)
}

func TestAnotherTenantCountsForItself(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	other := x
	other.tenant, _ = x.Tenant(t)
	other.app, other.people = newApplication(t, x.Deployment, other.tenant), x.Directory(t, other.tenant, "People")
	newMapping(t, x.Deployment, other.tenant, other.app, other.people)
	x.Account(t, other.tenant, other.people, jo)
	x.fail(limits.Pair.Failures, home, jo)
	x.want(apierr.TooMany, home, jo, right)
	other.want(nil, home, jo, right)
	// Nobody who reads the table sees that both have a user of that name.
	if n, err := pg.Value[int](t.Context(), x.DB, `SELECT count(DISTINCT login) FROM login_counters WHERE login <> ''`); err != nil || n != 2 {
		t.Errorf("two tenants store a login as %d hashes, %v", n, err)
	}
}

// A caller that has reset the password gets in, by user name and by email, on a device
// that nobody knows and during an attack.
func TestAPasswordResetMakesTheAddressTrusted(t *testing.T) {
	t.Parallel()
	x := openDoor(t)
	body := directoryapi.NewAccount{Username: field.Some("ann"), Email: field.Some("ann@example.test"), Password: field.Some(applicationtest.Password)}
	if _, err := x.Directories.CreateAccount(t.Context(), directoryapi.CreateAccount{Tenant: x.tenant, ID: x.NewID(), Directory: x.people, Account: body}); err != nil {
		t.Fatal(err)
	}
	all := func(want error, from string, password secure.Secret) {
		t.Helper()
		x.want(want, from, "ann", password)
		x.want(want, from, "ann@example.test", password)
	}
	for i := range limits.Account.Failures {
		all(apierr.WrongPassword, elsewhere(i), wrong)
	}
	at := id.Ref{Tenant: x.tenant, ID: x.app}
	reset, err := x.service.CreatePasswordReset(t.Context(), at, application.NewPasswordReset{Email: field.Some("ann")})
	if err != nil {
		t.Fatal(err)
	}
	all(apierr.TooMany, home, right)
	ctx := caller.Into(t.Context(), caller.Caller{Tenant: x.tenant, Address: netip.MustParseAddr(home)})
	if _, err := x.service.ConsumePasswordReset(ctx, at, "no token", application.NewPassword{Password: field.Some("Another1!")}); !errors.Is(err, apierr.NotFound) {
		t.Fatal(err)
	}
	all(apierr.TooMany, home, right)
	if _, err := x.service.ConsumePasswordReset(ctx, at, reset.Token, application.NewPassword{Password: field.Some("Another1!")}); err != nil {
		t.Fatal(err)
	}
	all(nil, home, "Another1!")
	all(apierr.TooMany, elsewhere(1), "Another1!")
}
