package app

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Events    outbox.Config
	Database  secure.Secret `env:"MFA_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/database"`
	_         env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`
	Directory []string      `env:"DOORWARD_DIRECTORY_URL" help:"addresses of the directory service's replicas, http://host:port"`

	AccountMessages int      `env:"DOORWARD_SMS_PER_ACCOUNT" default:"60" min:"1" help:"text messages that a tenant sends for one account"`
	_               env.More `help:"within an hour"`
	NumberMessages  int      `env:"DOORWARD_SMS_PER_NUMBER" default:"20" min:"1" help:"text messages that a tenant sends to one number"`
	_               env.More `help:"within an hour"`
	CountryMessages int      `env:"DOORWARD_SMS_PER_COUNTRY" default:"1000" min:"1" help:"text messages that a tenant sends to the numbers of"`
	_               env.More `help:"one country within an hour"`
	TenantMessages  int      `env:"DOORWARD_SMS_PER_TENANT" default:"2000" min:"1" help:"text messages that a tenant sends within an hour"`
	_               env.More `help:"to verified phones"`

	EnrollTenantMessages  int      `env:"DOORWARD_SMS_ENROLLMENTS_PER_TENANT" default:"200" min:"1" help:"text messages that a tenant sends"`
	_                     env.More `help:"within an hour to phones that are not verified"`
	EnrollAddressMessages int      `env:"DOORWARD_SMS_ENROLLMENTS_PER_ADDRESS" default:"10" min:"1" help:"text messages that a tenant sends"`
	_                     env.More `help:"within an hour to phones that users of one address enroll"`
}
