// Package app wires the notification service: its configuration, its database,
// its relay, its consumer and its senders.
package app

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/notification"
	notificationrest "github.com/doorward/doorward/services/notification/rest"
	"github.com/doorward/doorward/services/notification/store"
)

// Peers are the services that this one asks.
type Peers = notification.Peers

// App is the wired service.
type App struct {
	HTTP *fiber.App
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*App, error) {
	common, err := cfg.Service.Validate()
	if err != nil {
		return nil, err
	}
	sending, err := cfg.sending(common)
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Service, store.Config(cfg.Database))
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := notification.New(data, peers, s.Keyring, s.Base, s.Now, sending)
	s.Go("purge", svc.Purger)
	s.Go("senders", svc.Send)
	s.Relay(data.Outbox(), cfg.Events)
	s.Consume(data.Outbox(), cfg.Events, notification.Sources, svc.Handlers()...)
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, notification.Sealed...))

	notificationrest.Mount(s.HTTP, svc, s.Base)
	return &App{HTTP: s.HTTP}, nil
}

// Run is the service as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	dial := cfg.Service.Peers()
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
