// Package apitest is the contract test suite of the application service. It checks that an
// implementation does what api.go promises, in the same process and over HTTP:
//
//	func TestContract(t *testing.T) {
//		apitest.Run(t, func(t *testing.T) apitest.Subject { … })
//	}
//
// Each file has the tests of one noun.
package apitest

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	directorysuite "github.com/doorward/doorward/pkg/api/directoryapi/apitest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
)

// Subject is an implementation under test, with the directory service that it calls, and functions
// for changes of state for which the contract has no method.
type Subject struct {
	API         applicationapi.Contract
	Directories directoryapi.API
	Base        href.Base // of the hrefs of account stores

	// NewApplication creates an enabled application without account stores.
	NewApplication func(t *testing.T, tenant id.ID) id.ID
	// Map makes a directory the last account store of an application.
	Map func(t *testing.T, tenant, application, directory id.ID)
	// Disable sets the status of an application to DISABLED.
	Disable func(*testing.T, directoryapi.Ref)
	// DisableDirectory sets the status of a directory to DISABLED.
	DisableDirectory func(*testing.T, directoryapi.Ref)
	// FollowLinks maps a directory as the default account store of an
	// application, and lets logins to it follow account links.
	FollowLinks func(t *testing.T, tenant, application, directory id.ID)
	// Link links two accounts of different directories.
	Link func(t *testing.T, one, other directoryapi.Ref)
	// SetData sets the customData of an application.
	SetData func(t *testing.T, application directoryapi.Ref, document string)
	// SetHome sets the HomeURL of an application.
	SetHome func(t *testing.T, application directoryapi.Ref, address string)
	// Delete removes an application.
	Delete func(*testing.T, directoryapi.Ref)
}

// Run runs the suite on the subject that open returns, in process and over HTTP. The subject may
// have other tenants: the suite creates its own.
func Run(t *testing.T, open func(*testing.T) Subject) {
	t.Run("in process", func(t *testing.T) { runAll(t, open(t)) })
	t.Run("over HTTP", func(t *testing.T) {
		s := open(t)
		local := s.API
		s.API = applicationapi.Client(directorysuite.OverHTTP(t, "application", func(router rpc.Router) { applicationapi.Serve(router, local) }))
		runAll(t, s)
	})
}

func runAll(t *testing.T, s Subject) {
	t.Run("sign-up", func(t *testing.T) { signUps(t, s) })
	t.Run("applications", func(t *testing.T) { applications(t, s) })
	t.Run("DNS labels", func(t *testing.T) { dnsLabels(t, s) })
	t.Run("logins", func(t *testing.T) { logins(t, s) })
	t.Run("completed logins", func(t *testing.T) { completedLogins(t, s) })
	t.Run("links", func(t *testing.T) { links(t, s) })
	t.Run("access checks", func(t *testing.T) { accessChecks(t, s) })
	t.Run("administrators", func(t *testing.T) { administrators(t, s) })
	t.Run("hosted logins", func(t *testing.T) { hostedLogins(t, s) })
	t.Run("homes", func(t *testing.T) { homes(t, s) })
	t.Run("resets", func(t *testing.T) { resets(t, s) })
	t.Run("reach", func(t *testing.T) { reaches(t, s) })
}

// tenant is a tenant of the suite, after its sign-up with both services.
type tenant struct {
	Subject
	id             id.ID
	administrators id.ID
	owner          id.ID
	signUp         applicationapi.SignUp
	made           applicationapi.SignedUp
}

func newTenant(t *testing.T, s Subject) tenant {
	t.Helper()
	n := tenant{Subject: s, id: newID(), administrators: newID(), owner: newID()}
	n.signUp = n.signUpDirectory(t)
	n.made = must(s.API.SignUp(t.Context(), n.signUp))(t)
	return n
}

// signUpDirectory signs the tenant up with the directory service only.
func (n tenant) signUpDirectory(t *testing.T) applicationapi.SignUp {
	t.Helper()
	must(n.Directories.SignUp(t.Context(), directoryapi.SignUp{
		Tenant: n.id, Directory: n.administrators, Owner: n.owner, Key: strings.ToLower(rand.Text()),
		DirectoryName: "Service Administrators", Email: "owner@example.test", Password: directorysuite.Password,
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
		Account: directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(directorysuite.Password), Status: field.Some(status)},
	}))(t).ID
}

var newID = directorysuite.NewID

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
