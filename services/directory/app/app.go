// Package app wires the directory service: its configuration, its database,
// its relay, its HTTP application.
package app

import (
	"context"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/outbound"
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
	Service  service.Config
	Sender   deployment.Sender
	Events   outbox.Config
	Database secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/db"`
	_        env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`

	Argon2Memory    int      `env:"DOORWARD_ARGON2_MEMORY" default:"19456" min:"8" help:"memory of a password hash in KiB (argon2id memory)"`
	Argon2Time      int      `env:"DOORWARD_ARGON2_TIME" default:"2" min:"1" help:"passes of a password hash (argon2id time)"`
	Argon2Threads   int      `env:"DOORWARD_ARGON2_THREADS" default:"1" min:"1" help:"lanes of a password hash (argon2id parallelism)"`
	HashWorkers     int      `env:"DOORWARD_HASH_WORKERS" default:"0" min:"0" help:"password hashes computed at once; 0 means one per"`
	_               env.More `help:"processor; a CPU quota lowers it to the whole processors of the quota"`
	HashQueue       int      `env:"DOORWARD_HASH_QUEUE" default:"128" min:"1" help:"password hashes that may wait; more are refused"`
	_               env.More `help:"with 503"`
	Outbound        outbound.Config
	SocialEndpoints string        `env:"DOORWARD_SOCIAL_ENDPOINTS" help:"addresses of social providers instead of their public ones, JSON by"`
	_               env.More      `help:"provider id; mostly given as DOORWARD_SOCIAL_ENDPOINTS_FILE"`
	VerificationTTL time.Duration `env:"DOORWARD_VERIFICATION_TTL" default:"168h" help:"lifetime of an email verification token"`
	AgentArchive    string        `env:"DOORWARD_AGENT_ARCHIVE" help:"ZIP archive of the directory agent, offered at"`
	_               env.More      `help:"/v1/agents/{id}/download; none without it"`
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
	cost, err := pwhash.NewCost(cfg.Argon2Memory, cfg.Argon2Time, cfg.Argon2Threads)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_ARGON2_MEMORY, DOORWARD_ARGON2_TIME and DOORWARD_ARGON2_THREADS: %w", err)
	}
	sender, err := cfg.Sender.Open(common)
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Service, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	providers, err := cfg.providers(s.Now)
	if err != nil {
		return nil, err
	}
	passwords := secure.NewPasswords(cost, cfg.HashWorkers, cfg.HashQueue)
	passwords.PrepareProcess()
	p.OnClose("password hashes", passwords.Close)
	data := store.New(s.DB, s.Now)
	svc := directory.New(data, passwords, s.Keyring, s.Base, s.Now, directory.Config{
		VerificationTTL: cfg.VerificationTTL, Sender: sender, Alias: s.Alias, AgentArchive: cfg.AgentArchive, Providers: providers,
	})
	s.Relay(data.Outbox(), cfg.Events)
	s.Go("purge", svc.Purge)
	s.Go("certificates", svc.WatchSAMLCertificates)
	s.Go("syncs", svc.SyncWorker)
	s.Go("notifications", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, directory.Sealed...))

	directoryapi.Serve(rest.Contract(s.HTTP), svc)
	directoryrest.Mount(s.HTTP, svc, s.Base)
	return &App{API: svc, HTTP: s.HTTP}, nil
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
	return service.Listen(p, cfg.Service, app.HTTP)
}
