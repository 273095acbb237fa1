package app

import (
	"errors"
	"strings"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/rpc"
)

// Config is the gateway's environment.
type Config struct {
	Service deployment.Config
	Redis   redisclient.Config

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

	Operator  Operator
	ClientAPI deployment.ClientAPI
	Mailbox   []string `env:"DOORWARD_MAILBOX_URL" help:"address of a development mailbox, shown at /_mailbox to clients of the private"`
	_         env.More `help:"network"`
	SignUp    bool     `env:"DOORWARD_SIGN_UP" default:"false" help:"whether anyone can create a tenant at /register"`
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
