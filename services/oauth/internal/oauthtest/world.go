// Package oauthtest is what the tests of the OAuth service stand in: the
// services that it asks, in memory (world.go), and the service itself on a real
// PostgreSQL with a clock that the test sets (deployment.go).
package oauthtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// World is the directory and the application service as their contracts
// describe them, as far as the OAuth service asks.
type World struct {
	base href.Base
	now  func() time.Time

	mu           sync.Mutex
	failure      error
	directories  map[directoryapi.Ref]directoryapi.Directory
	accounts     map[directoryapi.Ref]account
	applications map[directoryapi.Ref]application
	standings    int
}

type account struct {
	directoryapi.Account
	password secure.Secret
}

type application struct {
	applicationapi.Application
	stores []id.ID
}

// NewWorld makes an empty world.
func NewWorld(base href.Base, now func() time.Time) *World {
	return &World{
		base: base, now: now,
		directories: map[directoryapi.Ref]directoryapi.Directory{}, accounts: map[directoryapi.Ref]account{}, applications: map[directoryapi.Ref]application{},
	}
}

// Fail lets every question fail, until it is told nil.
func (w *World) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}

// Standings gives how often the standing of an account was asked.
func (w *World) Standings() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.standings
}

// NewDirectory adds a directory. A builtin one holds administrators.
func (w *World) NewDirectory(tenant id.ID, builtin bool) id.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := directoryapi.Directory{TenantID: tenant, ID: id.New(w.now()), Status: directoryapi.Enabled, Builtin: builtin}
	w.directories[directoryapi.Ref{Tenant: tenant, ID: d.ID}] = d
	return d.ID
}

// NewAccount adds an account.
func (w *World) NewAccount(tenant, directory id.ID, login string, password secure.Secret) id.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := directoryapi.Account{TenantID: tenant, ID: id.New(w.now()), DirectoryID: directory, Username: login, Email: login, Status: directoryapi.Enabled}
	w.accounts[directoryapi.Ref{Tenant: tenant, ID: a.ID}] = account{a, password}
	return a.ID
}

// NewApplication adds an application that the directories are mapped to.
func (w *World) NewApplication(tenant id.ID, directories ...id.ID) id.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := applicationapi.Application{
		TenantID: tenant, ID: id.New(w.now()), Status: directoryapi.Enabled, WebConfigID: id.New(w.now()), CreatedAt: w.now(), ModifiedAt: w.now(),
	}
	a.DNSLabel = strings.ToLower(a.ID.String())
	w.applications[directoryapi.Ref{Tenant: tenant, ID: a.ID}] = application{a, directories}
	return a.ID
}

// SetStatus sets the status of a directory, an account or an application.
func (w *World) SetStatus(tenant, resource id.ID, status string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	if d, ok := w.directories[ref]; ok {
		d.Status = status
		w.directories[ref] = d
	}
	if a, ok := w.accounts[ref]; ok {
		a.Status = status
		w.accounts[ref] = a
	}
	if a, ok := w.applications[ref]; ok {
		a.Status = status
		w.applications[ref] = a
	}
}

// Map sets the directories that are mapped to an application.
func (w *World) Map(tenant, resource id.ID, directories ...id.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	a := w.applications[ref]
	a.stores = directories
	w.applications[ref] = a
}

// Delete removes a directory, an account or an application.
func (w *World) Delete(tenant, resource id.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	delete(w.directories, ref)
	delete(w.accounts, ref)
	delete(w.applications, ref)
}

// DirectoryAPI is the world as its directory service.
func (w *World) DirectoryAPI() directoryapi.API { return directories{World: w} }

// ApplicationAPI is the world as its application service.
func (w *World) ApplicationAPI() applicationapi.API { return applications{World: w} }

// directories answers the questions that the OAuth service asks. The embedded
// contract is nil: another question is a fault of the service, and ends the
// test.
type directories struct {
	directoryapi.API
	*World
}

// Account gives an account.
func (d directories) Account(_ context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.accounts[in]
	if !ok && d.failure == nil {
		return directoryapi.Account{}, apierr.NotFound
	}
	return a.Account, d.failure
}

// Directory gives a directory.
func (d directories) Directory(_ context.Context, in directoryapi.Ref) (directoryapi.Directory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.World.directories[in]
	if !ok && d.failure == nil {
		return directoryapi.Directory{}, apierr.NotFound
	}
	return found, d.failure
}

type applications struct {
	applicationapi.API
	*World
}

// Application gives an application.
func (a applications) Application(_ context.Context, in directoryapi.Ref) (applicationapi.Application, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, err := a.find(in)
	return found.Application, err
}

func (a applications) find(in directoryapi.Ref) (application, error) {
	found, ok := a.World.applications[in]
	if !ok && a.failure == nil {
		return application{}, apierr.NotFound
	}
	return found, a.failure
}

// Login checks a password in the order of the application's directories.
func (a applications) Login(_ context.Context, in applicationapi.Login) (applicationapi.LoggedIn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	stores := app.stores
	if in.AccountStore.Href != "" {
		ref, ok := a.base.Parse(in.AccountStore.Href)
		if _, known := a.World.directories[directoryapi.Ref{Tenant: in.Tenant, ID: ref.ID}]; !ok || !known {
			return applicationapi.LoggedIn{}, apierr.Reference
		}
		if !holds(app.stores, ref.ID) {
			return applicationapi.LoggedIn{}, apierr.NotMapped
		}
		stores = []id.ID{ref.ID}
	}
	switch {
	case app.Status != directoryapi.Enabled:
		return applicationapi.LoggedIn{}, apierr.NoSuchAccount
	case len(stores) == 0:
		return applicationapi.LoggedIn{}, apierr.NoStores
	}
	for _, store := range stores {
		for ref, found := range a.accounts {
			if ref.Tenant != in.Tenant || found.DirectoryID != store || found.Email != in.Login {
				continue
			}
			switch {
			case found.password != in.Password:
				return applicationapi.LoggedIn{}, apierr.WrongPassword
			case a.World.directories[directoryapi.Ref{Tenant: in.Tenant, ID: store}].Status != directoryapi.Enabled:
				return applicationapi.LoggedIn{}, apierr.DirectoryDisabled
			case found.Status == directoryapi.Disabled:
				return applicationapi.LoggedIn{}, apierr.AccountDisabled
			case found.Status == directoryapi.Unverified:
				return applicationapi.LoggedIn{}, apierr.AccountUnverified
			}
			return applicationapi.LoggedIn{Account: found.Account}, nil
		}
	}
	return applicationapi.LoggedIn{}, apierr.NoSuchAccount
}

// Standing tells whether an account may act through the application.
func (a applications) Standing(_ context.Context, in applicationapi.Standing) (directoryapi.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.standings++
	app, err := a.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	found := a.accounts[directoryapi.Ref{Tenant: in.Tenant, ID: in.Account}]
	switch {
	case err != nil:
	case found.Status != directoryapi.Enabled:
		err = apierr.TokenAccountDisabled
	case app.Status != directoryapi.Enabled:
		err = apierr.TokenApplicationDisabled
	case !holds(app.stores, found.DirectoryID):
		err = apierr.TokenAccountUnreachable
	case a.World.directories[directoryapi.Ref{Tenant: in.Tenant, ID: found.DirectoryID}].Status != directoryapi.Enabled:
		err = apierr.TokenStoreDisabled
	}
	return found.Account, err
}

func holds(stores []id.ID, wanted id.ID) bool {
	for _, store := range stores {
		if store == wanted {
			return true
		}
	}
	return false
}
