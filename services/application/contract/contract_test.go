// Package contract_test tests what the contract of the application service (pkg/api/applicationapi) promises, a
// file for each noun.
package contract_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/directory/directorytest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const base href.Base = "https://doorward.test/v1"

// subject is the service, the directory service beside it, and the changes of state for which the contract has
// no method.
type subject struct {
	*applicationtest.Service
	API         applicationapi.Contract
	Directories *directorytest.Service
	Base        href.Base // of the hrefs of account stores
}

// NewApplication creates an enabled application without account stores.
func (s subject) NewApplication(_ *testing.T, tenant id.ID) id.ID {
	return s.Service.NewApplication(tenant)
}

// Map makes a directory the last account store of an application.
func (s subject) Map(_ *testing.T, tenant, to, directory id.ID) {
	s.AddStore(id.Ref{Tenant: tenant, ID: to}, directory)
}

func (s subject) Disable(_ *testing.T, at id.Ref) { s.SetStatus(at, directoryapi.Disabled) }

func (s subject) DisableDirectory(t *testing.T, at id.Ref) { s.Directories.Disable(t, at) }

// FollowLinks maps a directory as the default account store of an application, and lets logins to it follow
// account links.
func (s subject) FollowLinks(_ *testing.T, tenant, to, directory id.ID) {
	s.Service.FollowLinks(id.Ref{Tenant: tenant, ID: to}, directory)
}

func (s subject) Link(t *testing.T, one, other id.Ref) { s.Directories.Link(t, one, other) }

func (s subject) SetData(_ *testing.T, at id.Ref, document string) { s.Service.SetData(at, document) }

func (s subject) SetHome(_ *testing.T, at id.Ref, address string) {
	s.Change(at, application.NewApplication{HomeURL: field.Some(address)})
}

func (s subject) Delete(_ *testing.T, at id.Ref) { s.Service.Delete(at) }

func TestContract(t *testing.T) {
	dbs := pgtest.OpenAll(t, directorytest.Config, applicationtest.DBConfig)
	clock := &clocktest.Clock{}
	now := func() time.Time {
		clock.Move(time.Microsecond) // so that what is made later is newer
		return clock.Now()
	}
	directories := directorytest.New(t, dbs[0], base, now)
	worktest.Start(t, dbs[1].Listen)
	s := applicationtest.New(t, dbs[1], directories, base, now)
	runAll(t, subject{s, s, directories, base})
}

func runAll(t *testing.T, s subject) {
	t.Run("sign-up", func(t *testing.T) { signUps(t, s) })
	t.Run("applications", func(t *testing.T) { applications(t, s) })
	t.Run("DNS labels", func(t *testing.T) { dnsLabels(t, s) })
	t.Run("logins", func(t *testing.T) { logins(t, s) })
	t.Run("completed logins", func(t *testing.T) { completedLogins(t, s) })
	t.Run("links", func(t *testing.T) { links(t, s) })
	t.Run("access checks", func(t *testing.T) { accessChecks(t, s) })
	t.Run("administrators", func(t *testing.T) { administrators(t, s) })
	t.Run("login contexts", func(t *testing.T) { loginContexts(t, s) })
	t.Run("hosted logins", func(t *testing.T) { hostedLogins(t, s) })
	t.Run("homes", func(t *testing.T) { homes(t, s) })
	t.Run("resets", func(t *testing.T) { resets(t, s) })
	t.Run("reach", func(t *testing.T) { reaches(t, s) })
}

// tenant is a tenant of the suite, after its sign-up with both services.
type tenant struct {
	subject
	id             id.ID
	administrators id.ID
	owner          id.ID
	signUp         applicationapi.SignUp
	made           applicationapi.SignedUp
}

func newTenant(t *testing.T, s subject) tenant {
	t.Helper()
	n := tenant{subject: s, id: newID(), administrators: newID(), owner: newID()}
	n.signUp = n.signUpDirectory(t)
	n.made = must(s.API.SignUp(t.Context(), n.signUp))(t)
	return n
}

// signUpDirectory signs the tenant up with the directory service only.
func (n tenant) signUpDirectory(t *testing.T) applicationapi.SignUp {
	t.Helper()
	must(n.Directories.SignUp(t.Context(), directoryapi.SignUp{
		Tenant: n.id, Directory: n.administrators, Owner: n.owner, Key: strings.ToLower(rand.Text()),
		DirectoryName: "Service Administrators", Email: "owner@example.test", Password: directorytest.Password,
	}))(t)
	return applicationapi.SignUp{
		Tenant: n.id, Console: newID(), ConsoleName: "Service", Administrators: n.administrators, ConsoleMapping: newID(),
		Application: newID(), ApplicationMapping: newID(), Directory: newID(),
	}
}

func (n tenant) ref(v id.ID) directoryapi.Ref { return directoryapi.Ref{Tenant: n.id, ID: v} }

// directory creates a directory.
func (n tenant) directory(t *testing.T, name string) id.ID {
	t.Helper()
	v := newID()
	must(n.Directories.CreateDirectory(t.Context(), directoryapi.CreateDirectory{Tenant: n.id, ID: v, Name: name}))(t)
	return v
}

// account creates an account with a status, and with the suite's password.
func (n tenant) account(t *testing.T, directory id.ID, email, status string) id.ID {
	t.Helper()
	return must(n.Directories.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: n.id, ID: newID(), Directory: directory, Workflow: true,
		Account: directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(directorytest.Password),
			Status: field.Some(status)},
	}))(t).ID
}

var issued atomic.Int64

// newID makes ids that sort in the order in which they were made, also within a millisecond.
func newID() id.ID {
	return id.New(time.Now().Add(time.Duration(issued.Add(1)) * time.Millisecond))
}

// must returns an answer, or fails the test where there is an error.
func must[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// refuse checks that the error is one of the catalogue, or nil.
func refuse[T any](_ T, err error) func(*testing.T, error) {
	return func(t *testing.T, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("the error is %v, want %v", err, want)
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
