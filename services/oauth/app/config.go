package app

import (
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Events      outbox.Config
	Database    secure.Secret `env:"OAUTH_DATABASE_URL,DATABASE_URL" required:"true"`
	ClientAPI   deployment.ClientAPI
	Outbound    outbound.Config
	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service's replicas, http://host:port"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"addresses of the application service's replicas, http://host:port"`
	MFA         []string `env:"DOORWARD_MFA_URL" help:"comma-separated addresses of the mfa service's replicas, http://host:port"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"OAUTH_DATABASE_URL": "PostgreSQL, postgres://user:password@host/database (several hosts as host1,host2; " +
			"TLS by ?sslmode=verify-full)",
	}
}
