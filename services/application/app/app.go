// Package app wires the application service: its configuration, its database,
// its relay and its consumer, its HTTP application.
package app

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
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
	Events    outbox.Config
	Database  secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/db"`
	_         env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`
	ClientAPI deployment.ClientAPI
	Directory []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service's replicas, http://host:port"`

	PairLimit     int           `env:"DOORWARD_LOGIN_PAIR_LIMIT" default:"20" min:"1" help:"logins of one user name or email at one address"`
	_             env.More      `help:"that may fail before more are refused with 429"`
	PairWindow    time.Duration `env:"DOORWARD_LOGIN_PAIR_WINDOW" default:"15m" help:"time in which they are counted"`
	AccountLimit  int           `env:"DOORWARD_LOGIN_ACCOUNT_LIMIT" default:"60" min:"1" help:"logins of one user name or email that may"`
	_             env.More      `help:"fail at all addresses together where it has not succeeded before"`
	AccountWindow time.Duration `env:"DOORWARD_LOGIN_ACCOUNT_WINDOW" default:"1h" help:"time in which they are counted"`
	AddressLimit  int           `env:"DOORWARD_LOGIN_ADDRESS_LIMIT" default:"300" min:"1" help:"logins of a tenant's users that may fail at"`
	_             env.More      `help:"one address where they have not succeeded before"`
	AddressWindow time.Duration `env:"DOORWARD_LOGIN_ADDRESS_WINDOW" default:"15m" help:"time in which they are counted"`
	AddressShare  int           `env:"DOORWARD_LOGIN_ADDRESS_SHARE" default:"25" min:"0" help:"by how many percent of the users who log in"`
	_             env.More      `help:"at an address within a day its limit is raised"`
	KnownFor      time.Duration `env:"DOORWARD_LOGIN_KNOWN_FOR" default:"720h" help:"how long after a login the address is known for its"`
	_             env.More      `help:"user name or email"`
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
	suffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Service, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := application.New(data, peers.Directory, s.Keyring, s.Base, s.Now, application.Config{
		Alias:    s.Alias,
		Suffix:   suffix,
		LoginKey: secure.Derive(cfg.Service.InternalSecret, "application logins"),
		Pair:     application.Limit{Failures: cfg.PairLimit, Within: cfg.PairWindow},
		Account:  application.Limit{Failures: cfg.AccountLimit, Within: cfg.AccountWindow},
		Address:  application.Limit{Failures: cfg.AddressLimit, Within: cfg.AddressWindow}, AddressShare: cfg.AddressShare,
		TrustFor: cfg.KnownFor,
	})
	s.Relay(data.Outbox(), cfg.Events)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, application.Sealed...))
	s.Go("notifications", s.DB.Listen)
	s.Go("purge", svc.Purger)
	s.Consume(data.Outbox(), cfg.Events, application.Sources, svc.Handlers()...)

	applicationapi.Serve(rest.Contract(s.HTTP), svc)
	applicationrest.Mount(s.HTTP, svc, s.Base)
	return &App{API: svc, HTTP: s.HTTP}, nil
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	dial := cfg.Service.Dial()
	peers := Peers{
		Directory: directoryapi.Client(dial.Peer("directory", cfg.Directory)),
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
