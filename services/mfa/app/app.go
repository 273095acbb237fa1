// Package app wires the mfa service: its configuration, its database, its HTTP
// application.
package app

import (
	"context"
	"io/fs"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	Service  service.Config
	Database secure.Secret `env:"MFA_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	return cfg
}

// App is the wired service.
type App struct {
	HTTP *fiber.App
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config) (*App, error) {
	common, err := cfg.Service.Open()
	if err != nil {
		return nil, err
	}
	db, err := pg.Open(ctx, pg.Config{URL: cfg.Database, Schema: "mfa", Migrations: []fs.FS{events.Migrations()}})
	if err != nil {
		return nil, err
	}
	p.OnClose("mfa database", db.Stop)
	p.Check("mfa database", db.Ping)
	return &App{HTTP: rest.New(rest.Config{Service: "mfa", Base: common.Base, Signer: common.Signer})}, nil
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	app, err := Open(ctx, p, cfg)
	if err != nil {
		return err
	}
	return rest.Listen(p, cfg.Service.Listen, app.HTTP)
}
