// Package directorytest runs the directory service for the tests of the services that call it: on a real
// database, with cheap password hashes, and with calls that a test can break.
package directorytest

import (
	"context"
	"encoding/json"
	"net/mail"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/provider"
	"github.com/doorward/doorward/services/directory/store"
)

// Password is the password of an account that a test gives none.
const Password = "Changeme1!"

// Config is the configuration of the service's database, for pgtest.OpenAll.
var Config = store.Config

// Service is the directory service as its peers call it, through an Injector. Its other methods make the
// changes that the contract has no method for; they are not broken with the calls.
type Service struct {
	directoryapi.Contract
	fault.Injector

	Rules *app.Service // the service itself
	DB    *pg.DB
	Ring  *secure.Keyring

	t    testing.TB
	base href.Base
	now  func() time.Time
}

// New starts the service on a database.
func New(t testing.TB, db *pg.DB, base href.Base, now func() time.Time) *Service {
	t.Helper()
	return NewWithClient(t, db, base, now, socialProviders().client(t))
}

// NewWithClient is New with a client that finds other providers.
func NewWithClient(t testing.TB, db *pg.DB, base href.Base, now func() time.Time, client *connect.Client) *Service {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	passwords := secure.NewPasswords(pwhash.Cost{Memory: 64, Time: 1, Threads: 1}, 2, 1000)
	s := &Service{DB: db, Ring: ring, t: t, base: base, now: now}
	s.Rules = app.New(store.New(db, now), passwords, ring, base, now, app.Rules{
		Config: directory.Config{
			VerificationTTL: 7 * 24 * time.Hour, Sender: mail.Address{Name: "Service", Address: "no-reply@localhost"},
			Alias: "service",
		},
		Providers: client,
	})
	s.Contract = fault.Inject(&s.Injector, "directory", directoryapi.Client, directoryapi.Serve,
		directoryapi.Contract(s.Rules))
	return s
}

