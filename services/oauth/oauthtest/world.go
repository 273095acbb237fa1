// Package oauthtest runs the OAuth service in tests: on a database of its own, with its HTTP
// application, and with the services that it calls beside it.
package oauthtest

import (
	"context"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/oauth"
)

// World has the services that the OAuth service calls.
type World struct {
	Directories  *directorytest.Service
	Applications *applicationtest.Service
	Factors      *mfatest.Service

	t        testing.TB
	sentinel Site // whose changes AwaitChanges waits for
	clock    *clocktest.Clock
	kinds    map[id.ID]string  // of directories, accounts and organizations
	social   map[id.ID][]id.ID // directories of social providers, by application
}

const (
	accounts       = "accounts"
	administrators = "administrators directories"
	organizations  = "organizations"
)

// peerConfigs are those of the databases that NewWorld needs, in their order.
var peerConfigs = []pgtest.Config{directorytest.Config, applicationtest.DBConfig, mfatest.Config}

// NewWorld starts the services without data, on databases of their schemas.
func NewWorld(t testing.TB, base href.Base, clock *clocktest.Clock, directories, applications, factors *pg.DB) *World {
	t.Helper()
	w := &World{t: t, clock: clock, kinds: map[id.ID]string{}, social: map[id.ID][]id.ID{}}
	w.Directories = directorytest.New(t, directories, base, clock.Now)
	w.Applications = applicationtest.New(t, applications, w.Directories, base, clock.Now)
	w.Factors = mfatest.New(t, factors, w.Directories, base, clock)
	return w
}

// OpenWorld starts the services on a database of their own, with a clock that stands still.
func OpenWorld(t testing.TB) *World {
	t.Helper()
	dbs := pgtest.OpenAll(t, peerConfigs...)
	return NewWorld(t, Base, &clocktest.Clock{}, dbs[0], dbs[1], dbs[2])
}

// Peers returns the services as the peers of the OAuth service.
func (w *World) Peers() oauth.Peers {
	return oauth.Peers{Directory: w.Directories, Application: w.Applications, MFA: w.Factors}
}

// Listen starts the caches of the services, and their feeds of changes.
func (w *World) Listen() {
	w.t.Helper()
	worktest.Start(w.t, w.Directories.DB.Listen)
	worktest.Start(w.t, w.Applications.DB.Listen)
	made, _ := w.NewTenant()
	account := w.NewAccount(made.Tenant.ID, made.Directory.ID, "sentinel@example.test", Password)
	w.sentinel = Site{Tenant: made.Tenant.ID, Account: account, Application: w.NewApplication(made.Tenant.ID)}
	w.AwaitFeeds()
	w.AwaitChanges()
}

// AwaitFeeds makes a call that asks for changes wait until PostgreSQL has confirmed that none are missing:
// the clock of the tests stands still, but not that of the confirmation.
func (w *World) AwaitFeeds() {
	awaitFeed(&w.Directories.Injector, w.Directories.Rules.AccessChanges)
	awaitFeed(&w.Applications.Injector, w.Applications.Rules.AccessChanges)
}

func awaitFeed(i *fault.Injector, feed cache.Source) {
	i.Break("AccessChanges", fault.Before, func() error {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if page, err := feed(context.Background(), nil); err != nil || !page.Behind {
				return err
			}
			<-tick.C
		}
	})
}

// AwaitChanges waits until the feeds have reported the changes that were committed before, and no feed is
// behind.
func (w *World) AwaitChanges() {
	w.t.Helper()
	for !w.reportSentinels() {
	}
}

// reportSentinels changes the sentinels and waits until that is reported. It returns false if a feed has
// begun anew meanwhile.
func (w *World) reportSentinels() (reported bool) {
	w.t.Helper()
	directories := worktest.Changes(w.t, w.Directories.Rules.AccessChanges)
	applications := worktest.Changes(w.t, w.Applications.Rules.AccessChanges)
	for _, resource := range []id.ID{w.sentinel.Account, w.sentinel.Application} {
		w.Touch(w.sentinel.Tenant, resource)
	}
	worktest.Await(w.t, "the changes to be reported", func() bool {
		ofDirectories, gap := directories(w.sentinel.Account)
		ofApplications, other := applications(w.sentinel.Application)
		reported = ofDirectories && ofApplications
		return reported || gap || other
	})
	return reported
}

