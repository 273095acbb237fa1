// Package app wires the directory service: its configuration, its database,
// its relay, its HTTP application.
package app

import (
	"context"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/connect"
	directoryrest "github.com/doorward/doorward/services/directory/rest"
	"github.com/doorward/doorward/services/directory/store"
)

// Config is the service's environment.
type Config struct {
	Service   service.Config
	Sender    service.Sender
	Events    events.Config
	Database  secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"keys that seal secrets at rest, <id>:<base64 of 32 bytes>, the newest first; make one with: echo k1:$(openssl rand -base64 32)"`

	Argon2Memory    int `env:"DOORWARD_ARGON2_MEMORY" default:"19456" min:"8" help:"memory of a password hash in KiB"`
	Argon2Time      int `env:"DOORWARD_ARGON2_TIME" default:"2" min:"1" help:"passes of a password hash"`
	Argon2Threads   int `env:"DOORWARD_ARGON2_THREADS" default:"1" min:"1" help:"lanes of a password hash"`
	HashWorkers     int `env:"DOORWARD_HASH_WORKERS" default:"0" min:"0" help:"password hashes computed at once; 0 means one per processor; never more than a CPU quota has whole processors"`
	HashQueue       int `env:"DOORWARD_HASH_QUEUE" default:"128" min:"1" help:"password hashes that may wait; more are refused with 503"`
	Outbound        outbound.Config
	SocialEndpoints string        `env:"DOORWARD_SOCIAL_ENDPOINTS" help:"addresses of social providers in place of their public ones, JSON by provider id, such as {\"google\":{\"tokenEndpoint\":\"https://…\"}}; mostly given as DOORWARD_SOCIAL_ENDPOINTS_FILE"`
	VerificationTTL time.Duration `env:"DOORWARD_VERIFICATION_TTL" default:"168h" help:"how long an email verification token is good"`
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	return cfg
}

// App is the wired service.
type App struct {
	API  *directory.Service
	HTTP *fiber.App
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config) (*App, error) {
	common, err := cfg.Service.Open()
	if err != nil {
		return nil, err
	}
	ring, err := secure.ParseKeyring(cfg.MasterKey)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	cost, err := pwhash.NewCost(cfg.Argon2Memory, cfg.Argon2Time, cfg.Argon2Threads)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_ARGON2_MEMORY, DOORWARD_ARGON2_TIME and DOORWARD_ARGON2_THREADS: %w", err)
	}
	sender, err := cfg.Sender.Open(common)
	if err != nil {
		return nil, err
	}
	providers, err := cfg.providers(common.Now)
	if err != nil {
		return nil, err
	}
	db, err := pg.Open(ctx, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	p.OnClose("directory database", db.Stop)
	p.Check("directory database", db.Ping)
	p.Go("directory statistics", db.Analyze)

	passwords := secure.NewPasswords(cost, cfg.HashWorkers, cfg.HashQueue)
	passwords.ReserveProcessors()
	p.OnClose("password hashes", passwords.Close)
	data := store.New(db, common.Now)
	svc := directory.New(data, passwords, ring, common.Base, common.Now,
		directory.Config{VerificationTTL: cfg.VerificationTTL, Sender: sender, Alias: common.Alias, Providers: providers})
	p.Go("directory relay", data.Outbox().Relay(cfg.Events))
	p.Go("directory purge", svc.Purge)
	p.Go("directory resealer", reseal.Worker(db, ring, directory.Sealed...))

	app := rest.New(rest.Config{Service: "directory", Base: common.Base, Signer: common.Signer})
	directoryapi.Serve(rest.Contract(app), svc)
	directoryapi.ServeHosted(rest.Contract(app), svc)
	directoryrest.Mount(app, svc, common.Base)
	return &App{API: svc, HTTP: app}, nil
}

// providers makes the client of the providers of directories.
func (c Config) providers(now func() time.Time) (*connect.Client, error) {
	guard, err := c.Outbound.Open()
	if err != nil {
		return nil, err
	}
	endpoints, err := connect.ParseEndpoints(c.SocialEndpoints)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_SOCIAL_ENDPOINTS: %w", err)
	}
	return connect.New(guard, endpoints, now), nil
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	app, err := Open(ctx, p, cfg)
	if err != nil {
		return err
	}
	return rest.Listen(p, cfg.Service.Listen, app.HTTP)
}
