package app

import (
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/directory/connect"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Sender   deployment.Sender
	Events   outbox.Config
	Database secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true"`

	Argon2Memory    int `env:"DOORWARD_ARGON2_MEMORY" default:"19456" min:"8"`
	Argon2Time      int `env:"DOORWARD_ARGON2_TIME" default:"2" min:"1"`
	Argon2Threads   int `env:"DOORWARD_ARGON2_THREADS" default:"1" min:"1"`
	HashWorkers     int `env:"DOORWARD_HASH_WORKERS" default:"0" min:"0"`
	HashQueue       int `env:"DOORWARD_HASH_QUEUE" default:"128" min:"1"`
	Outbound        outbound.Config
	SocialEndpoints string        `env:"DOORWARD_SOCIAL_ENDPOINTS"`
	VerificationTTL time.Duration `env:"DOORWARD_VERIFICATION_TTL" default:"168h"`
	AgentArchive    string        `env:"DOORWARD_AGENT_ARCHIVE"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DIRECTORY_DATABASE_URL": "PostgreSQL, postgres://user:password@host/db (several hosts as host1,host2; TLS " +
			"by ?sslmode=verify-full)",
		"DOORWARD_ARGON2_MEMORY":  "memory of a password hash in KiB (argon2id memory)",
		"DOORWARD_ARGON2_TIME":    "passes of a password hash (argon2id time)",
		"DOORWARD_ARGON2_THREADS": "lanes of a password hash (argon2id parallelism)",
		"DOORWARD_HASH_WORKERS": "password hashes computed at once; 0 means one per processor; a CPU quota lowers " +
			"it to the whole processors of the quota",
		"DOORWARD_HASH_QUEUE": "password hashes that may wait; more are refused with 503",
		"DOORWARD_SOCIAL_ENDPOINTS": "addresses of social providers instead of their public ones, JSON by provider " +
			"id; mostly given as DOORWARD_SOCIAL_ENDPOINTS_FILE",
		"DOORWARD_VERIFICATION_TTL": "lifetime of an email verification token",
		"DOORWARD_AGENT_ARCHIVE": "ZIP archive of the directory agent, offered at /v1/agents/{id}/download; none " +
			"without it",
	}
}

// providers makes the client that calls social and OpenID Connect providers.
func (c Config) providers(now func() time.Time) (*connect.Client, error) {
	guard, err := c.Outbound.Open()
	if err != nil {
		return nil, err
	}
	endpoints, err := connect.ParseEndpoints(c.SocialEndpoints)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_SOCIAL_ENDPOINTS: %w", err)
	}
	return connect.New(guard, endpoints, now), nil
}
