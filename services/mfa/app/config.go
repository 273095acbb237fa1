package app

import (
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Events    outbox.Config
	Database  secure.Secret `env:"MFA_DATABASE_URL,DATABASE_URL" required:"true"`
	Directory []string      `env:"DOORWARD_DIRECTORY_URL"`

	AccountMessages int `env:"DOORWARD_SMS_PER_ACCOUNT" default:"60" min:"1"`
	NumberMessages  int `env:"DOORWARD_SMS_PER_NUMBER" default:"20" min:"1"`
	CountryMessages int `env:"DOORWARD_SMS_PER_COUNTRY" default:"1000" min:"1"`
	TenantMessages  int `env:"DOORWARD_SMS_PER_TENANT" default:"2000" min:"1"`

	EnrollTenantMessages  int `env:"DOORWARD_SMS_ENROLLMENTS_PER_TENANT" default:"200" min:"1"`
	EnrollAddressMessages int `env:"DOORWARD_SMS_ENROLLMENTS_PER_ADDRESS" default:"10" min:"1"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"MFA_DATABASE_URL": "PostgreSQL, postgres://user:password@host/database (several hosts as host1,host2; TLS " +
			"by ?sslmode=verify-full)",
		"DOORWARD_DIRECTORY_URL":   "addresses of the directory service's replicas, http://host:port",
		"DOORWARD_SMS_PER_ACCOUNT": "text messages that a tenant sends for one account within an hour",
		"DOORWARD_SMS_PER_NUMBER":  "text messages that a tenant sends to one number within an hour",
		"DOORWARD_SMS_PER_COUNTRY": "text messages that a tenant sends to the numbers of one country within an hour",
		"DOORWARD_SMS_PER_TENANT":  "text messages that a tenant sends within an hour to verified phones",
		"DOORWARD_SMS_ENROLLMENTS_PER_TENANT": "text messages that a tenant sends within an hour to phones that are " +
			"not verified",
		"DOORWARD_SMS_ENROLLMENTS_PER_ADDRESS": "text messages that a tenant sends within an hour to phones that " +
			"users of one address enroll",
	}
}