// must fails the test for an error of its set-up.
func must[T any](t testing.TB, out T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// check is must for a method without a result.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewTenant adds a tenant with an administrators directory and its owner's account.
func (s *Service) NewTenant() directoryapi.SignedUp {
	s.t.Helper()
	tenant := id.New(s.now())
	out, err := s.Rules.SignUp(context.Background(), directoryapi.SignUp{
		Tenant: tenant, Directory: id.New(s.now()), Owner: id.New(s.now()), Key: tenant.String(),
		DirectoryName: "Service Administrators", Email: "owner@example.test",
	})
	return must(s.t, out, err)
}

// NewDirectory adds a directory.
func (s *Service) NewDirectory(tenant id.ID, name string) id.ID {
	s.t.Helper()
	at := id.New(s.now())
	_, err := s.Rules.CreateDirectory(context.Background(),
		directoryapi.CreateDirectory{Tenant: tenant, ID: at, Name: name})
	check(s.t, err)
	return at
}

// NewAccount adds an account, with Password where in has none.
func (s *Service) NewAccount(tenant, directory id.ID, in directoryapi.NewAccount) directoryapi.Account {
	s.t.Helper()
	in.Password = field.Some(in.Password.Or(Password))
	out, err := s.Rules.CreateAccount(context.Background(), directoryapi.CreateAccount{
		Tenant: tenant, ID: id.New(s.now()), Directory: directory, Account: in,
	})
	return must(s.t, out, err)
}

// Change changes an account.
func (s *Service) Change(t testing.TB, at id.Ref, in directoryapi.NewAccount) {
	t.Helper()
	_, err := s.Rules.UpdateAccount(context.Background(), at, in)
	check(t, err)
}

// MarkVerified marks the email of an account as verified.
func (s *Service) MarkVerified(t testing.TB, at id.Ref) {
	t.Helper()
	s.Change(t, at, directoryapi.NewAccount{EmailVerificationStatus: field.Some(directoryapi.Verified)})
}

// DeleteAccount deletes an account.
func (s *Service) DeleteAccount(t testing.TB, at id.Ref) {
	t.Helper()
	check(t, s.Rules.DeleteAccount(context.Background(), at))
}

// Disable sets the status of a directory to DISABLED.
func (s *Service) Disable(t testing.TB, at id.Ref) {
	t.Helper()
	s.SetStatus(t, at, directoryapi.Directories, directoryapi.Disabled)
}

// SetStatus sets the status of a directory or a group.
func (s *Service) SetStatus(t testing.TB, at id.Ref, kind, status string) {
	t.Helper()
	var err error
	if kind == directoryapi.Directories {
		_, err = s.Rules.UpdateDirectory(context.Background(), at, directory.NewDirectory{Status: field.Some(status)})
	} else {
		_, err = s.Rules.UpdateGroup(context.Background(), at, directoryapi.NewGroup{Status: field.Some(status)})
	}
	check(t, err)
}

// SetTenantStatus sets the status of a tenant, as an operator does.
func (s *Service) SetTenantStatus(t testing.TB, tenant id.ID, status string) {
	t.Helper()
	err := store.New(s.DB, s.now).Tx(t.Context(), func(tx *store.Tx) error {
		return tx.SetTenantStatus(t.Context(), directoryapi.Tenant{ID: tenant, Status: status})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// SetBuiltinStatus sets the status of an administrators directory, which the service refuses to change.
func (s *Service) SetBuiltinStatus(t testing.TB, at id.Ref, status string) {
	t.Helper()
	check(t, pg.MustChange(context.Background(), s.DB,
		`UPDATE directories SET status = $3 WHERE tenant_id = $1 AND id = $2`,
		at.Tenant, at.ID, status))
}

// EnableVerification enables the email verification of a directory.
func (s *Service) EnableVerification(t testing.TB, at id.Ref) {
	t.Helper()
	change := directory.CreationPolicyChange{VerificationEmailStatus: field.Some(directoryapi.Enabled)}
	_, err := s.Rules.UpdateCreationPolicy(context.Background(), at, change)
	check(t, err)
}

// Mirror makes a directory, with the accounts and groups that it has, the mirror of one at a provider, as
// after a sync.
func (s *Service) Mirror(t testing.TB, at id.Ref, provider string) {
	t.Helper()
	check(t, pg.MustChange(context.Background(), s.DB,
		`UPDATE directories SET provider_id = $3 WHERE tenant_id = $1 AND id = $2`,
		at.Tenant, at.ID, provider))
}

// SetCustomData sets members of the customData of an account.
func (s *Service) SetCustomData(t testing.TB, at id.Ref, document string) {
	t.Helper()
	data, err := customdata.Parse([]byte(document))
	check(t, err)
	s.Change(t, at, directoryapi.NewAccount{CustomData: field.Some(data)})
}

// VerificationMails returns how many verification mails of an account were requested and sent.
func (s *Service) VerificationMails(t testing.TB, account id.Ref) (n int) {
	t.Helper()
	for _, e := range Events[events.VerificationRequested](t, s, "VerificationRequested") {
		if e.Account == account.ID {
			n++
		}
	}
	return n
}

// DisableGroup sets the status of a group to DISABLED.
func (s *Service) DisableGroup(t testing.TB, at id.Ref) {
	t.Helper()
	s.SetStatus(t, at, directoryapi.Groups, directoryapi.Disabled)
}

// DeleteGroup deletes a group, not its members.
func (s *Service) DeleteGroup(t testing.TB, at id.Ref) {
	t.Helper()
	check(t, s.Rules.DeleteGroup(context.Background(), at))
}

// Join makes an account a member of a group.
func (s *Service) Join(t testing.TB, account id.Ref, group id.ID) {
	t.Helper()
	_, err := s.Rules.CreateMembership(context.Background(), account.Tenant, directory.NewMembership{
		Account: field.Some(s.base.Link("accounts", account.ID)), Group: field.Some(s.base.Link("groups", group)),
	})
	check(t, err)
}

// Link links two accounts.
func (s *Service) Link(t testing.TB, one, other id.Ref) {
	t.Helper()
	_, err := s.Rules.CreateAccountLink(context.Background(), one.Tenant, provider.NewAccountLink{
		LeftAccount:  field.Some(s.base.Link("accounts", one.ID)),
		RightAccount: field.Some(s.base.Link("accounts", other.ID)),
	})
	check(t, err)
}

// Names returns the names of the directories of a tenant, in no order.
func (s *Service) Names(t testing.TB, tenant id.ID) []string {
	t.Helper()
	names, err := pg.Values[string](context.Background(), s.DB, `SELECT name FROM directories WHERE tenant_id = $1`,
		tenant)
	return must(t, names, err)
}

// Events returns the events of a type that the service has emitted, the oldest first.
func Events[E any](t testing.TB, s *Service, kind string) (all []E) {
	t.Helper()
	envelopes, err := pg.Values[[]byte](context.Background(), s.DB, `SELECT envelope FROM outbox ORDER BY seq`)
	check(t, err)
	for _, text := range envelopes {
		var envelope events.Envelope
		check(t, json.Unmarshal(text, &envelope))
		if envelope.Type == kind {
			var event E
			check(t, json.Unmarshal(envelope.Data, &event))
			all = append(all, event)
		}
	}
	return all
}
