// Package app wires the gateway: its configuration, the services behind it,
// Redis, and its listener.
package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/doorward/doorward/gateway"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/certificate"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/kv"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/run"
)

// Config is the gateway's environment.
type Config struct {
	Service deployment.Config
	Redis   kv.Config

	TLS         TLS
	TrustedHops int      `env:"DOORWARD_TRUSTED_HOPS" default:"0" min:"0" help:"proxies in front that add to X-Forwarded-For; the"`
	_           env.More `help:"client's address is counted from its right"`

	TenantConcurrency  int      `env:"DOORWARD_TENANT_CONCURRENCY" default:"100" min:"1" help:"concurrency limit: management requests of one"`
	_                  env.More `help:"tenant in flight, over all gateways; more are refused with 429"`
	TenantRate         int      `env:"DOORWARD_TENANT_RATE" default:"10000" min:"0" help:"rate limit: management requests of one tenant"`
	_                  env.More `help:"per second, over all gateways; more are refused with 429; 0 for no limit"`
	UserConcurrency    int      `env:"DOORWARD_USER_CONCURRENCY" default:"100" min:"1" help:"concurrency limit: requests in flight of the"`
	_                  env.More `help:"end users of one tenant (logins, tokens, codes, mails), and separately those to the Client API of one"`
	_                  env.More `help:"application"`
	UserRate           int      `env:"DOORWARD_USER_RATE" default:"10000" min:"0" help:"rate limit: requests per second of the end"`
	_                  env.More `help:"users of one tenant (logins, tokens, codes, mails), and separately those to the Client API of one"`
	_                  env.More `help:"application; 0 for no limit"`
	AddressConcurrency int      `env:"DOORWARD_ADDRESS_CONCURRENCY" default:"20" min:"1" help:"concurrency limit: requests without a key of"`
	_                  env.More `help:"one client address in flight, and its wrong keys per second; more are refused with 429"`
	AddressRate        int      `env:"DOORWARD_ADDRESS_RATE" default:"1000" min:"0" help:"rate limit: requests without a key of one client"`
	_                  env.More `help:"address per second; 0 for no limit"`

	ClientAPI deployment.ClientAPI
	Mailbox   []string `env:"DOORWARD_MAILBOX_URL" help:"address of a development mailbox, shown at /_mailbox to clients of the private"`
	_         env.More `help:"network"`
	// Data is the folder of standalone's data, where there is one.
	Data string
	// Services are the addresses of the services' replicas, for a gateway in a
	// process of its own.
	Services map[string][]string
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) (cfg Config) {
	source.Load(&cfg)
	cfg.Services = map[string][]string{}
	for _, name := range deployment.Services {
		cfg.Services[name] = source.List(deployment.AddressVariable(name),
			"addresses of the "+name+" service's replicas, http://host:port, comma separated")
	}
	return cfg
}

// Upstreams are the services behind the gateway, by name, and the mailbox if there is one.
type Upstreams = gateway.Upstreams

// App is the wired gateway.
type App struct {
	gateway     *gateway.Gateway
	certificate *certificate.Certificate
}

// Open wires the gateway as a part of a process. It serves nothing yet.
func Open(_ context.Context, p *run.Process, cfg Config, up Upstreams, keys oauthapi.API) (*App, error) {
	common, err := cfg.Service.Open()
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
		return nil, errors.New("DOORWARD_TLS=proxy needs DOORWARD_TRUSTED_HOPS, 1 for one load balancer: else all clients have the load " +
			"balancer's address")
	}
	redis, err := kv.Open(cfg.Redis)
	if err != nil {
		return nil, err
	}
	p.OnClose("gateway redis", func(context.Context) error { return redis.Close() })
	app.gateway, err = gateway.New(gateway.Config{
		Common: common, Upstreams: up, Keys: keys, ClientSuffix: suffix, Data: cfg.Data,
		Proxied: app.certificate == nil, TrustedHops: cfg.TrustedHops,
		Tenant:  gateway.Budget{InFlight: cfg.TenantConcurrency, PerSecond: cfg.TenantRate},
		Users:   gateway.Budget{InFlight: cfg.UserConcurrency, PerSecond: cfg.UserRate},
		Address: gateway.Budget{InFlight: cfg.AddressConcurrency, PerSecond: cfg.AddressRate},
	})
	if err != nil {
		return nil, err
	}
	p.Go("gateway sync", func(ctx context.Context) error { return app.gateway.Sync(ctx, redis) })
	return app, nil
}

// Serve answers clients on a listener of the network, until the process
// closes.
func (a *App) Serve(p *run.Process, listener net.Listener) {
	var current func() *tls.Certificate
	if a.certificate != nil {
		current = a.certificate.Current
	}
	rest.Serve(p, "gateway", a.gateway.HTTP, a.gateway.Listen(listener, current))
}

// Run is the gateway as a process of its own.
func Run(ctx context.Context, p *run.Process, cfg Config) error {
	common, err := cfg.Service.Open()
	if err != nil {
		return err
	}
	up, err := cfg.upstreams()
	if err != nil {
		return err
	}
	app, err := Open(ctx, p, cfg, up, oauthapi.Client(rpc.Peer{Upstream: up["oauth"], Signer: common.Signer}))
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

// upstreams returns the way to each service and to the mailbox, which alone may have
// no address.
func (c Config) upstreams() (Upstreams, error) {
	up := Upstreams{}
	var problems []string
	add := func(name string, addresses []string) {
		upstream, err := rpc.NewUpstream(name, addresses)
		if err != nil {
			problems = append(problems, err.Error())
		}
		up[name] = upstream
	}
	for _, name := range deployment.Services {
		if len(c.Services[name]) == 0 {
			problems = append(problems, deployment.AddressVariable(name)+" is missing")
			continue
		}
		add(name, c.Services[name])
	}
	if len(c.Mailbox) > 0 {
		add("mailbox", c.Mailbox)
	}
	if len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "; "))
	}
	return up, nil
}
