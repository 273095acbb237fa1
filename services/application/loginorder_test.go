package application_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// counter counts the round trips of a pool: queries and batches.
type counter struct{ trips atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.trips.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.trips.Add(1)
	return ctx
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// withCountedTrips returns the database of the deployment with a pool whose round trips are counted.
func withCountedTrips(t testing.TB, d *applicationtest.Deployment) (*pg.DB, *counter) {
	t.Helper()
	count := &counter{}
	config := d.DB.Config()
	config.ConnConfig.Tracer = count
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pg.FromPool(pool), count
}

// loginDirectory is a fake of the directory service with the two methods of a login; any other
// panics.
type loginDirectory struct {
	directoryapi.API
	asked  int
	answer func(directoryapi.Authenticate) directoryapi.Authenticated
}

func (o *loginDirectory) Authenticate(_ context.Context,
	in directoryapi.Authenticate) (directoryapi.Authenticated, error) {
	o.asked++
	return o.answer(in), nil
}

func (o *loginDirectory) LinkedAccount(_ context.Context,
	in directoryapi.LinkedAccountRequest) (directoryapi.LinkedAccount, error) {
	o.asked++
	return directoryapi.LinkedAccount{Account: directoryapi.Account{ID: in.Store.ID}, Outcome: directoryapi.Followed}, nil
}

// accessDirectory is a fake of the directory service in which all accounts are in one directory.
type accessDirectory struct {
	directoryapi.API
	of id.ID
}

func (m accessDirectory) CheckAccess(_ context.Context, in directoryapi.CheckAccess) (directoryapi.Access, error) {
	if !slices.Contains(in.Stores, directoryapi.Store{Kind: directoryapi.Directories, ID: m.of}) {
		return directoryapi.Access{}, apierr.TokenAccountUnreachable
	}
	return directoryapi.Access{Account: directoryapi.Account{ID: in.Account}, DependsOn: []id.ID{in.Account, m.of}}, nil
}

// withMembers returns the service on a database, with accessDirectory.
func withMembers(d *applicationtest.Deployment, db *pg.DB, directory id.ID) *application.Service {
	return application.New(store.New(db, d.Clock.Now), accessDirectory{API: d.Directories, of: directory},
		applicationtest.Base, d.Clock.Now, applicationtest.Config)
}

// The access of an account is checked without a query while nothing changes (cache). A change takes
// effect at once in the process that makes it, and in the others when PostgreSQL has notified
// them: the test waits for that, and logs how long it took.
func TestAChangeOfTheLoginOrderShowsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	directory, shop, organization := d.Directory(t, tenant, "Staff"), newApplication(t, d, tenant),
		newOrganization(t, d, tenant)
	mapping := newMapping(t, d, tenant, shop, directory)
	mapOrganization(t, d, tenant, shop, organization)
	mapToOrganization(t, d, tenant, organization, directory)

	db, count := withCountedTrips(t, d)
	replicas := make([]*application.Service, 2)
	for i := range replicas {
		replica := pg.FromPool(db.Pool)
		replicas[i] = withMembers(d, replica, directory)
		worktest.Start(t, replica.Listen)
	}
	here, elsewhere := replicas[0], replicas[1]
	access := func(s *application.Service) error {
		_, err := s.CheckAccess(t.Context(),
			applicationapi.CheckAccess{Tenant: tenant, Application: shop, Account: d.NewID()})
		return err
	}
	disabled, enabled := field.Some(directoryapi.Disabled), field.Some(directoryapi.Enabled)
	var slowest time.Duration
	for _, c := range []struct {
		what   string
		change func() error
		want   error
	}{
		{"the application is disabled", func() error {
			_, err := here.UpdateApplication(t.Context(), id.Ref{Tenant: tenant, ID: shop},
				application.NewApplication{Status: disabled})
			return err
		}, apierr.TokenApplicationDisabled},
		{"the application is enabled", func() error {
			_, err := here.UpdateApplication(t.Context(), id.Ref{Tenant: tenant, ID: shop},
				application.NewApplication{Status: enabled})
			return err
		}, nil},
		{"the mapping of the directory is deleted", func() error {
			return here.MappingDeleter(store.ApplicationKind)(t.Context(), id.Ref{Tenant: tenant, ID: mapping})
		}, nil}, // the organization still has it
		{"the organization is disabled", func() error {
			_, err := here.UpdateOrganization(t.Context(), id.Ref{Tenant: tenant, ID: organization},
				application.NewOrganization{Status: disabled})
			return err
		}, apierr.TokenStoreDisabled},
		{"the organization is deleted", func() error {
			return here.DeleteOrganization(t.Context(), id.Ref{Tenant: tenant, ID: organization})
		}, apierr.TokenAccountUnreachable},
		{"the directory is mapped again", func() error {
			_, err := here.CreateMapping(t.Context(), tenant, mappingBody(shop, directory))
			return err
		}, nil},
	} {
		for _, s := range replicas {
			for trips := int64(-1); trips != count.trips.Load(); { // until it is kept
				trips = count.trips.Load()
				_ = access(s)
			}
		}
		granted := access(elsewhere) == nil
		kept, _ := elsewhere.CheckAccess(t.Context(), applicationapi.CheckAccess{
			Tenant: tenant, Application: shop, Account: d.NewID()})
		if granted && len(kept.DependsOn) == 0 {
			t.Errorf("before %s the answer depends on %v", c.what, kept.DependsOn)
		}
		reported := worktest.Changes(t, elsewhere.AccessChanges)
		if err := c.change(); err != nil {
			t.Fatalf("the change, %s, failed: %v", c.what, err)
		}
		changed := time.Now()
		if granted { // a refusal is not kept
			worktest.Await(t, "the report that "+c.what,
				func() bool { changed, _ := reported(kept.DependsOn...); return changed })
		}
		if err := access(here); !errors.Is(err, c.want) {
			t.Errorf("%s: here the account stands with %v, want %v", c.what, err, c.want)
		}
		for !errors.Is(access(elsewhere), c.want) {
			runtime.Gosched()
		}
		slowest = max(slowest, time.Since(changed))
	}
	t.Logf("elsewhere a change showed within %s", slowest)
}

