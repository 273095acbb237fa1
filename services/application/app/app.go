// Package app wires the application service: its configuration, its database,
// its relay and its consumer, its HTTP application.
package app

import (
	"context"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/application"
	applicationrest "github.com/doorward/doorward/services/application/rest"
	"github.com/doorward/doorward/services/application/store"
)

// Config is the service's environment.
type Config struct {
	Service   service.Config
	Events    events.Config
	Database  secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"keys that seal secrets at rest, <id>:<base64 of 32 bytes>, the newest first; make one with: echo k1:$(openssl rand -base64 32)"`
	ClientAPI service.ClientAPI
	Directory []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service's replicas, http://host:port"`

	PairLimit     int           `env:"DOORWARD_LOGIN_PAIR_LIMIT" default:"20" min:"1" help:"logins of one user name or email at one address that may fail before more are refused with 429"`
	PairWindow    time.Duration `env:"DOORWARD_LOGIN_PAIR_WINDOW" default:"15m" help:"time in which they are counted"`
	AccountLimit  int           `env:"DOORWARD_LOGIN_ACCOUNT_LIMIT" default:"60" min:"1" help:"logins of one user name or email that may fail at all addresses together where it has not succeeded before"`
	AccountWindow time.Duration `env:"DOORWARD_LOGIN_ACCOUNT_WINDOW" default:"1h" help:"time in which they are counted"`
	AddressLimit  int           `env:"DOORWARD_LOGIN_ADDRESS_LIMIT" default:"300" min:"1" help:"logins of a tenant's users that may fail at one address where they have not succeeded before"`
	AddressWindow time.Duration `env:"DOORWARD_LOGIN_ADDRESS_WINDOW" default:"15m" help:"time in which they are counted"`
	AddressShare  int           `env:"DOORWARD_LOGIN_ADDRESS_SHARE" default:"25" min:"0" help:"by how many percent of the users who log in at an address within a day its limit is raised"`
	KnownFor      time.Duration `env:"DOORWARD_LOGIN_KNOWN_FOR" default:"720h" help:"how long after a login the address is known for its user name or email"`
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	return cfg
}

// Peers are the services that this one asks.
type Peers struct {
	Directory directoryapi.API
}

// App is the wired service.
type App struct {
	API  *application.Service
	HTTP *fiber.App
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*App, error) {
	common, err := cfg.Service.Open()
	if err != nil {
		return nil, err
	}
	suffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	ring, err := secure.ParseKeyring(cfg.MasterKey)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	db, err := pg.Open(ctx, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	p.OnClose("application database", db.Stop)
	p.Check("application database", db.Ping)
	p.Go("application statistics", db.Analyze)

	data := store.New(db, common.Now)
	svc := application.New(data, peers.Directory, ring, common.Base, common.Now, application.Config{
		Alias: common.Alias,
		Suffix:   suffix,
		LoginKey: secure.Derive(cfg.Service.InternalSecret, "application logins"),
		Pair:     application.Limit{Failures: cfg.PairLimit, Within: cfg.PairWindow},
		Account:  application.Limit{Failures: cfg.AccountLimit, Within: cfg.AccountWindow},
		Address:  application.Limit{Failures: cfg.AddressLimit, Within: cfg.AddressWindow}, AddressShare: cfg.AddressShare,
		TrustFor: cfg.KnownFor,
	})
	p.Go("application relay", data.Outbox().Relay(cfg.Events))
	p.Go("application memory", data.Outbox().Forget)
	p.Go("application resealer", reseal.Worker(db, ring, application.Sealed...))
	p.Go("application purge", svc.Purger)
	p.Go("application cache invalidation", db.Listen)
	p.Go("application consumer", data.Outbox().Consume(cfg.Events, []string{"directory"}, events.On(svc.DirectoryDeleted), events.On(svc.GroupDeleted)))

	app := rest.New(rest.Config{Service: "application", Base: common.Base, Signer: common.Signer})
	applicationapi.Serve(rest.Contract(app), svc)
	applicationapi.ServeHosted(rest.Contract(app), svc)
	applicationrest.Mount(app, svc, common.Base, common.Alias)
	return &App{API: svc, HTTP: app}, nil
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	common, err := cfg.Service.Open()
	if err != nil {
		return err
	}
	directory, err := common.Peer("directory", cfg.Directory)
	if err != nil {
		return err
	}
	app, err := Open(ctx, p, cfg, Peers{Directory: directoryapi.Client{Peer: directory}})
	if err != nil {
		return err
	}
	return rest.Listen(p, cfg.Service.Listen, app.HTTP)
}
