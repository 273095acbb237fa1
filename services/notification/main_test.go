package notification

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/mail"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

// trusted is the certificate of the tests' mail servers.
var trusted *tls.Config

func TestMain(m *testing.M) {
	pollInterval, maxPollInterval = 20*time.Millisecond, 20*time.Millisecond
	dir, err := os.MkdirTemp("", "doorward-mail-")
	if err == nil {
		trusted, err = mailtest.Trust(dir, time.Now())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

func config(url secure.Secret) pg.Config {
	c := store.Config(url)
	c.MaxConns = 12
	return c
}

// office is what a test of the senders works with: a database, a mail server,
// peers, and a clock that the test turns.
type office struct {
	t                   testing.TB
	db                  *pg.DB
	ring                *secure.Keyring
	mail                *mailtest.Server
	clock               atomic.Int64 // milliseconds after the constant clock
	tenant, application id.ID
	suspended           atomic.Bool // all tenants

	mu       sync.Mutex
	answer   func(directoryapi.MailOf) (directoryapi.Mail, error)
	question applicationAnswer
	data     func(applicationapi.CustomDataRequest) (applicationapi.CustomDataValues, error)
}

type applicationAnswer func(directoryapi.Ref) (applicationapi.Application, error)

func newOffice(t testing.TB, behaviour mailtest.Behaviour) *office {
	t.Helper()
	o := &office{t: t, db: pgtest.Open(t, config), tenant: id.New(clock), application: id.New(clock)}
	var err error
	if o.ring, err = secure.ParseKeyring(secure.NewMasterKey("test")); err != nil {
		t.Fatal(err)
	}
	o.mail = mailtest.Start(t, "", behaviour)
	o.answer = func(in directoryapi.MailOf) (directoryapi.Mail, error) {
		l := verification()
		l.Template.Workflow = in.Workflow
		l.Account.ID, l.Account.TenantID = in.Account, in.Tenant
		l.Account.Email = strings.ToLower(in.Account.String()) + "@example.test"
		return l.Mail, nil
	}
	o.question = func(in directoryapi.Ref) (applicationapi.Application, error) {
		return applicationapi.Application{TenantID: in.Tenant, ID: in.ID, Name: "Shop"}, nil
	}
	return o
}

// loopback lets the servers of tenants be on this machine.
var loopback, _ = outbound.ParseGuard([]string{"127.0.0.0/8"})

func (o *office) now() time.Time { return clock.Add(time.Duration(o.clock.Load()) * time.Millisecond) }

func (o *office) turn(d time.Duration) { o.clock.Add(d.Milliseconds()) }

func (o *office) config() Config {
	host, port, _ := strings.Cut(o.mail.Address, ":")
	number, _ := strconv.Atoi(port)
	return Config{
		MailServer: MailServer{Host: host, Port: number},
		From:       mail.Address{Name: "Service", Address: "no-reply@id.example.test"},
		Senders:    2, Timeout: 30 * time.Second, Outbound: loopback,
	}
}

// service returns another replica of the service.
func (o *office) service(change ...func(*Config)) *Service {
	cfg := o.config()
	for _, c := range change {
		c(&cfg)
	}
	return New(store.New(o.db, o.now), Peers{Directory: directoryOf{o: o}, Application: applicationOf{o: o}}, o.ring,
		"https://id.example.test:8443/v1", o.now, cfg)
}

// run lets a replica send until the test ends, or until stop.
func (o *office) run(s *Service) (stop func()) {
	return worktest.Start(o.t, s.Send)
}

// answers replaces the directory service's answer.
func (o *office) answers(answer func(directoryapi.MailOf) (directoryapi.Mail, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

type directoryOf struct {
	directoryapi.API
	o *office
}

func (d directoryOf) Mail(_ context.Context, in directoryapi.MailOf) (directoryapi.Mail, error) {
	d.o.mu.Lock()
	answer := d.o.answer
	d.o.mu.Unlock()
	return answer(in)
}

// Tenant returns any tenant to itself.
func (d directoryOf) Tenant(_ context.Context, in directoryapi.Ref) (directoryapi.Tenant, error) {
	if in.Tenant != in.ID {
		return directoryapi.Tenant{}, apierr.NotFound
	}
	since := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	status := directoryapi.Enabled
	if d.o != nil && d.o.suspended.Load() {
		status = directoryapi.Suspended
	}
	return directoryapi.Tenant{ID: in.ID, Status: status, CreatedAt: since, ModifiedAt: since}, nil
}

// AccessChanges is behind, so that the status of a tenant is asked for each time.
func (directoryOf) AccessChanges(context.Context, cache.Position) (cache.Page, error) {
	return cache.Page{Behind: true}, nil
}

// Owner returns the owner of any tenant.
func (d directoryOf) Owner(_ context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	return directoryapi.Account{TenantID: in.Tenant, ID: in.ID, Email: "owner@example.test"}, nil
}

type applicationOf struct {
	applicationapi.API
	o *office
}

func (a applicationOf) Application(_ context.Context, in directoryapi.Ref) (applicationapi.Application, error) {
	a.o.mu.Lock()
	question := a.o.question
	a.o.mu.Unlock()
	return question(in)
}

func (a applicationOf) ApplicationData(_ context.Context,
	in applicationapi.CustomDataRequest) (applicationapi.CustomDataValues, error) {
	return a.o.data(in)
}

// registration is an event as it comes from the directory service.
func (o *office) registration() (events.Envelope, events.AccountRegistered) {
	account := id.New(clock)
	event := events.AccountRegistered{Tenant: o.tenant, Account: account, Application: o.application,
		Token: o.ring.Seal(token, events.MailTokenPurpose(account))}
	return events.Envelope{ID: id.New(clock), Tenant: o.tenant, Subject: account, At: clock, RequestID: "request-1"}, event
}

// order lets the service take n registrations.
func (o *office) order(s *Service, n int) {
	o.t.Helper()
	for range n {
		e, event := o.registration()
		if err := s.accountRegistered(o.t.Context(), e, event); err != nil {
			o.t.Fatal(err)
		}
	}
}

// row is a delivery as it stands in the table.
type row struct {
	ID         id.ID
	Workflow   string
	State      store.State
	Failures   int
	LastError  string
	NextTryAt  time.Time
	Leased     bool
	HasToken   bool
	FinishedAt *time.Time
}

func (o *office) rows() []row {
	o.t.Helper()
	rows, err := o.read()
	if err != nil {
		o.t.Fatal(err)
	}
	return rows
}

func (o *office) read() ([]row, error) {
	return pg.All[row](o.t.Context(), o.db, `SELECT id, workflow, state, failures, last_error, next_try_at, leased_until IS
		NOT NULL AS leased, token_sealed IS NOT NULL AS has_token, finished_at FROM deliveries ORDER BY id`)
}

// await waits until the deliveries are as the test wants them. A connection that
// the test cut is none of its business.
func (o *office) await(what string, is func([]row) bool) []row {
	o.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		rows, err := o.read()
		if err == nil && is(rows) {
			return rows
		}
		select {
		case <-tick.C:
		case <-limit:
			o.t.Fatalf("the deliveries are not %s: %+v, %v", what, rows, err)
		}
	}
}

// all reports whether every delivery is in the state.
func all(state store.State) func([]row) bool {
	return func(rows []row) bool {
		for _, r := range rows {
			if r.State != state {
				return false
			}
		}
		return len(rows) > 0
	}
}

// tried reports whether every delivery waits for another try.
func tried(rows []row) bool {
	for _, r := range rows {
		if r.State != store.Pending || r.LastError == "" || r.Leased {
			return false
		}
	}
	return len(rows) > 0
}

var errNotFound = apierr.NotFound.Because("the workflow is disabled")

// lease takes the next delivery as a sender does that dies with it.
func (o *office) lease(s *Service) (store.Delivery, error) { return o.leaseAfter(s, id.ID{}) }

// leaseAfter is lease where that tenant had its turn.
func (o *office) leaseAfter(s *Service, tenant id.ID) (store.Delivery, error) {
	var d store.Delivery
	err := s.store.Tx(o.t.Context(), func(tx *store.Tx) (err error) {
		d, err = tx.LeaseDelivery(o.t.Context(), store.Mail, tenant, id.New(o.now()), o.now(), o.now().Add(leaseTime),
			store.Skip{Tenants: []id.ID{}})
		return err
	})
	return d, err
}

// applicationAnswered shortens the answers of the tests.
type applicationAnswered = applicationapi.Application