// The answer to a change names the application or organization whose login order has changed, and nothing where
// it has not.
func TestOnlyAChangeOfTheLoginOrderIsNamed(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	directory, shop, organization := d.Directory(t, tenant, "Staff"), newApplication(t, d, tenant), newOrganization(t, d, tenant)
	mapping := newMapping(t, d, tenant, shop, directory)
	enabled, disabled := field.Some(directoryapi.Enabled), field.Some(directoryapi.Disabled)
	update := func(in application.NewApplication) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := d.Service.UpdateApplication(ctx, id.Ref{Tenant: tenant, ID: shop}, in)
			return err
		}
	}
	updateOrganization := func(in application.NewOrganization) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := d.Service.UpdateOrganization(ctx, id.Ref{Tenant: tenant, ID: organization}, in)
			return err
		}
	}
	for _, c := range []struct {
		what   string
		change func(context.Context) error
		want   id.ID
	}{
		{"a description with the same status", update(application.NewApplication{Description: field.Some("x"), Status: enabled}), id.ID{}},
		{"a disabled application", update(application.NewApplication{Status: disabled}), shop},
		{"a description of an organization", updateOrganization(application.NewOrganization{Description: field.Some("x"), Status: enabled}), id.ID{}},
		{"a disabled organization", updateOrganization(application.NewOrganization{Status: disabled}), organization},
		{"a deleted mapping", func(ctx context.Context) error {
			return d.Service.MappingDeleter(store.ApplicationKind)(ctx, id.Ref{Tenant: tenant, ID: mapping})
		}, shop},
	} {
		ctx, endings := caller.CollectEndings(caller.Into(t.Context(), caller.Caller{Tenant: tenant}))
		if err := c.change(ctx); err != nil {
			t.Fatalf("the change, %s, failed: %v", c.what, err)
		}
		var want caller.IDs
		if !c.want.IsZero() {
			want = want.With(c.want)
		}
		if named := caller.ParseEnded([]byte(endings.Header()))[tenant]; named != want {
			t.Errorf("%s names %x, want %x", c.what, named, want)
		}
	}
}

// The application of a DNS label is found without a query while nothing changes (cache). After a
// label has moved to another application, that is found at once in the process that made the
// change, and in the others when PostgreSQL has notified them.
func TestALabelLeadsToItsApplicationAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	first, second := newApplication(t, d, tenant), newApplication(t, d, tenant)

	db, count := withCountedTrips(t, d)
	replicas := make([]*application.Service, 2)
	for i := range replicas {
		replica := pg.FromPool(db.Pool)
		data := store.New(replica, d.Clock.Now)
		worktest.Start(t, replica.Listen)
		replicas[i] = application.New(data, d.Directories, applicationtest.Base, d.Clock.Now, applicationtest.Config)
	}
	here, elsewhere := replicas[0], replicas[1]
	leads := func(s *application.Service) (applicationapi.Application, error) {
		return s.ApplicationByDNSLabel(t.Context(), applicationapi.DNSLabel{Label: "shop"})
	}
	name := func(application id.ID, label string) {
		t.Helper()
		if _, err := here.SetDNSLabel(t.Context(),
			applicationapi.SetDNSLabel{Tenant: tenant, Application: application, Label: label}); err != nil {
			t.Fatal(err)
		}
	}
	name(first, "shop")
	for _, s := range replicas {
		for trips := int64(-1); trips != count.trips.Load(); { // until it is kept
			trips = count.trips.Load()
			if a, err := leads(s); err != nil || a.ID != first {
				t.Fatalf("the label leads to %s, %v", a.ID, err)
			}
		}
	}
	name(first, "former")
	if a, err := leads(here); !errors.Is(err, apierr.NotFound) {
		t.Errorf("here the label that is free leads to %s, %v", a.ID, err)
	}
	name(second, "shop")
	if a, err := leads(here); err != nil || a.ID != second {
		t.Errorf("here the label leads to %s, %v", a.ID, err)
	}
	for a, _ := leads(elsewhere); a.ID != second; a, _ = leads(elsewhere) {
		runtime.Gosched()
	}
	if _, err := here.UpdateApplication(t.Context(), id.Ref{Tenant: tenant, ID: second},
		application.NewApplication{Status: field.Some(directoryapi.Disabled)}); err != nil {
		t.Fatal(err)
	}
	if a, err := leads(here); err != nil || a.Status != directoryapi.Disabled {
		t.Errorf("here the application is %s, %v", a.Status, err)
	}
	for a, _ := leads(elsewhere); a.Status != directoryapi.Disabled; a, _ = leads(elsewhere) {
		runtime.Gosched()
	}
}

