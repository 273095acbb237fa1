// Package app wires the notification service: its configuration, its database,
// its relay, its consumer and its senders.
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
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/notification"
	notificationrest "github.com/doorward/doorward/services/notification/rest"
	"github.com/doorward/doorward/services/notification/store"
)

// Config is the service's environment.
type Config struct {
	Service   service.Config
	Sender    service.Sender
	Events    events.Config
	Database  secure.Secret `env:"NOTIFICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"keys that seal secrets at rest, <id>:<base64 of 32 bytes>, the newest first; make one with: echo k1:$(openssl rand -base64 32)"`

	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service, http://host:port"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"comma-separated addresses of the application service, http://host:port"`

	SMTP    secure.Secret `env:"DOORWARD_SMTP_URL" required:"true" help:"server that takes all mail, smtp://[user:password@]host:port (STARTTLS where it is offered) or smtps://"`
	Senders int           `env:"DOORWARD_MAIL_SENDERS" default:"4" min:"1" help:"mails that this process hands over at once"`
	Timeout time.Duration `env:"DOORWARD_MAIL_TIMEOUT" default:"2m" help:"longest time that handing over one mail may take"`

	SMS      SMS
	Outbound outbound.Config
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	return cfg
}

// Peers are the services that this one asks.
type Peers = notification.Peers

// App is the wired service.
type App struct {
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
	leave, err := cfg.leave(common)
	if err != nil {
		return nil, err
	}
	db, err := pg.Open(ctx, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	p.OnClose("notification database", db.Stop)
	p.Check("notification database", db.Ping)
	p.Go("notification statistics", db.Analyze)

	data := store.New(db, common.Now)
	svc := notification.New(data, peers, ring, common.Base, common.Now, leave)
	p.Go("notification sweep", svc.Sweep)
	p.Go("notification senders", svc.Send)
	p.Go("notification relay", data.Outbox().Relay(cfg.Events))
	p.Go("notification memory", data.Outbox().Forget)
	p.Go("notification consumer", data.Outbox().Consume(cfg.Events, notification.Sources, svc.Handlers()...))
	p.Go("notification resealer", reseal.Worker(db, ring, notification.Sealed...))

	app := rest.New(rest.Config{Service: "notification", Base: common.Base, Signer: common.Signer})
	notificationrest.Mount(app, svc, common.Base)
	return &App{HTTP: app}, nil
}

// leave reads how mails and texts leave.
func (c Config) leave(common service.Common) (cfg notification.Config, err error) {
	if cfg.Server, err = notification.ParseServer(c.SMTP); err != nil {
		return cfg, fmt.Errorf("DOORWARD_SMTP_URL is %w", err)
	}
	if cfg.From, err = c.Sender.Open(common); err != nil {
		return cfg, err
	}
	cfg.FromNamed = c.Sender.Name != ""
	if c.Timeout <= 0 {
		return cfg, fmt.Errorf("DOORWARD_MAIL_TIMEOUT must be longer than nothing")
	}
	if cfg.Reach, err = c.Outbound.Open(); err != nil {
		return cfg, err
	}
	if cfg.Provider, err = c.SMS.provider(); err != nil {
		return cfg, err
	}
	cfg.Senders, cfg.Timeout, cfg.TextSenders = c.Senders, c.Timeout, c.SMS.Senders
	return cfg, nil
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
	application, err := common.Peer("application", cfg.Application)
	if err != nil {
		return err
	}
	app, err := Open(ctx, p, cfg, Peers{Directory: directoryapi.Client{Peer: directory}, Application: applicationapi.Client{Peer: application}})
	if err != nil {
		return err
	}
	return rest.Listen(p, cfg.Service.Listen, app.HTTP)
}