// Touch disables and enables a resource.
func (w *World) Touch(tenant, resource id.ID) {
	w.t.Helper()
	w.SetStatus(tenant, resource, directoryapi.Disabled)
	w.SetStatus(tenant, resource, directoryapi.Enabled)
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

// NewTenant adds a tenant with its owner, and returns the id of its console.
func (w *World) NewTenant() (made directoryapi.SignedUp, console id.ID) {
	w.t.Helper()
	made = w.Directories.NewTenant()
	w.kinds[made.Directory.ID], w.kinds[made.Owner.ID] = administrators, accounts
	return made, w.Applications.NewTenant(made.Tenant.ID, made.Directory.ID).Console.ID
}

// NewDirectory adds a directory.
func (w *World) NewDirectory(tenant id.ID) id.ID {
	w.t.Helper()
	v := w.Directories.NewDirectory(tenant, "Directory "+id.New(w.clock.Now()).String())
	w.kinds[v] = directoryapi.Directories
	return v
}

// NewAccount adds an account.
func (w *World) NewAccount(tenant, directory id.ID, login string, password secure.Secret) id.ID {
	w.t.Helper()
	a := w.Directories.NewAccount(tenant, directory, directoryapi.NewAccount{
		Username: field.Some(login), Email: field.Some(login), Password: field.Some(password.Reveal()),
	})
	w.kinds[a.ID] = accounts
	return a.ID
}

// NewApplication adds an application that the directories are mapped to.
func (w *World) NewApplication(tenant id.ID, directories ...id.ID) id.ID {
	w.t.Helper()
	return w.Applications.NewApplication(tenant, directories...)
}

// NewOrganization adds an organization that a directory is mapped to, and maps it to an application.
func (w *World) NewOrganization(tenant, to id.ID, nameKey string, directory id.ID) id.ID {
	w.t.Helper()
	v := w.Applications.NewOrganization(tenant, to, nameKey, directory)
	w.kinds[v] = organizations
	return v
}

// MapSocial maps a new directory of a social provider to an application.
func (w *World) MapSocial(tenant, application id.ID, provider string) {
	w.t.Helper()
	directory := w.Directories.NewMirror(w.t, tenant, provider+" "+id.New(w.clock.Now()).String(), provider)
	w.Applications.AddStore(ref(tenant, application), directory)
	w.social[application] = append(w.social[application], directory)
}

// LabelOf returns the DNS label of an application.
func (w *World) LabelOf(tenant, application id.ID) string {
	w.t.Helper()
	a, err := w.Applications.Rules.Application(context.Background(), ref(tenant, application))
	if err != nil {
		w.t.Fatal(err)
	}
	return a.DNSLabel
}

// WebConfigOf returns the id of the web config of an application.
func (w *World) WebConfigOf(tenant, application id.ID) id.ID {
	a, err := w.Applications.Rules.Application(context.Background(), ref(tenant, application))
	if err != nil {
		w.t.Fatal(err)
	}
	return a.WebConfigID
}

// SetStatus sets the status of a directory, an account, an organization or an
// application.
func (w *World) SetStatus(tenant, resource id.ID, status string) {
	w.t.Helper()
	switch at := ref(tenant, resource); w.kinds[resource] {
	case administrators:
		w.Directories.SetBuiltinStatus(w.t, at, status)
	case directoryapi.Directories:
		w.Directories.SetStatus(w.t, at, directoryapi.Directories, status)
	case accounts:
		w.Directories.Change(w.t, at, directoryapi.NewAccount{Status: field.Some(status)})
	case organizations:
		w.Applications.SetOrganizationStatus(at, status)
	default:
		w.Applications.SetStatus(at, status)
	}
}

// Map sets the directories that are mapped to an application: none, or these and those of MapSocial.
func (w *World) Map(tenant, application id.ID, directories ...id.ID) {
	w.t.Helper()
	if len(directories) > 0 {
		directories = append(directories, w.social[application]...)
	}
	w.Applications.Map(ref(tenant, application), directories...)
}

// Delete removes a directory, an account, an organization or an application.
func (w *World) Delete(tenant, resource id.ID) {
	w.t.Helper()
	switch at := ref(tenant, resource); w.kinds[resource] {
	case directoryapi.Directories:
		if _, err := w.Directories.Rules.DeleteDirectory(context.Background(), at); err != nil {
			w.t.Fatal(err)
		}
	case accounts:
		w.Directories.DeleteAccount(w.t, at)
	case organizations:
		w.Applications.DeleteOrganization(at)
	default:
		w.Applications.Delete(at)
	}
}

// Enroll adds a second factor to an account.
func (w *World) Enroll(tenant, account id.ID, kind, hint string) {
	w.t.Helper()
	w.Factors.Enroll(ref(tenant, account), kind, hint)
}

// EndChallenges makes challenges refuse their codes, until it is called with nil.
func (w *World) EndChallenges(refusal error) {
	w.Factors.Break("VerifySecondStep", fault.Before, func() error { return refusal })
}

// Demands returns the second steps that were begun.
func (w *World) Demands(t testing.TB) []mfaapi.BeginSecondStep {
	t.Helper()
	return fault.Requests[mfaapi.BeginSecondStep](t, &w.Factors.Injector, "BeginSecondStep")
}

// Challenge makes a challenge of an account outside of a login, of a new phone
// where it has no factor, and returns its href.
func (w *World) Challenge(tenant, account id.ID) string {
	w.t.Helper()
	if !w.Factors.HasFactor(ref(tenant, account)) {
		w.Enroll(tenant, account, mfaapi.SMS, "xxx-xxx-0959")
	}
	return w.Factors.Challenge(ref(tenant, account)).Href
}

// Code returns the code that the authenticator of an account shows, or that was
// sent to its phone.
func (w *World) Code(tenant, account id.ID) string {
	w.t.Helper()
	if at := ref(tenant, account); w.Factors.HasAuthenticator(at) {
		return w.Factors.Show(at)
	}
	return w.Factors.Sent(ref(tenant, account))
}

func ref(tenant, resource id.ID) id.Ref { return id.Ref{Tenant: tenant, ID: resource} }