// A login at a known address takes two round trips to the database and one call of the directory
// service, for any number of stores, and one more call where links are followed.
func TestALoginTakesTwoRoundTripsAndOneQuestion(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	few, many := newApplication(t, d, tenant), newApplication(t, d, tenant)
	newMapping(t, d, tenant, few, d.Directory(t, tenant, "One"))
	newMapping(t, d, tenant, few, d.Directory(t, tenant, "Two"))
	// 200 mappings: of 160 directories, and of 40 organizations with 5 each.
	for range 160 {
		newMapping(t, d, tenant, many, d.Directory(t, tenant, d.NewID().String()))
	}
	var last id.ID
	for range 40 {
		last = newOrganization(t, d, tenant)
		mapOrganization(t, d, tenant, many, last)
		for range 5 {
			mapToOrganization(t, d, tenant, last, d.Directory(t, tenant, d.NewID().String()))
		}
	}
	organization, err := d.Service.Organization(t.Context(), id.Ref{Tenant: tenant, ID: last})
	if err != nil {
		t.Fatal(err)
	}

	db, count := withCountedTrips(t, d)
	peer := &loginDirectory{answer: func(in directoryapi.Authenticate) directoryapi.Authenticated {
		return directoryapi.Authenticated{Store: in.Stores[len(in.Stores)-1]}
	}}
	svc := application.New(store.New(db, d.Clock.Now), peer, applicationtest.Base, d.Clock.Now,
		applicationtest.Config)
	user := caller.Into(t.Context(), caller.Caller{Tenant: tenant, Address: netip.MustParseAddr("198.51.100.7")})
	// The first login makes the address known.
	if _, err := svc.Login(user, applicationapi.Login{Tenant: tenant, Application: many, Login: "jo",
		Password: "x"}); err != nil {
		t.Fatal(err)
	}
	attempts := func(t *testing.T, questions int, isLinked bool) {
		for _, c := range []struct {
			what string
			in   application.LoginAttempt
			to   id.ID
		}{
			{"2 stores", attempt(directoryapi.StoreName{}), few},
			{"360 stores", attempt(directoryapi.StoreName{}), many},
			{"an organization by its key", attempt(directoryapi.StoreName{NameKey: organization.NameKey}), many},
			{"an organization by its href",
				attempt(directoryapi.StoreName{Href: applicationtest.Base.To("organizations", last)}), many},
		} {
			t.Run(c.what, func(t *testing.T) {
				trips, asked := count.trips.Load(), peer.asked
				account, err := svc.AttemptLogin(user, id.Ref{Tenant: tenant, ID: c.to}, c.in)
				if err != nil || account.ID.IsZero() == isLinked {
					t.Fatalf("the account %s logged in, %v", account.ID, err)
				}
				if n := count.trips.Load() - trips; n != 2 {
					t.Errorf("the login took %d round trips", n)
				}
				if n := peer.asked - asked; n != questions {
					t.Errorf("the login asked the directory service %d times, want %d", n, questions)
				}
			})
		}
	}
	for _, change := range []string{
		`UPDATE account_store_mappings SET is_default_account_store = true WHERE list_index = 0`,
		`UPDATE account_linking_policies SET automatic_provisioning = 'ENABLED', matching_property = 'email'`,
	} {
		if err := pg.MustChange(t.Context(), d.DB, change); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("under disabled policies", func(t *testing.T) { attempts(t, 1, false) })
	if err := pg.MustChange(t.Context(), d.DB, `UPDATE account_linking_policies SET status = 'ENABLED'`); err != nil {
		t.Fatal(err)
	}
	t.Run("where links are followed", func(t *testing.T) { attempts(t, 2, true) })
}
