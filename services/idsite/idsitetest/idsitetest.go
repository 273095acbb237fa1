// Package idsitetest runs the services that idsite calls for its tests, as one deployment on one database.
package idsitetest

import (
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/store"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// Base is the address of the management API.
const Base href.Base = "https://localhost:8443/v1"

// Password is the password of the accounts that Shop adds.
const Password secure.Secret = directorytest.Password

// Deployment are the services.
type Deployment struct {
	Directories  *directorytest.Service
	Applications *applicationtest.Service
	OAuth        *oauthtest.Service
	MFA          *mfatest.Service
	DB           *pg.DB // of idsite
	DNS          *DNS
	t            testing.TB
}

// New returns an empty deployment.
func New(t testing.TB, clock *clocktest.Clock) *Deployment {
	t.Helper()
	dbs := pgtest.OpenAll(t, append(oauthtest.Configs, store.Config)...)
	w := oauthtest.NewWorld(t, Base, clock, dbs[0], dbs[1], dbs[2])
	return &Deployment{
		Directories: w.Directories, Applications: w.Applications, MFA: w.Factors,
		OAuth: oauthtest.NewService(t, dbs[3], w, Base),
		DB:    dbs[4], DNS: &DNS{}, t: t,
	}
}

// Peers returns the services.
func (d *Deployment) Peers() idsite.Peers {
	return idsite.Peers{Directory: d.Directories, Application: d.Applications, OAuth: d.OAuth, MFA: d.MFA}
}

// FailSignUp makes the calls that create a tenant fail after they had their effect. fail gets the
// number of the call, from 1.
func (d *Deployment) FailSignUp(fail func(call int) error) {
	var calls atomic.Int32
	cause := func() error { return fail(int(calls.Add(1))) }
	d.Directories.Break("SignUp", fault.After, cause)
	d.Applications.Break("SignUp", fault.After, cause)
	d.OAuth.Break("EnsureKey", fault.After, cause)
}

// SignUps returns the first request for the applications of each tenant.
func (d *Deployment) SignUps() (first []applicationapi.SignUp) {
	d.t.Helper()
	known := map[id.ID]bool{}
	for _, in := range fault.Requests[applicationapi.SignUp](d.t, &d.Applications.Injector, "SignUp") {
		if !known[in.Tenant] {
			first = append(first, in)
		}
		known[in.Tenant] = true
	}
	return first
}

// Shop adds an application of a tenant. Its only account store is a directory with one enabled
// account, whose password is Password.
func (d *Deployment) Shop(tenant id.ID, email string) (shop id.ID, user directoryapi.Account) {
	d.t.Helper()
	directory := d.Directories.NewDirectory(tenant, "Customers")
	shop = d.Applications.NewApplication(tenant)
	d.Applications.FollowLinks(id.Ref{Tenant: tenant, ID: shop}, directory)
	return shop, d.Directories.NewAccount(tenant, directory,
		directoryapi.NewAccount{Username: field.Some(email), Email: field.Some(email)})
}

// MapGoogle adds a directory of a social provider, and maps it to an application.
func (d *Deployment) MapGoogle(t testing.TB, at id.Ref) id.ID {
	t.Helper()
	google := d.Directories.NewMirror(t, at.Tenant, "Google", "google")
	d.Applications.AddStore(at, google)
	return google
}

// Named is a body that names an application, and lists addresses to which browsers may be sent.
func Named(name string, callbacks ...string) application.NewApplication {
	in := application.NewApplication{Name: field.Some(name)}
	if len(callbacks) > 0 {
		in.AuthorizedCallbackURIs = field.Some(callbacks)
	}
	return in
}
