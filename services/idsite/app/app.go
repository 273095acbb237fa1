// Package app wires the idsite service: its configuration, its database, the
// first tenant, its HTTP application.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
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

	Suffix     string        `env:"DOORWARD_IDSITE_SUFFIX" default:"localhost" help:"domain under which tenants have their hosted pages, <tenant key>.id.<suffix>"`
	KeyID      string        `env:"DOORWARD_BOOTSTRAP_KEY_ID" help:"id of the API key of the first tenant, which is made at the start; letters and digits"`
	KeySecret  secure.Secret `env:"DOORWARD_BOOTSTRAP_KEY_SECRET" help:"secret of that key, at least 32 characters; make one with: openssl rand -hex 24"`
	OwnerEmail string        `env:"DOORWARD_BOOTSTRAP_OWNER_EMAIL" default:"owner@doorward.localhost" help:"email of the first tenant's owner"`

	Peers Addresses
}

// Addresses are where the peers are, for a service in a process of its own.
type Addresses struct {
	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"addresses of the directory service's replicas, http://host:port, comma separated"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"addresses of the application service's replicas"`
	OAuth       []string `env:"DOORWARD_OAUTH_URL" help:"addresses of the oauth service's replicas"`
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	return cfg
}

// Peers are the services that this one asks.
type Peers = idsite.Peers

// App is the wired service.
type App struct {
	HTTP *fiber.App
	// Bootstrapped is closed when the first tenant is there, or none is asked for.
	Bootstrapped <-chan struct{}
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*App, error) {
	common, err := cfg.Service.Open()
	if err != nil {
		return nil, err
	}
	switch {
	case (cfg.KeyID == "") != (cfg.KeySecret == ""):
		return nil, errors.New("DOORWARD_BOOTSTRAP_KEY_ID and DOORWARD_BOOTSTRAP_KEY_SECRET go together: set both or neither")
	case cfg.KeyID != "" && len(cfg.KeySecret) < 32:
		return nil, errors.New("DOORWARD_BOOTSTRAP_KEY_SECRET must have at least 32 characters; make one with: openssl rand -hex 24")
	}
	db, err := pg.Open(ctx, pg.Config{URL: cfg.Database, Schema: "idsite", Migrations: []fs.FS{store.Migrations()}})
	if err != nil {
		return nil, err
	}
	p.OnClose("idsite database", db.Stop)
	p.Check("idsite database", db.Ping)

	svc := idsite.New(store.New(db), peers, common.Now, idsite.Config{Title: common.Title(), Suffix: cfg.Suffix})
	app := rest.New(rest.Config{Service: "idsite", Base: common.Base, Signer: common.Signer})
	idsiterest.Mount(app, svc, common.Base)
	return &App{HTTP: app, Bootstrapped: bootstrap(p, svc, cfg)}, nil
}

// bootstrap makes the first tenant beside the start of the process, which is
// not ready before it is done.
func bootstrap(p *run.Process, svc *idsite.Service, cfg Config) <-chan struct{} {
	done := make(chan struct{})
	if cfg.KeyID == "" {
		close(done)
		return done
	}
	p.Go("first tenant", func(ctx context.Context) error {
		err := svc.Ensure(ctx, idsite.Bootstrap{KeyID: cfg.KeyID, KeySecret: cfg.KeySecret, OwnerEmail: cfg.OwnerEmail})
		if err == nil {
			close(done)
		}
		return err
	})
	p.Check("first tenant", func(context.Context) error {
		select {
		case <-done:
			return nil
		default:
			return errors.New("not made yet")
		}
	})
	return done
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	common, err := cfg.Service.Open()
	if err != nil {
		return err
	}
	directory, err := common.Peer("directory", cfg.Peers.Directory)
	if err != nil {
		return fmt.Errorf("DOORWARD_DIRECTORY_URL: %w", err)
	}
	application, err := common.Peer("application", cfg.Peers.Application)
	if err != nil {
		return fmt.Errorf("DOORWARD_APPLICATION_URL: %w", err)
	}
	oauth, err := common.Peer("oauth", cfg.Peers.OAuth)
	if err != nil {
		return fmt.Errorf("DOORWARD_OAUTH_URL: %w", err)
	}
	app, err := Open(ctx, p, cfg, Peers{
		Directory: directoryapi.Client{Peer: directory}, Application: applicationapi.Client{Peer: application}, OAuth: oauthapi.Client{Peer: oauth},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Service.Listen)
	if err != nil {
		return fmt.Errorf("listen on DOORWARD_LISTEN: %w", err)
	}
	rest.Serve(p, "http", app.HTTP, listener)
	return nil
}
