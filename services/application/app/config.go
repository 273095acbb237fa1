package app

import (
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Events    outbox.Config
	Database  secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/db"`
	_         env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`
	ClientAPI deployment.ClientAPI
	Directory []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service's replicas, http://host:port"`

	PairLimit     int           `env:"DOORWARD_LOGIN_PAIR_LIMIT" default:"20" min:"1" help:"logins of one user name or email at one address"`
	_             env.More      `help:"that may fail before more are refused with 429"`
	PairWindow    time.Duration `env:"DOORWARD_LOGIN_PAIR_WINDOW" default:"15m" help:"window of DOORWARD_LOGIN_PAIR_LIMIT, from its"`
	_             env.More      `help:"first failed login"`
	AccountLimit  int           `env:"DOORWARD_LOGIN_ACCOUNT_LIMIT" default:"60" min:"1" help:"logins of one user name or email that may"`
	_             env.More      `help:"fail at all addresses together where it has not succeeded before"`
	AccountWindow time.Duration `env:"DOORWARD_LOGIN_ACCOUNT_WINDOW" default:"1h" help:"window of DOORWARD_LOGIN_ACCOUNT_LIMIT, from its"`
	_             env.More      `help:"first failed login"`
	AddressLimit  int           `env:"DOORWARD_LOGIN_ADDRESS_LIMIT" default:"300" min:"1" help:"logins of a tenant's users that may fail at"`
	_             env.More      `help:"one address where they have not succeeded before"`
	AddressWindow time.Duration `env:"DOORWARD_LOGIN_ADDRESS_WINDOW" default:"15m" help:"window of DOORWARD_LOGIN_ADDRESS_LIMIT, from its"`
	_             env.More      `help:"first failed login"`
	AddressShare  int           `env:"DOORWARD_LOGIN_ADDRESS_SHARE" default:"25" min:"0" help:"percent of the login names that"`
	_             env.More      `help:"succeeded at an address within a day, which are added to"`
	_             env.More      `help:"DOORWARD_LOGIN_ADDRESS_LIMIT there, likewise of an application"`
	AppLimit      int           `env:"DOORWARD_LOGIN_APPLICATION_LIMIT" default:"900" min:"1" help:"logins that may fail at one"`
	_             env.More      `help:"application by API keys that do not send the address of the user, where they have not succeeded before"`
	AppWindow     time.Duration `env:"DOORWARD_LOGIN_APPLICATION_WINDOW" default:"15m" help:"window of DOORWARD_LOGIN_APPLICATION_LIMIT,"`
	_             env.More      `help:"from its first failed login"`
	KnownFor      time.Duration `env:"DOORWARD_LOGIN_KNOWN_FOR" default:"720h" help:"how long after a successful login an address is"`
	_             env.More      `help:"known for that login name"`
}
