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
	TrustedHops int `env:"DOORWARD_TRUSTED_HOPS" default:"0" min:"0"`

	TenantConcurrency  int `env:"DOORWARD_TENANT_CONCURRENCY" default:"100" min:"1"`
	TenantRate         int `env:"DOORWARD_TENANT_RATE" default:"10000" min:"0"`
	UserConcurrency    int `env:"DOORWARD_USER_CONCURRENCY" default:"100" min:"1"`
	UserRate           int `env:"DOORWARD_USER_RATE" default:"10000" min:"0"`
	AddressConcurrency int `env:"DOORWARD_ADDRESS_CONCURRENCY" default:"20" min:"1"`
	AddressRate        int `env:"DOORWARD_ADDRESS_RATE" default:"1000" min:"0"`

	Operator  Operator
	ClientAPI deployment.ClientAPI
	Mailbox   []string `env:"DOORWARD_MAILBOX_URL"`
	SignUp    bool     `env:"DOORWARD_SIGN_UP" default:"false" help:"whether anyone can create a tenant at /register"`
	// Data is the folder of standalone's data, where there is one.
	Data string
	// Services are the addresses of the services' replicas, for a gateway in a
	// process of its own.
	Services map[string][]string
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_TRUSTED_HOPS": "proxies in front that add to X-Forwarded-For; the client's address is counted " +
			"from its right",
		"DOORWARD_TENANT_CONCURRENCY": "concurrency limit: management requests of one tenant in flight, over all " +
			"gateways; more are refused with 429",
		"DOORWARD_TENANT_RATE": "rate limit: management requests of one tenant per second, over all gateways; more " +
			"are refused with 429; 0 for no limit",
		"DOORWARD_USER_CONCURRENCY": "concurrency limit: requests in flight of the end users of one tenant (logins, " +
			"tokens, codes, mails), and separately those to the Client API of one application",
		"DOORWARD_USER_RATE": "rate limit: requests per second of the end users of one tenant (logins, tokens, " +
			"codes, mails), and separately those to the Client API of one application; 0 for no limit",
		"DOORWARD_ADDRESS_CONCURRENCY": "concurrency limit: requests without a key of one client address in flight, " +
			"and its wrong keys per second; more are refused with 429",
		"DOORWARD_ADDRESS_RATE": "rate limit: requests without a key of one client address per second; 0 for no " +
			"limit",
		"DOORWARD_MAILBOX_URL": "address of a development mailbox, shown at /_mailbox to clients of the private " +
			"network",
	}
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
