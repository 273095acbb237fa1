// Package app wires the OAuth service: its configuration, its database, its
// peers, its workers, its HTTP application.
package app

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
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
	"github.com/doorward/doorward/services/oauth"
	oauthrest "github.com/doorward/doorward/services/oauth/rest"
	"github.com/doorward/doorward/services/oauth/store"
)

// Peers are the services that the OAuth service calls.
type Peers = oauth.Peers

// Dial returns the clients of the peers of a process of its own.
func (c Config) Dial(dial *deployment.Peers) Peers {
	return Peers{
		Directory:   directoryapi.Client(dial.Peer("directory", c.Directory)),
		Application: applicationapi.Client(dial.Peer("application", c.Application)),
		MFA:         mfaapi.Client(dial.Peer("mfa", c.MFA)),
	}
}

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, peers Peers) (*service.App[*oauth.Service], error) {
	suffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	guard, err := cfg.Outbound.Open()
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Config, store.Config(cfg.Database), oauth.Sealed)
	if err != nil {
		return nil, err
	}
	data := store.New(s.DB, s.Now)
	svc := oauth.New(data, peers, s.Keyring, s.Now, oauth.Config{Base: s.Base, Alias: s.Alias, Suffix: suffix, Outbound: guard})
	s.Consume(data.Outbox(), cfg.Events, oauth.EventSources, svc.Handlers()...)
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, oauth.Sealed...))
	s.Go("purge", svc.Purger)
	s.Go("purge of deleted tenants", tenantpurge.Worker(s.DB, peers.Directory.DeletedTenants))
	s.Go("key rotation", svc.OpenID.KeyRotator)

	oauthapi.Serve(rest.Contract(s.HTTP), svc)
	sizeapi.Serve(rest.Contract(s.HTTP), tenantsize.New(s.DB, s.Now))
	oauthrest.Mount(s.HTTP, svc, s.Base, s.Alias)
	return &service.App[*oauth.Service]{API: svc, HTTP: s.HTTP}, nil
}
