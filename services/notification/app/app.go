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
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/notification"
	notificationrest "github.com/doorward/doorward/services/notification/rest"
	"github.com/doorward/doorward/services/notification/store"
)

// Config is the service's environment.
type Config struct {
	Service  service.Config
	Sender   deployment.Sender
	Events   outbox.Config
	Database secure.Secret `env:"NOTIFICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/db"`
	_        env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`

	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service, http://host:port"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"comma-separated addresses of the application service, http://host:port"`

	SMTP    secure.Secret `env:"DOORWARD_SMTP_URL" required:"true" help:"SMTP server that sends all mail, smtp://[user:password@]host:port"`
	_       env.More      `help:"(STARTTLS where it is offered) or smtps://"`
	Senders int           `env:"DOORWARD_MAIL_SENDERS" default:"4" min:"1" help:"mails that this process sends at once"`
	Timeout time.Duration `env:"DOORWARD_MAIL_TIMEOUT" default:"2m" help:"timeout of sending one mail"`

	SMS      SMS
	Outbound outbound.Config

	// LeaseTime is how long a mail or a text stays with a process that died, where
	// it is not zero. It has no variable: tests set it.
	LeaseTime time.Duration
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
	leave, err := cfg.leave(common)
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Service, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := notification.New(data, peers, s.Keyring, s.Base, s.Now, leave)
	s.Go("sweep", svc.Sweep)
	s.Go("senders", svc.Send)
	s.Relay(data.Outbox(), cfg.Events)
	s.Consume(data.Outbox(), cfg.Events, notification.Sources, svc.Handlers()...)
	s.Go("notifications", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, notification.Sealed...))

	notificationrest.Mount(s.HTTP, svc, s.Base)
	return &App{HTTP: s.HTTP}, nil
}

// leave reads how mails and texts leave.
func (c Config) leave(common deployment.Common) (cfg notification.Config, err error) {
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
	cfg.LeaseTime = c.LeaseTime
	return cfg, nil
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	dial := cfg.Service.Dial()
	peers := Peers{
		Directory:   directoryapi.Client(dial.Peer("directory", cfg.Directory)),
		Application: applicationapi.Client(dial.Peer("application", cfg.Application)),
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
