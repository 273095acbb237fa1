// Package oauthtest runs the OAuth service in tests: on a database of its own, with its HTTP
// application, and with fakes of its peers in memory.
package oauthtest

import (
	"context"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi/applicationfake"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/directoryapi/directoryfake"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/mfaapi/mfafake"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
)

// World has the fakes of the services that the OAuth service calls.
type World struct {
	Directories  *directoryfake.Service
	Applications *applicationfake.Service
	Factors      *mfafake.Service

	Remote bool // the service takes the fakes for services of other processes

	t        testing.TB
	now      func() time.Time
	kinds    map[id.ID]string // of directories and accounts
	enrolled map[id.ID]bool   // accounts that have a factor
}

const accounts = "accounts"

// NewWorld creates fakes without data.
func NewWorld(t testing.TB, base href.Base, now func() time.Time) *World {
	directories := directoryfake.New(now)
	return &World{
		Directories: directories, Applications: applicationfake.New(directories, base, now), Factors: mfafake.New(directories, base, now),
		t: t, now: now, kinds: map[id.ID]string{}, enrolled: map[id.ID]bool{},
	}
}

// Peers returns the fakes as the peers of the service.
func (w *World) Peers() oauth.Peers {
	return oauth.Peers{Directory: w.Directories, Application: w.Applications, MFA: w.Factors, Remote: w.Remote}
}

// Fail makes every call of the directory and the application service fail, until
// it is called with nil.
func (w *World) Fail(err error) {
	w.Directories.Fail(err)
	w.Applications.Fail(err)
}

// FailMFA makes every call of the mfa service fail, until it is called with nil.
func (w *World) FailMFA(err error) { w.Factors.Fail(err) }

// AccessChecks returns how many calls asked whether an account may act.
func (w *World) AccessChecks() int { return w.Applications.Calls("CheckAccess") }

// NewDirectory adds a directory. A builtin one is mapped to the tenant's console.
func (w *World) NewDirectory(tenant id.ID, builtin bool) id.ID {
	d := directoryapi.Directory{TenantID: tenant, ID: id.New(w.now()), Builtin: builtin}
	d.Name = d.ID.String()
	w.Directories.InsertDirectory(d)
	w.kinds[d.ID] = directoryapi.Directories
	if builtin {
		w.Applications.NewConsole(tenant, d.ID)
	}
	return d.ID
}

// NewAccount adds an account.
func (w *World) NewAccount(tenant, directory id.ID, login string, password secure.Secret) id.ID {
	a := directoryapi.Account{
		TenantID: tenant, ID: id.New(w.now()), DirectoryID: directory, Username: login, Email: login, Status: directoryapi.Enabled,
		CreatedAt: w.now(), ModifiedAt: w.now(),
	}
	w.Directories.InsertAccount(a, password)
	w.kinds[a.ID] = accounts
	return a.ID
}

// NewApplication adds an application that the directories are mapped to.
func (w *World) NewApplication(tenant id.ID, directories ...id.ID) id.ID {
	return w.Applications.NewApplication(tenant, directories...)
}

// WebConfigOf returns the id of the web config of an application.
func (w *World) WebConfigOf(tenant, application id.ID) id.ID {
	a, err := w.Applications.Application(context.Background(), ref(tenant, application))
	if err != nil {
		w.t.Fatal(err)
	}
	return a.WebConfigID
}

// SetStatus sets the status of a directory, an account, an organization or an
// application.
func (w *World) SetStatus(tenant, resource id.ID, status string) {
	switch w.kinds[resource] {
	case directoryapi.Directories:
		w.Directories.SetStatus(w.t, ref(tenant, resource), directoryapi.Directories, status)
	case accounts:
		w.Directories.Change(w.t, ref(tenant, resource), func(a *directoryapi.Account) { a.Status = status })
	default:
		w.Applications.SetStatus(ref(tenant, resource), status)
	}
}

// Map sets the directories that are mapped to an application.
func (w *World) Map(tenant, application id.ID, directories ...id.ID) {
	w.Applications.Map(ref(tenant, application), directories...)
}

// Delete removes a directory, an account, an organization or an application.
func (w *World) Delete(tenant, resource id.ID) {
	switch w.kinds[resource] {
	case directoryapi.Directories:
		w.Directories.RemoveDirectory(ref(tenant, resource))
	case accounts:
		w.Directories.DeleteAccount(w.t, ref(tenant, resource))
	default:
		w.Applications.Delete(ref(tenant, resource))
	}
}

// Enroll adds a second factor to an account.
func (w *World) Enroll(tenant, account id.ID, kind, hint string) {
	w.Factors.Enroll(ref(tenant, account), kind, hint)
	w.enrolled[account] = true
}

// Challenge makes a challenge of an account outside of a login, of a new phone
// where it has no factor, and returns its href.
func (w *World) Challenge(tenant, account id.ID) string {
	if !w.enrolled[account] {
		w.Enroll(tenant, account, mfaapi.SMS, "xxx-xxx-0959")
	}
	return w.Factors.Challenge(ref(tenant, account)).Href
}

// Code returns the code that the authenticator of an account shows, or that was
// sent to its phone.
func (w *World) Code(tenant, account id.ID) string {
	if code := w.Factors.Show(ref(tenant, account)); code != "" {
		return code
	}
	return w.Factors.Sent(ref(tenant, account))
}

func ref(tenant, resource id.ID) directoryapi.Ref {
	return directoryapi.Ref{Tenant: tenant, ID: resource}
}
