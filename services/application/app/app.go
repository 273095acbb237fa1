// Package app wires the application service: its configuration, its database,
// its relay and its consumer, its HTTP application.
package app

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/tenantpurge"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/services/application"
	applicationrest "github.com/doorward/doorward/services/application/rest"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
)

// Peers are the services that the application service calls.
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
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*service.App[*Service], error) {
	suffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Config, store.Config(cfg.Database), Sealed)
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := New(data, peers.Directory, s.Keyring, s.Base, s.Now, application.Config{
		Alias:  s.Alias,
		Suffix: suffix,
		Throttle: throttle.Config{
			LoginKey:     secure.Derive(cfg.InternalSecret, "application logins"),
			Pair:         throttle.Limit{Failures: cfg.PairLimit, Within: cfg.PairWindow},
			Account:      throttle.Limit{Failures: cfg.AccountLimit, Within: cfg.AccountWindow},
			Address:      throttle.Limit{Failures: cfg.AddressLimit, Within: cfg.AddressWindow},
			AddressShare: cfg.AddressShare,
			Application:  throttle.Limit{Failures: cfg.AppLimit, Within: cfg.AppWindow},
			KnownFor:     cfg.KnownFor,
		},
	})
	s.Relay(data.Outbox(), cfg.Events)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, Sealed...))
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("purge", svc.Purger)
	s.Go("purge of deleted tenants", tenantpurge.Worker(s.DB, peers.Directory.DeletedTenants))
	s.Go("usage", data.Usage.Run)
	s.Go("failed logins", svc.RecordFailures)
	s.Go("certificates", svc.WatchSAMLCertificates)
	s.Consume(data.Outbox(), cfg.Events, application.EventSources, svc.Handlers()...)

	applicationapi.Serve(rest.Contract(s.HTTP), svc)
	sizeapi.Serve(rest.Contract(s.HTTP), tenantsize.New(s.DB, s.Now))
	usageapi.Serve(rest.Contract(s.HTTP), data.Usage)
	applicationrest.Mount(s.HTTP, svc.Core, svc.SAML, s.Base)
	return &service.App[*Service]{API: svc, HTTP: s.HTTP}, nil
}
