// Package contract_test tests what the contract of the directory service (pkg/api/directoryapi) promises, a file
// for each resource or workflow.
package contract_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/directorytest"
)

// Password is strong enough for the default password policy of a directory.
const Password = "Changeme1!"

func TestMain(m *testing.M) { pgtest.Main(m) }

// subject is the service, with the changes of state for which the contract has no method.
type subject struct {
	*directorytest.Service
	API directoryapi.Contract
}

func (s subject) DisableDirectory(t *testing.T, at directoryapi.Ref) { s.Disable(t, at) }

// Mirror creates an enabled mirror directory of a social provider.
func (s subject) Mirror(t *testing.T, tenant id.ID) id.ID {
	return s.NewMirror(t, tenant, "google", "google")
}

// Mailed returns the token that was mailed to the email of a sign-up or an invitation.
func (s subject) Mailed(t *testing.T, email string) secure.Secret { return s.SignUpTokens(t)[email] }

func TestContract(t *testing.T) {
	clock := &clocktest.Clock{}
	d := directorytest.New(t, pgtest.Open(t, directorytest.Config), "https://doorward.test/v1", func() time.Time {
		clock.Move(time.Microsecond) // so that what is made later is newer
		return clock.Now()
	})
	runSuite(t, subject{d, d})
}

func runSuite(t *testing.T, s subject) {
	t.Run("sign-up", func(t *testing.T) { signUps(t, s) })
	t.Run("pending sign-ups", func(t *testing.T) { pendingSignUps(t, s) })
	t.Run("invitations", func(t *testing.T) { invitations(t, s) })
	t.Run("hosted logins", func(t *testing.T) { hostedLogins(t, s) })
	t.Run("directories", func(t *testing.T) { directories(t, s) })
	t.Run("accounts", func(t *testing.T) { accounts(t, s) })
	t.Run("groups", func(t *testing.T) { groups(t, s) })
	t.Run("lists", func(t *testing.T) { lists(t, s) })
	t.Run("logins", func(t *testing.T) { logins(t, s) })
	t.Run("linked accounts", func(t *testing.T) { linkedAccounts(t, s) })
	t.Run("accounts of providers", func(t *testing.T) { providerAccounts(t, s) })
	t.Run("explained logins", func(t *testing.T) { explainedLogins(t, s) })
	t.Run("accesses", func(t *testing.T) { accesses(t, s) })
	t.Run("mails", func(t *testing.T) { mails(t, s) })
	t.Run("resets", func(t *testing.T) { resets(t, s) })
	t.Run("verifications", func(t *testing.T) { verifications(t, s) })
}

// tenant is a tenant of the suite.
type tenant struct {
	subject
	id             id.ID
	administrators id.ID
	owner          directoryapi.Account
}

// newTenant signs a tenant up.
func newTenant(t *testing.T, s subject) tenant {
	t.Helper()
	in := newSignUp()
	made := must(s.API.SignUp(t.Context(), in))(t)
	return tenant{s, in.Tenant, in.Directory, made.Owner}
}

func newSignUp() directoryapi.SignUp {
	return directoryapi.SignUp{
		Tenant: NewID(), Directory: NewID(), Owner: NewID(),
		Key:           "calm-" + strings.Map(keepLetter, strings.ToLower(rand.Text())),
		DirectoryName: "Service Administrators", Email: "owner@example.test", Password: Password,
	}
}

// keepLetter keeps the letters a to z, of which a tenant's key consists.
func keepLetter(r rune) rune {
	if r < 'a' || r > 'z' {
		return -1
	}
	return r
}

var issued atomic.Int64

// NewID makes ids that are unique in all suites, and sort in the order in which they were made,
// also within a millisecond.
func NewID() id.ID {
	return id.New(time.Now().Add(time.Duration(issued.Add(1)) * time.Millisecond))
}

func (n tenant) ref(v id.ID) directoryapi.Ref { return directoryapi.Ref{Tenant: n.id, ID: v} }

// directory creates a directory with that name.
func (n tenant) directory(t *testing.T, name string) id.ID {
	t.Helper()
	v := NewID()
	must(n.API.CreateDirectory(t.Context(), directoryapi.CreateDirectory{Tenant: n.id, ID: v, Name: name}))(t)
	return v
}

// account creates an account with that email and Password. with changes the request before it is
// sent.
func (n tenant) account(t *testing.T, directory id.ID, email string,
	with ...func(*directoryapi.CreateAccount)) directoryapi.Account {
	t.Helper()
	return must(n.API.CreateAccount(t.Context(), n.newAccount(directory, email, with...)))(t)
}

func (n tenant) newAccount(directory id.ID, email string,
	with ...func(*directoryapi.CreateAccount)) directoryapi.CreateAccount {
	in := directoryapi.CreateAccount{
		Tenant: n.id, ID: NewID(), Directory: directory, Workflow: true,
		Account: directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(Password)},
	}
	for _, change := range with {
		change(&in)
	}
	return in
}

// status sets the status of a new account.
func status(value string) func(*directoryapi.CreateAccount) {
	return func(in *directoryapi.CreateAccount) { in.Account.Status = field.Some(value) }
}

// stores are directories in the order of login.
func stores(directories ...id.ID) []directoryapi.Store {
	list := make([]directoryapi.Store, len(directories))
	for i, v := range directories {
		list[i] = directoryapi.Store{Kind: "directories", ID: v}
	}
	return list
}

// must returns an answer, and fails the test on an error.
func must[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// wantError fails the test unless the error is that of the catalogue; nil wants no error.
func wantError[T any](_ T, err error) func(*testing.T, error) {
	return func(t *testing.T, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("the error is %v, want %v", err, want)
		}
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// wantOneSuccess makes concurrent calls, each with its number: one has to succeed, and the others
// have to return the error.
func wantOneSuccess(t *testing.T, calls int, refusal error, call func(int) error) {
	t.Helper()
	var succeeded, refused atomic.Int32
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			if err := call(i); err != nil {
				wantError(0, err)(t, refusal)
				refused.Add(1)
				return
			}
			succeeded.Add(1)
		})
	}
	all.Wait()
	wantEqual(t, "the number that succeeded", succeeded.Load(), 1)
	wantEqual(t, "the number refused", refused.Load(), int32(calls-1))
}

// query changes the query of a first page.
func query(change func(*list.Query)) list.Query {
	q := list.First()
	change(&q)
	return q
}
