package app

import (
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Events    outbox.Config
	Database  secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true"`
	ClientAPI deployment.ClientAPI
	Directory []string `env:"DOORWARD_DIRECTORY_URL"`

	PairLimit     int           `env:"DOORWARD_LOGIN_PAIR_LIMIT" default:"20" min:"1"`
	PairWindow    time.Duration `env:"DOORWARD_LOGIN_PAIR_WINDOW" default:"15m"`
	AccountLimit  int           `env:"DOORWARD_LOGIN_ACCOUNT_LIMIT" default:"60" min:"1"`
	AccountWindow time.Duration `env:"DOORWARD_LOGIN_ACCOUNT_WINDOW" default:"1h"`
	AddressLimit  int           `env:"DOORWARD_LOGIN_ADDRESS_LIMIT" default:"300" min:"1"`
	AddressWindow time.Duration `env:"DOORWARD_LOGIN_ADDRESS_WINDOW" default:"15m"`
	AddressShare  int           `env:"DOORWARD_LOGIN_ADDRESS_SHARE" default:"25" min:"0"`
	AppLimit      int           `env:"DOORWARD_LOGIN_APPLICATION_LIMIT" default:"900" min:"1"`
	AppWindow     time.Duration `env:"DOORWARD_LOGIN_APPLICATION_WINDOW" default:"15m"`
	KnownFor      time.Duration `env:"DOORWARD_LOGIN_KNOWN_FOR" default:"720h"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"APPLICATION_DATABASE_URL": "PostgreSQL, postgres://user:password@host/db (several hosts as host1,host2; " +
			"TLS by ?sslmode=verify-full)",
		"DOORWARD_DIRECTORY_URL": "comma-separated addresses of the directory service's replicas, http://host:port",
		"DOORWARD_LOGIN_PAIR_LIMIT": "logins of one user name or email at one address that may fail before more are " +
			"refused with 429",
		"DOORWARD_LOGIN_PAIR_WINDOW": "window of DOORWARD_LOGIN_PAIR_LIMIT, from its first failed login",
		"DOORWARD_LOGIN_ACCOUNT_LIMIT": "logins of one user name or email that may fail at all addresses together " +
			"where it has not succeeded before",
		"DOORWARD_LOGIN_ACCOUNT_WINDOW": "window of DOORWARD_LOGIN_ACCOUNT_LIMIT, from its first failed login",
		"DOORWARD_LOGIN_ADDRESS_LIMIT": "logins of a tenant's users that may fail at one address where they have " +
			"not succeeded before",
		"DOORWARD_LOGIN_ADDRESS_WINDOW": "window of DOORWARD_LOGIN_ADDRESS_LIMIT, from its first failed login",
		"DOORWARD_LOGIN_ADDRESS_SHARE": "percent of the login names that succeeded at an address within a day, " +
			"which are added to DOORWARD_LOGIN_ADDRESS_LIMIT there, likewise of an application",
		"DOORWARD_LOGIN_APPLICATION_LIMIT": "logins that may fail at one application by API keys that do not send " +
			"the address of the user, where they have not succeeded before",
		"DOORWARD_LOGIN_APPLICATION_WINDOW": "window of DOORWARD_LOGIN_APPLICATION_LIMIT, from its first failed " +
			"login",
		"DOORWARD_LOGIN_KNOWN_FOR": "how long after a successful login an address is known for that login name",
	}
}
