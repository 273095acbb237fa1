// Package apitest is the suite of the directory service's contract (contract test). It tests every
// implementation against what api.go promises, in the same process and over HTTP:
//
//	func TestContract(t *testing.T) {
//		apitest.Run(t, func(t *testing.T) apitest.Subject { … })
//	}
//
// Each file tests what the contract promises of one resource or workflow.
package apitest

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/secure"
)

// Password is strong enough for the default password policy of a directory.
const Password = "Changeme1!"

// Subject is an implementation under test, with the changes of state for which the contract has no
// method.
type Subject struct {
	API directoryapi.Contract
	// DisableDirectory sets the status of a directory to DISABLED.
	DisableDirectory func(*testing.T, directoryapi.Ref)
	// EnableVerification enables the email verification of new accounts of a directory.
	EnableVerification func(*testing.T, directoryapi.Ref)
	// DisableGroup sets the status of a group to DISABLED.
	DisableGroup func(*testing.T, directoryapi.Ref)
	// MarkVerified marks the email of an account as verified.
	MarkVerified func(*testing.T, directoryapi.Ref)
	// Link links two accounts of different directories.
	Link func(t *testing.T, one, other directoryapi.Ref)
	// Mirror creates an enabled mirror directory of a social provider.
	Mirror func(t *testing.T, tenant id.ID) id.ID
	// DeleteAccount deletes an account with its links.
	DeleteAccount func(*testing.T, directoryapi.Ref)
	// Invite invites an administrator of a tenant.
	Invite func(t *testing.T, tenant id.ID, email string)
	// Mailed returns the token that was mailed to the email of a sign-up or an invitation.
	Mailed func(t *testing.T, email string) secure.Secret
}

// Run tests an implementation, in process and over HTTP. It need not be empty: the suite creates
// its own tenants.
func Run(t *testing.T, open func(*testing.T) Subject) {
	t.Run("in process", func(t *testing.T) { runSuite(t, open(t)) })
	t.Run("over HTTP", func(t *testing.T) {
		s := open(t)
		local := s.API
		s.API = directoryapi.Client(OverHTTP(t, "directory", func(router rpc.Router) { directoryapi.Serve(router, local) }))
		runSuite(t, s)
	})
}

func runSuite(t *testing.T, s Subject) {
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

// OverHTTP serves a contract over HTTP as a service does and returns its peer: requests and
// answers in JSON, with signed callers.
func OverHTTP(t *testing.T, name string, serve func(rpc.Router)) rpc.Peer {
	t.Helper()
	signer := caller.NewSigner(secure.Secret(strings.Repeat("s", 32)), time.Now)
	app := rest.New(rest.Config{Service: name, Base: href.Base("https://doorward.test/v1"), Signer: signer})
	serve(rest.Contract(app))
	return rpc.Peer{Upstream: rpc.LocalUpstream(name, app.Handler()), Signer: signer}
}

// tenant is a tenant of the suite.
type tenant struct {
	Subject
	id             id.ID
	administrators id.ID
	owner          directoryapi.Account
}

// newTenant signs a tenant up.
func newTenant(t *testing.T, s Subject) tenant {
	t.Helper()
	in := newSignUp()
	made := must(s.API.SignUp(t.Context(), in))(t)
	return tenant{s, in.Tenant, in.Directory, made.Owner}
}

func newSignUp() directoryapi.SignUp {
	return directoryapi.SignUp{
		Tenant: NewID(), Directory: NewID(), Owner: NewID(), Key: "calm-" + strings.Map(keepLetter, strings.ToLower(rand.Text())),
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
func (n tenant) account(t *testing.T, directory id.ID, email string, with ...func(*directoryapi.CreateAccount)) directoryapi.Account {
	t.Helper()
	return must(n.API.CreateAccount(t.Context(), n.newAccount(directory, email, with...)))(t)
}

func (n tenant) newAccount(directory id.ID, email string, with ...func(*directoryapi.CreateAccount)) directoryapi.CreateAccount {
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
