package mfa_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/mfatest"
)

// enrol returns an account two phones, two factors and a challenge.
func enrol(t testing.TB, d *mfatest.Deployment, a directoryapi.Account) {
	t.Helper()
	d.Post(mfatest.Of(a)+"/phones", `{"number":"+12675555555"}`).Want(201)
	d.Post(mfatest.Of(a)+"/factors?challenge=true", `{"type":"sms","phone":{"number":"8883915282"}}`).Want(201)
	d.Post(mfatest.Of(a)+"/factors", `{"type":"google-authenticator"}`).Want(201)
}

// rows are what is left: accounts, phones, factors, challenges.
func rows(d *mfatest.Deployment) (n [4]int) {
	for i, table := range []string{"accounts", "phones", "factors", "challenges"} {
		n[i] = d.Rows(table)
	}
	return n
}

func TestDeletingAnAccountDeletesItsFactors(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	al := d.Account(d.Tenant, "al")
	enrol(t, d, d.Jo)
	enrol(t, d, al)
	d.Directory.DeleteAccount(t, id.Ref{Tenant: d.Tenant, ID: d.Jo.ID})
	event := events.AccountDeleted{Tenant: d.Tenant, Account: d.Jo.ID}
	envelope := events.Envelope{ID: id.New(d.Now()), Tenant: d.Tenant, Subject: d.Jo.ID}
	for range 2 {
		if err := d.Service.AccountDeleted(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(d), [4]int{1, 2, 2, 1}; got != want {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
	d.Get(mfatest.Of(d.Jo)+"/factors").WantError(404, 404)
	if got := d.Get(mfatest.Base.To("tenants", d.Tenant, "phones")).Int("size"); got != 2 {
		t.Errorf("the tenant has %d phones, want 2", got)
	}
}

// A sync of a directory server, or a deleted directory, ends many accounts at once.
func TestTheEndOfManyAccountsDeletesTheirFactors(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	al, ben := d.Account(d.Tenant, "al"), d.Account(d.Tenant, "ben")
	for _, account := range []directoryapi.Account{d.Jo, al, ben} {
		enrol(t, d, account)
	}
	event := events.AccountsDeleted{Tenant: d.Tenant, Directory: d.Jo.DirectoryID, Accounts: []id.ID{d.Jo.ID, al.ID}}
	envelope := events.Envelope{ID: id.New(d.Now()), Tenant: d.Tenant, Subject: d.Jo.DirectoryID}
	for range 2 {
		if err := d.Service.AccountsDeleted(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(d), [4]int{1, 2, 2, 1}; got != want {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
	d.Get(mfatest.Of(ben) + "/factors").Want(200)
}

func TestDeletingADirectoryDeletesTheFactorsOfItsAccounts(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	al := d.Account(d.Tenant, "al")
	enrol(t, d, d.Jo)
	enrol(t, d, al)
	err := d.Service.DirectoryDeleted(t.Context(), events.Envelope{ID: id.New(d.Now()), Tenant: d.Tenant},
		events.DirectoryDeleted{Tenant: d.Tenant, Directory: d.Jo.DirectoryID})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rows(d), [4]int{1, 2, 2, 1}; got != want {
		t.Errorf("left are %v, want %v", got, want)
	}
	d.Get(mfatest.Of(al) + "/factors").Want(200)
}

func TestAnEventOfAnotherTenantRemovesNothing(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	enrol(t, d, d.Jo)
	other := id.New(d.Now())
	err := d.Service.AccountDeleted(t.Context(), events.Envelope{ID: id.New(d.Now()), Tenant: other},
		events.AccountDeleted{Tenant: other, Account: d.Jo.ID})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rows(d), [4]int{1, 2, 2, 1}; got != want {
		t.Errorf("left are %v, want %v", got, want)
	}
}

// A request that found its account before it went may make something after the
// event has been acted on.
func TestWhatIsCreatedWhileAnAccountIsDeletedIsPurged(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	err := d.Service.AccountDeleted(t.Context(), events.Envelope{ID: id.New(d.Now()), Tenant: d.Tenant},
		events.AccountDeleted{Tenant: d.Tenant, Account: d.Jo.ID})
	if err != nil {
		t.Fatal(err)
	}
	enrol(t, d, d.Jo)
	d.Move(time.Minute)
	if err := d.Service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := rows(d), [4]int{1, 2, 2, 1}; got != want {
		t.Errorf("left are %v, want %v", got, want)
	}
	d.Move(time.Millisecond)
	if err := d.Service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rows(d); got != [4]int{} || d.Rows("removals") != 0 {
		t.Errorf("left are %v and %d removals", got, d.Rows("removals"))
	}
}

func TestThePurgeKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"sms","phone":{"number":"8883915282"}}`).Want(201).Href()
	first := d.Post(factor+"/challenges", "").Want(201).Href()
	d.Move(24 * time.Hour)
	second := d.Post(factor+"/challenges", "").Want(201).Href()
	d.Move(29 * 24 * time.Hour)
	if err := d.Service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Get(first).Want(200)
	if got := d.Rows("counts"); got != 0 {
		t.Errorf("%d counts are left whose window is over", got)
	}
	d.Move(48 * time.Hour)
	if err := d.Service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Get(first).WantError(404, 404)
	if got := d.Get(factor).Href("mostRecentChallenge"); got != second {
		t.Errorf("the most recent challenge is %s, want %s", got, second)
	}
	d.Get(second).Want(200)
}

func TestAMasterKeyCanBeReplacedAndThenDropped(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := d.Ref(d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"google-authenticator"}`).Want(201).Href())
	next := secure.NewMasterKey("k2")
	good := func() error {
		_, err := d.Under(next).Factor(t.Context(), factor)
		return err
	}
	if good() == nil {
		t.Fatal("the secret opens under a master key that it was not sealed under")
	}
	both, err := secure.ParseKeyring(next + "," + d.Master)
	if err != nil {
		t.Fatal(err)
	}
	stop := worktest.Start(t, reseal.Worker(d.DB, both, mfa.Sealed...))
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for good() != nil {
		select {
		case <-deadline.C:
			t.Fatal("the secret was not sealed again")
		default:
		}
	}
	stop()
}
