// Package applicationtest runs the application service for its tests, and for those of the services that
// call it: on a database of the test's own, with the directory service beside it, and with a clock that
// only the test moves.
package applicationtest

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/app"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
	"github.com/doorward/doorward/services/directory/directorytest"
)

// Base is the address of the service under test.
const Base = href.Base("https://doorward.test/v1")

// Suffix is the domain of Client APIs.
const Suffix = "apps.localhost"

// Password is the password of every account.
const Password = directorytest.Password

// Config is the default configuration of a deployment.
var Config = application.Config{
	Suffix: Suffix,
	Throttle: throttle.Config{
		LoginKey: secure.Secret(strings.Repeat("k", 32)),
		Pair:     throttle.Limit{Failures: 20, Within: 15 * time.Minute},
		Account:  throttle.Limit{Failures: 60, Within: time.Hour},
		Address:  throttle.Limit{Failures: 300, Within: 15 * time.Minute}, AddressShare: 25,
		Application: throttle.Limit{Failures: 900, Within: 15 * time.Minute},
		KnownFor:    720 * time.Hour,
	},
}

// Deployment is the running service with its database, its clock and its peer.
type Deployment struct {
	Service     *app.Service
	Directories *directorytest.Service
	DB          *pg.DB
	Master      secure.Secret // the key of the ring
	Ring        *secure.Keyring
	Clock       *clocktest.Clock
}

// Open starts the service. The test package's TestMain is pgtest.Main.
func Open(t testing.TB) *Deployment {
	t.Helper()
	dbs := pgtest.OpenAll(t, directorytest.Config, store.Config)
	return open(t, dbs[0], dbs[1])
}

// OpenApart is Open with a database for each service, so that a test can break that of one.
func OpenApart(t testing.TB) *Deployment {
	t.Helper()
	return open(t, pgtest.Open(t, directorytest.Config), pgtest.Open(t, store.Config))
}

func open(t testing.TB, directories, own *pg.DB) *Deployment {
	t.Helper()
	d := &Deployment{Clock: &clocktest.Clock{}, DB: own, Master: secure.NewMasterKey("k1")}
	d.Directories = directorytest.New(t, directories, Base, d.Clock.Now)
	var err error
	if d.Ring, err = secure.ParseKeyring(d.Master); err != nil {
		t.Fatal(err)
	}
	data := store.New(d.DB, d.Clock.Now)
	worktest.Start(t, d.DB.Listen)
	d.Service = app.New(data, d.Directories, d.Ring, Base, d.Clock.Now, Config)
	return d
}

// Tenant signs a tenant up with the directory service and returns its id and that of
// its administrators directory.
func (d *Deployment) Tenant(t testing.TB) (tenant, administrators id.ID) {
	t.Helper()
	in := directoryapi.SignUp{
		Tenant: d.NewID(), Directory: d.NewID(), Owner: d.NewID(), Key: strings.ToLower(rand.Text()),
		DirectoryName: "Service Administrators", Email: "owner@example.test", Password: Password,
	}
	if _, err := d.Directories.SignUp(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return in.Tenant, in.Directory
}

// NewID makes an id and moves the clock.
func (d *Deployment) NewID() id.ID {
	d.Clock.Tick()
	return id.New(d.Clock.Now())
}

// Directory makes a directory.
func (d *Deployment) Directory(t testing.TB, tenant id.ID, name string) id.ID {
	t.Helper()
	v := d.NewID()
	if _, err := d.Directories.CreateDirectory(t.Context(),
		directoryapi.CreateDirectory{Tenant: tenant, ID: v, Name: name}); err != nil {
		t.Fatal(err)
	}
	return v
}

// Group makes a group.
func (d *Deployment) Group(t testing.TB, tenant, directory id.ID, name string) id.ID {
	t.Helper()
	v := d.NewID()
	in := directoryapi.CreateGroup{Tenant: tenant, ID: v, Directory: directory,
		Group: directoryapi.NewGroup{Name: field.Some(name)}}
	if _, err := d.Directories.CreateGroup(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return v
}

// Account makes an account.
func (d *Deployment) Account(t testing.TB, tenant, directory id.ID, email string) id.ID {
	t.Helper()
	v := d.NewID()
	_, err := d.Directories.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: tenant, ID: v, Directory: directory, Workflow: true,
		Account: directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(Password)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
