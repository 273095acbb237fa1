// Package app wires the OAuth service: its configuration, its database, its
// peers, its workers, its HTTP application.
package app

import (
	"context"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/oauth"
	oauthrest "github.com/doorward/doorward/services/oauth/rest"
	"github.com/doorward/doorward/services/oauth/store"
)

// Config is the service's environment.
type Config struct {
	Service     service.Config
	Events      events.Config
	Database    secure.Secret `env:"OAUTH_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	MasterKey   secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"keys that seal secrets at rest, <id>:<base64 of 32 bytes>, the newest first; make one with: echo k1:$(openssl rand -base64 32)"`
	ClientAPI   service.ClientAPI
	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service's replicas, http://host:port"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"comma-separated addresses of the application service's replicas, http://host:port"`
	MFA         []string `env:"DOORWARD_MFA_URL" help:"comma-separated addresses of the mfa service's replicas, http://host:port"`
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	return cfg
}

// Peers are the services that this one asks.
type Peers = oauth.Peers

// App is the wired service.
type App struct {
	API  *oauth.Service
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
	suffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	db, err := pg.Open(ctx, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	p.OnClose("oauth database", db.Stop)
	p.Check("oauth database", db.Ping)
	p.Go("oauth statistics", db.Analyze)

	data := store.New(db, common.Now)
	svc := oauth.New(data, peers, ring, common.Now, oauth.Config{Base: common.Base, Alias: common.Alias, Suffix: suffix})
	p.Go("oauth memory", data.Outbox().Forget)
	p.Go("oauth consumer", data.Outbox().Consume(cfg.Events, []string{"directory", "application"}, svc.Handlers()...))
	p.Go("oauth cache invalidation", db.Listen)
	p.Go("oauth resealer", reseal.Worker(db, ring, oauth.Sealed...))
	p.Go("oauth purger", svc.Purger(oauth.PurgeEvery))

	app := rest.New(rest.Config{Service: "oauth", Base: common.Base, Signer: common.Signer})
	oauthapi.Serve(rest.Contract(app), svc)
	oauthapi.ServeHosted(rest.Contract(app), svc)
	oauthrest.Mount(app, svc, common.Base, common.Alias)
	return &App{API: svc, HTTP: app}, nil
}

// Run is the service as a process of its own, whose peers are in others.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	common, err := cfg.Service.Open()
	if err != nil {
		return err
	}
	directory, err := common.Peer("directory", cfg.Directory)
	if err != nil {
		return err
	}
	application, err := common.Peer("application", cfg.Application)
	if err != nil {
		return err
	}
	factors, err := common.Peer("mfa", cfg.MFA)
	if err != nil {
		return err
	}
	app, err := Open(ctx, p, cfg, Peers{
		Directory: directoryapi.Client{Peer: directory}, Application: applicationapi.Client{Peer: application}, MFA: mfaapi.Client{Peer: factors},
	})
	if err != nil {
		return err
	}
	return rest.Listen(p, cfg.Service.Listen, app.HTTP)
}
