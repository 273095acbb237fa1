// Package app wires the mfa service: its configuration, its database, its
// workers, its HTTP application.
package app

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/tenantpurge"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/services/mfa"
	mfarest "github.com/doorward/doorward/services/mfa/rest"
	"github.com/doorward/doorward/services/mfa/store"
)

// Peers are the services that this one asks.
type Peers struct {
	Directory directoryapi.API
}

// Dial returns the clients of the peers of a process of its own.
func (c Config) Dial(dial *deployment.Peers) Peers {
	return Peers{
		Directory: directoryapi.Client(dial.Peer("directory", c.Directory)),
	}
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*service.App[*mfa.Service], error) {
	s, err := service.Open(ctx, p, cfg.Config, store.Config(cfg.Database), mfa.Sealed)
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := mfa.New(data, peers.Directory, s.Keyring, s.Base, s.Now, mfa.Config{
		AccountMessages: cfg.AccountMessages, NumberMessages: cfg.NumberMessages,
		CountryMessages: cfg.CountryMessages, TenantMessages: cfg.TenantMessages,
		EnrollTenantMessages: cfg.EnrollTenantMessages, EnrollAddressMessages: cfg.EnrollAddressMessages,
	})
	s.Relay(data.Outbox(), cfg.Events)
	s.Consume(data.Outbox(), cfg.Events, mfa.Sources, svc.Handlers()...)
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, mfa.Sealed...))
	s.Go("purge", svc.Purger)
	s.Go("purge of deleted tenants", tenantpurge.Worker(s.DB, peers.Directory.DeletedTenants))

	mfaapi.Serve(rest.Contract(s.HTTP), svc)
	sizeapi.Serve(rest.Contract(s.HTTP), tenantsize.New(s.DB, s.Now))
	mfarest.Mount(s.HTTP, svc, s.Base)
	return &service.App[*mfa.Service]{API: svc, HTTP: s.HTTP}, nil
}
