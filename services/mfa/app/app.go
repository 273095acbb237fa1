// Package app wires the mfa service: its configuration, its database, its
// workers, its HTTP application.
package app

import (
	"context"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/mfa"
	mfarest "github.com/doorward/doorward/services/mfa/rest"
	"github.com/doorward/doorward/services/mfa/store"
)

// Config is the service's environment.
type Config struct {
	Service   service.Config
	Events    events.Config
	Database  secure.Secret `env:"MFA_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"keys that seal secrets at rest, <id>:<base64 of 32 bytes>, the newest first; make one with: echo k1:$(openssl rand -base64 32)"`
	Directory []string      `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service's replicas, http://host:port"`

	NumberMessages  int `env:"DOORWARD_SMS_PER_NUMBER" default:"20" min:"1" help:"text messages that a tenant sends to one number within an hour"`
	CountryMessages int `env:"DOORWARD_SMS_PER_COUNTRY" default:"1000" min:"1" help:"text messages that a tenant sends to the numbers of one country within an hour"`
	TenantMessages  int `env:"DOORWARD_SMS_PER_TENANT" default:"2000" min:"1" help:"text messages that a tenant sends within an hour"`
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
	API  *mfa.Service
	HTTP *fiber.App
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*App, error) {
	common, err := cfg.Service.Open()
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
	p.OnClose("mfa database", db.Stop)
	p.Check("mfa database", db.Ping)
	p.Go("mfa statistics", db.Analyze)

	data := store.New(db, common.Now)
	svc := mfa.New(data, peers.Directory, ring, common.Base, common.Now, mfa.Config{
		NumberMessages: cfg.NumberMessages, CountryMessages: cfg.CountryMessages, TenantMessages: cfg.TenantMessages,
	})
	p.Go("mfa relay", data.Outbox().Relay(cfg.Events))
	p.Go("mfa memory", data.Outbox().Forget)
	p.Go("mfa consumer", data.Outbox().Consume(cfg.Events, mfa.Sources, svc.Handlers()...))
	p.Go("mfa resealer", reseal.Worker(db, ring, mfa.Sealed...))
	p.Go("mfa purge", svc.Purge)

	app := rest.New(rest.Config{Service: "mfa", Base: common.Base, Signer: common.Signer})
	mfaapi.Serve(rest.Contract(app), svc)
	mfaapi.ServeHosted(rest.Contract(app), svc)
	mfarest.Mount(app, svc, common.Base)
	return &App{API: svc, HTTP: app}, nil
}

// Run is the service as a process of its own, whose peer is in another.
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
