// Package app wires the idsite service: its configuration, its database, the
// first tenant, its HTTP application.
package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/idsite"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
	"github.com/doorward/doorward/services/idsite/store"
)

// Config is the service's environment.
type Config struct {
	Service  service.Config
	Database secure.Secret `env:"IDSITE_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	_        env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`

	Suffix     string   `env:"DOORWARD_IDSITE_SUFFIX" default:"localhost" help:"domain under which tenants have their hosted pages,"`
	_          env.More `help:"<tenant key>.id.<suffix>"`
	ClientAPI  deployment.ClientAPI
	SignUp     bool          `env:"DOORWARD_SIGN_UP" default:"false" help:"whether anyone can create a tenant at /register"`
	KeyID      string        `env:"DOORWARD_BOOTSTRAP_KEY_ID" help:"id of the API key of the first tenant, which is made at the start;"`
	_          env.More      `help:"letters and digits"`
	KeySecret  secure.Secret `env:"DOORWARD_BOOTSTRAP_KEY_SECRET" help:"secret of that key, at least 32 characters; make one with: openssl"`
	_          env.More      `help:"rand -hex 24"`
	OwnerEmail string        `env:"DOORWARD_BOOTSTRAP_OWNER_EMAIL" default:"owner@doorward.localhost" help:"email of the first tenant's owner"`

	Outbound outbound.Config

	Peers Addresses
}

// Addresses are where the peers are, for a service in a process of its own.
type Addresses struct {
	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"addresses of the directory service's replicas, http://host:port, comma separated"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"addresses of the application service's replicas"`
	OAuth       []string `env:"DOORWARD_OAUTH_URL" help:"addresses of the oauth service's replicas"`
	MFA         []string `env:"DOORWARD_MFA_URL" help:"addresses of the mfa service's replicas"`
}

// Peers are the services that this one asks.
type Peers = idsite.Peers

// App is the wired service.
type App struct {
	HTTP *fiber.App
	// Bootstrapped returns nil when the first tenant is there, or none is asked for,
	// and otherwise why it cannot be made.
	Bootstrapped <-chan error
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*App, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	clientSuffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Service, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	svc := idsite.New(store.New(s.DB), peers, s.Keyring, s.Now, idsite.Config{
		Base: s.Base, Shared: s.Shared, Title: s.Alias.Title(), Product: s.Alias.Product(), Suffix: cfg.Suffix, ClientSuffix: clientSuffix,
		SignUp: cfg.SignUp,
	})
	guard, err := cfg.Outbound.Open()
	if err != nil {
		return nil, err
	}
	s.Go("repositories", idsite.NewRepositories(svc, guard).Run)
	s.Go("purge", svc.Purger(idsite.PurgeEvery))
	s.Go("notifications", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, idsite.Sealed...))
	idsiteapi.Serve(rest.Contract(s.HTTP), svc)
	if err := idsiterest.Mount(s.HTTP, svc, s.Base); err != nil {
		return nil, err
	}
	return &App{HTTP: s.HTTP, Bootstrapped: bootstrap(p, svc, cfg)}, nil
}

// check refuses what would make half a tenant.
func (c Config) check() error {
	switch {
	case (c.KeyID == "") != (c.KeySecret == ""):
		return errors.New("DOORWARD_BOOTSTRAP_KEY_ID and DOORWARD_BOOTSTRAP_KEY_SECRET go together: set both or neither")
	case c.KeyID != "" && len(c.KeySecret) < 32:
		return errors.New("DOORWARD_BOOTSTRAP_KEY_SECRET must have at least 32 characters; make one with: openssl rand -hex 24")
	case field.Email("email", c.OwnerEmail) != nil:
		return fmt.Errorf("DOORWARD_BOOTSTRAP_OWNER_EMAIL must be an email address such as owner@example.com; %q is none", c.OwnerEmail)
	}
	return deployment.CheckDomain("DOORWARD_IDSITE_SUFFIX", c.Suffix)
}

// bootstrap makes the first tenant beside the start of the process, which is
// not ready before it is done, and stops when it cannot be.
func bootstrap(p *run.Process, svc *idsite.Service, cfg Config) <-chan error {
	outcome := make(chan error, 1)
	if cfg.KeyID == "" {
		close(outcome)
		return outcome
	}
	var done atomic.Bool
	p.Check("first tenant", func(context.Context) error {
		if !done.Load() {
			return errors.New("not made yet")
		}
		return nil
	})
	p.Go("first tenant", func(ctx context.Context) error {
		defer close(outcome)
		err := svc.Ensure(ctx, idsite.Bootstrap{KeyID: cfg.KeyID, KeySecret: cfg.KeySecret, OwnerEmail: cfg.OwnerEmail})
		done.Store(err == nil)
		if err != nil {
			outcome <- err
		}
		return err
	})
	return outcome
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	dial := cfg.Service.Dial()
	peers := Peers{
		Directory:   directoryapi.Client(dial.Peer("directory", cfg.Peers.Directory)),
		Application: applicationapi.Client(dial.Peer("application", cfg.Peers.Application)),
		OAuth:       oauthapi.Client(dial.Peer("oauth", cfg.Peers.OAuth)),
		MFA:         mfaapi.Client(dial.Peer("mfa", cfg.Peers.MFA)),
	}
	if err := dial.Err(); err != nil {
		return err
	}
	app, err := Open(ctx, p, cfg, peers)
	if err != nil {
		return err
	}
	return service.Listen(p, cfg.Service, app.HTTP)
}
