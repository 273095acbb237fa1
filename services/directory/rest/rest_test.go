package rest_test

import (
	"fmt"
	"net/mail"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	directoryrest "github.com/doorward/doorward/services/directory/rest"
	"github.com/doorward/doorward/services/directory/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// rules are the folders of the rules.
var rules = []string{"..", "../provider", "../agent", "../agentconfig", "../maildomain"}

const base = href.Base("https://localhost:8443/v1")

// bench is the service with a database of its own and one tenant.
type bench struct {
	*testing.T
	*resttest.Client
	app      *fiber.App
	db       *pg.DB
	svc      *app.Service
	signedUp directoryapi.SignedUp
	clock    *clocktest.Clock
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOf(t, "service")
}

// newBenchOf is newBench of a deployment with an alias of its own.
func newBenchOf(t *testing.T, word alias.Alias) *bench {
	t.Helper()
	b := &bench{T: t, db: pgtest.Open(t, store.Config), clock: &clocktest.Clock{}}
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	passwords := secure.NewPasswords(pwhash.Cost{Memory: 64, Time: 1, Threads: 1}, 2, 1000)
	b.svc = app.New(store.New(b.db, b.clock.Now), passwords, ring, base, b.clock.Now, app.Rules{
		Config: directory.Config{
			VerificationTTL: 7 * 24 * time.Hour, Sender: mail.Address{Name: "Service", Address: "no-reply@localhost"},
			Alias: word,
		},
		AgentArchive: filepath.Join("testdata", "agent.zip"),
	})
	signer := caller.NewSigner("a secret that is long enough for this", time.Now)
	b.app = rest.New(rest.Config{Service: "directory", Base: base, Signer: signer})
	directoryrest.Mount(b.app, b.svc.Core, b.svc.Providers, b.svc.Agents, base)
	b.signedUp = b.signUp("calm-otter", "owner@example.test")
	b.Client = resttest.New(t, b.app, signer,
		caller.Caller{Tenant: b.signedUp.Tenant.ID, RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10"})
	return b
}

func (b *bench) signUp(key, email string) directoryapi.SignedUp {
	b.Helper()
	done, err := b.svc.SignUp(b.Context(), directoryapi.SignUp{
		Tenant: id.New(b.clock.Now()), Directory: id.New(b.clock.Now()), Owner: id.New(b.clock.Now()), Key: key,
		DirectoryName: "Service Administrators", Email: email,
	})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func (b *bench) tenant() string { return base.To("tenants", b.signedUp.Tenant.ID) }

// directory makes a directory and returns its address.
func (b *bench) directory(name string) string {
	b.Helper()
	return b.Post("/v1/directories", fmt.Sprintf(`{"name":%q}`, name)).Want(201).Href()
}

const jo = `{"email":"jo@example.test","password":"Changeme1!","givenName":"Jo","surname":"Doe"}`

func TestRequestsWithoutACallerAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.As(caller.Caller{}).Get("/v1/tenants/current").WantError(403, 403)
}
