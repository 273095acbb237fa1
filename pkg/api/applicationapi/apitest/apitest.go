// Package apitest is the suite of the application service's contract. It holds
// every implementation to what api.go promises, in the same process and over
// HTTP:
//
//	func TestContract(t *testing.T) {
//		apitest.Run(t, func(t *testing.T) apitest.Subject { … })
//	}
//
// Each file holds the promises about one noun.
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

// Subject is an implementation under test, with the directory service that it
// asks and the changes of state that the contract has no method for.
type Subject struct {
	API         applicationapi.Contract
	Directories directoryapi.API
	Base        href.Base // of the hrefs of account stores

	// NewApplication makes an enabled application without account stores.
	NewApplication func(t *testing.T, tenant id.ID) id.ID
	// Map makes a directory the last account store of an application.
	Map func(t *testing.T, tenant, application, directory id.ID)
	// Disable returns an application the status DISABLED.
	Disable func(*testing.T, directoryapi.Ref)
	// DisableDirectory returns a directory the status DISABLED.
	DisableDirectory func(*testing.T, directoryapi.Ref)
	// FollowLinks maps a directory as the default account store of an
	// application, and lets logins to it follow account links.
	FollowLinks func(t *testing.T, tenant, application, directory id.ID)
	// Link links two accounts of different directories.
	Link func(t *testing.T, one, other directoryapi.Ref)
	// SetData sets the customData of an application.
	SetData func(t *testing.T, application directoryapi.Ref, document string)
	// Delete removes an application.
	Delete func(*testing.T, directoryapi.Ref)
}

// Run holds what open returns to the contract, near and far. The subject need not be
// empty: the suite makes tenants of its own.
func Run(t *testing.T, open func(*testing.T) Subject) {
	t.Run("near", func(t *testing.T) { promises(t, open(t)) })
	t.Run("far", func(t *testing.T) {
		s := open(t)
		near := s.API
		s.API = applicationapi.Client(directorysuite.Far(t, "application", func(router rpc.Router) { applicationapi.Serve(router, near) }))
		promises(t, s)
	})
}

func promises(t *testing.T, s Subject) {
	t.Run("sign-up", func(t *testing.T) { signUps(t, s) })
	t.Run("applications", func(t *testing.T) { applications(t, s) })
	t.Run("labels", func(t *testing.T) { labels(t, s) })
	t.Run("logins", func(t *testing.T) { logins(t, s) })
	t.Run("admissions", func(t *testing.T) { admissions(t, s) })
	t.Run("links", func(t *testing.T) { links(t, s) })
	t.Run("accesses", func(t *testing.T) { accesses(t, s) })
	t.Run("administrators", func(t *testing.T) { administrators(t, s) })
	t.Run("hosted logins", func(t *testing.T) { hostedLogins(t, s) })
	t.Run("resets", func(t *testing.T) { resets(t, s) })
	t.Run("reach", func(t *testing.T) { reaches(t, s) })
}

// tenant is one of the suite's own, after its sign-up with both services.
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
	n.signUp = n.begin(t)
	n.made = must(s.API.SignUp(t.Context(), n.signUp))(t)
	return n
}

// begin signs the tenant up with the directory service alone.
func (n tenant) begin(t *testing.T) applicationapi.SignUp {
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

// directory makes a directory of that name.
func (n tenant) directory(t *testing.T, name string) id.ID {
	t.Helper()
	v := newID()
	must(n.Directories.CreateDirectory(t.Context(), directoryapi.CreateDirectory{Tenant: n.id, ID: v, Name: name}))(t)
	return v
}

// account makes an account of that status, with the suite's password.
func (n tenant) account(t *testing.T, directory id.ID, email, status string) id.ID {
	t.Helper()
	return must(n.Directories.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: n.id, ID: newID(), Directory: directory, Workflow: true,
		Account: directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(directorysuite.Password), Status: field.Some(status)},
	}))(t).ID
}

var newID = directorysuite.NewID

// must takes an answer that has to come.
func must[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// refuse wants an error of the catalogue; nil wants none.
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
