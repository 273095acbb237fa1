// Package oauthtest is what the tests of the OAuth service stand in: the
// services that it asks, in memory (world.go, factors.go), and the
// service itself on a real PostgreSQL with a clock that the test sets
// (deployment.go).
package oauthtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// World is the directory, the application and the mfa service as their contracts
// describe them, as far as the OAuth service asks.
type World struct {
	base href.Base
	now  func() time.Time

	mu            sync.Mutex
	failure       error
	directories   map[directoryapi.Ref]directoryapi.Directory
	accounts      map[directoryapi.Ref]account
	applications  map[directoryapi.Ref]application
	standings     int
	organizations map[directoryapi.Ref]organization
	mfaFailure    error
	demands       []mfaapi.Demand
	factors       map[id.ID][]mfaapi.Factor
	steps         map[secure.Secret]*step
}

type account struct {
	directoryapi.Account
	password secure.Secret
}

type application struct {
	applicationapi.Application
	stores        []id.ID
	social        map[string]id.ID // directories by their providers
	organizations []id.ID
}

type organization struct {
	nameKey string
	status  string
	stores  []id.ID
}

// NewWorld makes an empty world.
func NewWorld(base href.Base, now func() time.Time) *World {
	return &World{
		base: base, now: now,
		directories: map[directoryapi.Ref]directoryapi.Directory{}, accounts: map[directoryapi.Ref]account{}, applications: map[directoryapi.Ref]application{},
		organizations: map[directoryapi.Ref]organization{}, factors: map[id.ID][]mfaapi.Factor{}, steps: map[secure.Secret]*step{},
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
	w.applications[directoryapi.Ref{Tenant: tenant, ID: a.ID}] = application{Application: a, stores: directories}
	return a.ID
}

// NewOrganization adds an organization that the directories are mapped to, and
// maps it to an application.
func (w *World) NewOrganization(tenant, resource id.ID, nameKey string, directories ...id.ID) id.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := id.New(w.now())
	w.organizations[directoryapi.Ref{Tenant: tenant, ID: o}] = organization{nameKey, directoryapi.Enabled, directories}
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	a := w.applications[ref]
	a.organizations = append(a.organizations, o)
	w.applications[ref] = a
	return o
}

// MapSocial maps a directory of a social provider to an application.
func (w *World) MapSocial(tenant, resource id.ID, provider string, directory id.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	a := w.applications[ref]
	a.social = map[string]id.ID{provider: directory}
	w.applications[ref] = a
}

// SetStatus sets the status of a directory, an account, an organization or an
// application.
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
	if o, ok := w.organizations[ref]; ok {
		o.status = status
		w.organizations[ref] = o
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

// Delete removes a directory, an account, an organization or an application.
func (w *World) Delete(tenant, resource id.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	delete(w.directories, ref)
	delete(w.accounts, ref)
	delete(w.applications, ref)
	delete(w.organizations, ref)
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
	stores, organization, err := a.within(in.Tenant, app, in.AccountStore.Href, in.NameKey)
	switch {
	case app.Status != directoryapi.Enabled:
		return applicationapi.LoggedIn{}, apierr.NoSuchAccount
	case err != nil:
		return applicationapi.LoggedIn{}, err
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
			return applicationapi.LoggedIn{Account: found.Account, Organization: organization}, nil
		}
	}
	return applicationapi.LoggedIn{}, apierr.NoSuchAccount
}

