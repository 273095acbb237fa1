// Package app wires the gateway: its configuration, the services behind it,
// Redis, and its listener.
package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/doorward/doorward/gateway"
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/certificate"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/run"
)

// Upstreams are the services behind the gateway, by name, and the mailbox if there is one.
type Upstreams = gateway.Upstreams

// App is the wired gateway.
type App struct {
	gateway     *gateway.Gateway
	certificate *certificate.Certificate
	operator    operatorListener
}

// Open wires the gateway as a part of a process. It serves nothing yet.
func Open(_ context.Context, p *run.Process, cfg Config, up Upstreams, keys oauthapi.API, directory directoryapi.API,
	feeds ...cache.Source) (*App, error) {
	common, err := cfg.Service.Validate()
	if err != nil {
		return nil, err
	}
	suffix, err := cfg.ClientAPI.Open()
	if err != nil {
		return nil, err
	}
	app := &App{}
	if app.certificate, err = cfg.TLS.open(p); err != nil {
		return nil, err
	}
	if app.certificate == nil && cfg.TrustedHops == 0 {
		return nil, errors.New("DOORWARD_TLS=proxy needs DOORWARD_TRUSTED_HOPS, 1 for one load balancer: else all " +
			"clients have the load balancer's address")
	}
	redis, err := redisclient.Open(cfg.Redis)
	if err != nil {
		return nil, err
	}
	p.OnClose("gateway redis", func(context.Context) error { return redis.Close() })
	app.gateway, err = gateway.New(gateway.Config{
		Common: common, Upstreams: up, Keys: keys, Feeds: feeds,
		Tenants:      directoryapi.NewTenantGate("gateway.tenants", directory, common.Now),
		ClientSuffix: suffix, Data: cfg.Data, SignUp: cfg.SignUp,
		Proxied: app.certificate == nil, TrustedHops: cfg.TrustedHops,
		Tenant:  gateway.Limit{InFlight: cfg.TenantConcurrency, PerSecond: cfg.TenantRate},
		Users:   gateway.Limit{InFlight: cfg.UserConcurrency, PerSecond: cfg.UserRate},
		Address: gateway.Limit{InFlight: cfg.AddressConcurrency, PerSecond: cfg.AddressRate},
	})
	if err != nil {
		return nil, err
	}
	if app.operator, err = cfg.Operator.open(p, common, suffix, cfg.Service.Listen, up); err != nil {
		return nil, err
	}
	p.Go("gateway sync", func(ctx context.Context) error { return app.gateway.Limiter.Sync(ctx, redis) })
	return app, nil
}

// Serve answers clients on a listener of the network, and operators on theirs, until the process
// closes.
func (a *App) Serve(p *run.Process, listener net.Listener) {
	var current func() *tls.Certificate
	if a.certificate != nil {
		current = a.certificate.Current
	}
	a.operator.serve(p)
	rest.Serve(p, "gateway", a.gateway.HTTP, a.gateway.Listen(listener, current))
}

// Run is the gateway as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	common, err := cfg.Service.Validate()
	if err != nil {
		return err
	}
	up, err := cfg.upstreams()
	if err != nil {
		return err
	}
	peer := func(name string) rpc.Peer { return rpc.Peer{Upstream: up[name], Signer: common.Signer} }
	directory := directoryapi.Client(peer("directory"))
	app, err := Open(ctx, p, cfg, up, oauthapi.Client(peer("oauth")), directory,
		applicationapi.Client(peer("application")).AccessChanges, directory.AccessChanges)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Service.Listen)
	if err != nil {
		return fmt.Errorf("listen on DOORWARD_LISTEN: %w", err)
	}
	app.Serve(p, listener)
	return nil
}
