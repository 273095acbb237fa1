// Package mfatest has the mfa service for its tests, and for those of the services that call it: on a real
// PostgreSQL, with the directory service beside it and a clock that the test sets.
package mfatest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/mfa"
	mfarest "github.com/doorward/doorward/services/mfa/rest"
	"github.com/doorward/doorward/services/mfa/store"
)

// Base is the address of the deployment.
const Base = href.Base("https://localhost:8443/v1")

// Limits are the rate limits of text messages in tests.
var Limits = mfa.Config{AccountMessages: 12, NumberMessages: 10, CountryMessages: 15, TenantMessages: 20,
	EnrollTenantMessages: 20, EnrollAddressMessages: 10}

// Deployment is the service with what it needs, and the client of a tenant that has one account.
type Deployment struct {
	*resttest.Client
	clocktest.Clock
	T         testing.TB
	Service   *mfa.Service
	Store     *store.Store
	DB        *pg.DB
	Ring      *secure.Keyring
	Master    secure.Secret
	Directory *directorytest.Service
	Tenant    id.ID
	Jo        directoryapi.Account
}

// Open starts the service on a database of its own.
func Open(t testing.TB) *Deployment {
	t.Helper()
	dbs := pgtest.OpenAll(t, directorytest.Config, store.Config)
	db := dbs[1]
	d := &Deployment{T: t, DB: db, Master: secure.NewMasterKey("k1")}
	d.Directory = directorytest.New(t, dbs[0], Base, d.Now)
	d.Store = store.New(db, d.Now)
	d.Service = d.Under(d.Master)
	signer := caller.NewSigner("a secret of the tests, 32 characters", d.Now)
	app := rest.New(rest.Config{Service: "mfa", Base: Base, Signer: signer})
	mfarest.Mount(app, d.Service, Base)
	d.Tenant = d.NewTenant()
	d.Jo = d.Account(d.Tenant, "jo")
	d.Client = resttest.New(t, app, signer,
		caller.Caller{Tenant: d.Tenant, RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10"})
	return d
}

// Under returns the same service after a restart with other master keys.
func (d *Deployment) Under(master secure.Secret) *mfa.Service {
	d.T.Helper()
	ring, err := secure.ParseKeyring(master)
	if err != nil {
		d.T.Fatal(err)
	}
	d.Ring = ring
	return mfa.New(d.Store, d.Directory, ring, Base, d.Now, Limits)
}

// NewTenant adds a tenant.
func (d *Deployment) NewTenant() id.ID { return d.Directory.NewTenant().Tenant.ID }

// Account adds an account in a directory of its own.
func (d *Deployment) Account(tenant id.ID, username string) directoryapi.Account {
	directory := d.Directory.NewDirectory(tenant, "Directory of "+username+" "+id.New(d.Now()).String())
	return d.Directory.NewAccount(tenant, directory, directoryapi.NewAccount{
		Username: field.Some(username), Email: field.Some(username + "@example.test"),
	})
}

// Of returns the href of an account.
func Of(a directoryapi.Account) string { return Base.To("accounts", a.ID) }

// Stranger returns the client of another tenant, and an account of that tenant.
func (d *Deployment) Stranger() (*resttest.Client, directoryapi.Account) {
	tenant := d.NewTenant()
	return d.As(caller.Caller{Tenant: tenant}), d.Account(tenant, "al")
}

// Ref parses an href.
func (d *Deployment) Ref(address string) id.Ref {
	d.T.Helper()
	ref, ok := Base.Parse(address)
	if !ok {
		d.T.Fatalf("%q is no address", address)
	}
	return id.Ref{Tenant: d.Tenant, ID: ref.ID}
}

// Sent are the events ChallengeCreated, each for one text message, the oldest first.
func (d *Deployment) Sent() []events.ChallengeCreated {
	return emitted[events.ChallengeCreated](d.T, d.DB, "ChallengeCreated")
}

// Changes are the events FactorChanged, each for one mail, the oldest first.
func (d *Deployment) Changes() []events.FactorChanged {
	return emitted[events.FactorChanged](d.T, d.DB, "FactorChanged")
}

// emitted returns the events of a type, the oldest first.
func emitted[E any](t testing.TB, db *pg.DB, kind string) (all []E) {
	t.Helper()
	envelopes, err := pg.Values[[]byte](t.Context(), db, `SELECT envelope FROM outbox ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range envelopes {
		var envelope events.Envelope
		var event E
		if err := json.Unmarshal(text, &envelope); err != nil {
			t.Fatal(err)
		}
		if envelope.Type != kind {
			continue
		}
		if err := json.Unmarshal(envelope.Data, &event); err != nil {
			t.Fatal(err)
		}
		all = append(all, event)
	}
	return all
}

// Code returns the code that was sent for a challenge.
func (d *Deployment) Code(challenge string) string {
	d.T.Helper()
	for _, event := range d.Sent() {
		if event.Challenge != d.Ref(challenge).ID {
			continue
		}
		code, err := d.Ring.Open(event.Code, events.CodePurpose(event.Challenge))
		if err != nil {
			d.T.Fatal(err)
		}
		return code.Reveal()
	}
	d.T.Fatalf("no code was sent for %s", challenge)
	return ""
}

// Wrong returns a code that differs from the given one.
func Wrong(code string) string {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

// Rows returns the number of rows of a table.
func (d *Deployment) Rows(table string) int {
	d.T.Helper()
	n, err := pg.Value[int](d.T.Context(), d.DB, fmt.Sprintf(`SELECT count(*) FROM %s`, table))
	if err != nil {
		d.T.Fatal(err)
	}
	return n
}

// Holding returns the number of rows of a table that hold a text.
func (d *Deployment) Holding(table, text string) int {
	d.T.Helper()
	n, err := pg.Value[int](d.T.Context(), d.DB,
		fmt.Sprintf(`SELECT count(*) FROM %s r WHERE strpos(r::text, $1) > 0 OR strpos(r::text, $2) > 0`, table),
		text, fmt.Sprintf("%x", text))
	if err != nil {
		d.T.Fatal(err)
	}
	return n
}
