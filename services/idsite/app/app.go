// Package app wires the idsite service: its configuration, its database, its relay and its
// consumer, the first tenant, its HTTP application.
package app

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/tenantpurge"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/services/idsite"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
	"github.com/doorward/doorward/services/idsite/store"
)

// Peers are the services that this one calls.
type Peers = idsite.Peers

// Dial returns the clients of the peers of a process of its own.
func (c Config) Dial(dial *deployment.Peers) Peers {
	return Peers{
		Directory:   directoryapi.Client(dial.Peer("directory", c.Peers.Directory)),
		Application: applicationapi.Client(dial.Peer("application", c.Peers.Application)),
		OAuth:       oauthapi.Client(dial.Peer("oauth", c.Peers.OAuth)),
		MFA:         mfaapi.Client(dial.Peer("mfa", c.Peers.MFA)),
	}
}

// Bootstrapped is closed when the first tenant exists, or none is configured. Before that it gets
// the error, if the tenant cannot be created.
type Bootstrapped <-chan error

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*service.App[Bootstrapped], error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	clientSuffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Config, store.Config(cfg.Database), idsite.Sealed)
	if err != nil {
		return nil, err
	}
	guard, err := cfg.Outbound.Open()
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := idsite.New(data, peers, s.Keyring, s.Now, idsite.Config{
		Base: s.Base, Shared: s.Shared, AliasTitle: s.Alias.Title(), Product: s.Alias.Product(), Suffix: cfg.Suffix,
		ClientSuffix: clientSuffix, SignUp: cfg.SignUp,
		Roots: guard.TLS("").RootCAs, LookupTXT: net.DefaultResolver.LookupTXT,
	})
	s.Relay(data.Outbox(), cfg.Events)
	s.Consume(data.Outbox(), cfg.Events, idsite.EventSources, svc.Handlers()...)
	s.Go("repositories", idsite.NewRepositories(svc, guard).Run)
	s.Go("announcement of domains", svc.DomainAnnouncer)
	s.Go("purge", svc.Purger)
	s.Go("purge of deleted tenants", tenantpurge.Worker(s.DB, peers.Directory.DeletedTenants))
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, idsite.Sealed...))
	idsiteapi.Serve(rest.Contract(s.HTTP), svc)
	sizeapi.Serve(rest.Contract(s.HTTP), tenantsize.New(s.DB, s.Now))
	if err := idsiterest.Mount(s.HTTP, svc, s.Base); err != nil {
		return nil, err
	}
	return &service.App[Bootstrapped]{API: bootstrap(p, svc, cfg), HTTP: s.HTTP}, nil
}

// bootstrap creates the first tenant in the background. The process is not ready before that is
// done, and stops when the configuration is refused.
func bootstrap(p *run.Process, svc *idsite.Service, cfg Config) Bootstrapped {
	outcome := make(chan error, 1)
	if cfg.KeyID == "" {
		close(outcome)
		return outcome
	}
	var done atomic.Bool
	p.Check("first tenant", func(context.Context) error {
		if !done.Load() {
			return errors.New("not made yet")
		}
		return nil
	})
	p.Go("first tenant", func(ctx context.Context) error {
		defer close(outcome)
		err := svc.EnsureFirstTenant(ctx,
			idsite.Bootstrap{KeyID: cfg.KeyID, KeySecret: cfg.KeySecret, OwnerEmail: cfg.OwnerEmail})
		done.Store(err == nil)
		if err != nil {
			outcome <- err
		}
		return err
	})
	return outcome
}
