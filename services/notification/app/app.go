// Package app wires the notification service: its configuration, its database,
// its relay, its consumer and its senders.
package app

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/tenantpurge"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/services/notification"
	notificationrest "github.com/doorward/doorward/services/notification/rest"
	"github.com/doorward/doorward/services/notification/store"
)

// Peers are the services that this one asks.
type Peers = notification.Peers

// Dial returns the clients of the peers of a process of its own.
func (c Config) Dial(dial *deployment.Peers) Peers {
	return Peers{
		Directory:   directoryapi.Client(dial.Peer("directory", c.Directory)),
		Application: applicationapi.Client(dial.Peer("application", c.Application)),
		OAuth:       oauthapi.Client(dial.Peer("oauth", c.OAuth)),
	}
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*service.App[struct{}], error) {
	common, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	sending, err := cfg.sending(common)
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Config, store.Config(cfg.Database), notification.Sealed)
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := notification.New(data, peers, s.Keyring, s.Base, s.Now, sending)
	s.Go("purge", svc.Purger)
	s.Go("purge of deleted tenants", tenantpurge.Worker(s.DB, peers.Directory.DeletedTenants))
	s.Go("senders", svc.Send)
	s.Go("usage", data.Usage.Run)
	s.Relay(data.Outbox(), cfg.Events)
	s.Consume(data.Outbox(), cfg.Events, notification.Sources, svc.Handlers()...)
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, notification.Sealed...))

	usageapi.Serve(rest.Contract(s.HTTP), data.Usage)
	sizeapi.Serve(rest.Contract(s.HTTP), tenantsize.New(s.DB, s.Now))
	notificationrest.Mount(s.HTTP, svc, s.Base)
	return &service.App[struct{}]{HTTP: s.HTTP}, nil
}