// within gives the directories in which a login is looked for, and the
// organization that it names.
func (a applications) within(tenant id.ID, app application, store, nameKey string) ([]id.ID, id.ID, error) {
	ref, _ := a.base.Parse(store)
	named := directoryapi.Ref{Tenant: tenant, ID: ref.ID}
	for of, o := range a.World.organizations {
		if of.Tenant == tenant && store == "" && o.nameKey == nameKey {
			named = of
		}
	}
	o, isOrganization := a.World.organizations[named]
	_, isDirectory := a.World.directories[named]
	switch {
	case store == "" && nameKey == "":
		return app.stores, id.ID{}, nil
	case !isOrganization && !isDirectory:
		return nil, id.ID{}, apierr.Reference
	case !holds(app.stores, named.ID) && !holds(app.organizations, named.ID):
		return nil, id.ID{}, apierr.NotMapped
	case isDirectory:
		return []id.ID{named.ID}, id.ID{}, nil
	case o.status != directoryapi.Enabled:
		return nil, id.ID{}, apierr.OrganizationDisabled
	}
	return o.stores, named.ID, nil
}

// Admit lets an account in without a password.
func (a applications) Admit(ctx context.Context, in applicationapi.Admit) (applicationapi.LoggedIn, error) {
	account, err := a.Standing(ctx, applicationapi.Standing{Tenant: in.Tenant, Application: in.Application, Account: in.Account})
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	stores, organization, err := a.within(in.Tenant, app, in.AccountStore.Href, in.NameKey)
	if err == nil && !holds(stores, account.DirectoryID) {
		err = apierr.TokenAccountUnreachable
	}
	return applicationapi.LoggedIn{Account: account, Organization: organization}, err
}

// SocialDirectory gives the directory of a provider.
func (a applications) SocialDirectory(_ context.Context, in applicationapi.SocialDirectory) (directoryapi.Ref, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	if err != nil {
		return directoryapi.Ref{}, err
	}
	if _, _, err := a.within(in.Tenant, app, in.AccountStore.Href, in.NameKey); err != nil {
		return directoryapi.Ref{}, err
	}
	directory, ok := app.social[in.Provider]
	if !ok {
		return directoryapi.Ref{}, apierr.Reference
	}
	return directoryapi.Ref{Tenant: in.Tenant, ID: directory}, nil
}

// Standing tells whether an account may act through the application.
func (a applications) Standing(_ context.Context, in applicationapi.Standing) (directoryapi.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.standings++
	o := a.World.organizations[directoryapi.Ref{Tenant: in.Tenant, ID: in.Organization}]
	app, err := a.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	found := a.accounts[directoryapi.Ref{Tenant: in.Tenant, ID: in.Account}]
	switch {
	case err != nil:
	case found.Status != directoryapi.Enabled:
		err = apierr.TokenAccountDisabled
	case app.Status != directoryapi.Enabled:
		err = apierr.TokenApplicationDisabled
	case !holds(a.reached(in.Tenant, app), found.DirectoryID), !in.Organization.IsZero() && (o.status == "" || !holds(app.organizations, in.Organization)):
		err = apierr.TokenAccountUnreachable
	case !in.Organization.IsZero() && o.status != directoryapi.Enabled:
		err = apierr.TokenStoreDisabled
	case a.World.directories[directoryapi.Ref{Tenant: in.Tenant, ID: found.DirectoryID}].Status != directoryapi.Enabled:
		err = apierr.TokenStoreDisabled
	}
	return found.Account, err
}

// Reaches tells whether a directory of the application holds the account.
func (a applications) Reaches(_ context.Context, in applicationapi.Reaches) (applicationapi.Reached, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	found, exists := a.accounts[directoryapi.Ref{Tenant: in.Tenant, ID: in.Account}]
	return applicationapi.Reached{Reached: err == nil && exists && holds(a.reached(in.Tenant, app), found.DirectoryID)}, err
}

// reached gives the directories of an application and of its organizations.
func (a applications) reached(tenant id.ID, app application) []id.ID {
	stores := slices.Clone(app.stores)
	for _, o := range app.organizations {
		stores = append(stores, a.World.organizations[directoryapi.Ref{Tenant: tenant, ID: o}].stores...)
	}
	return stores
}

func holds(stores []id.ID, wanted id.ID) bool { return slices.Contains(stores, wanted) }
