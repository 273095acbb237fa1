package app

import (
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
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
	Database secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/db"`
	_        env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`

	Argon2Memory    int      `env:"DOORWARD_ARGON2_MEMORY" default:"19456" min:"8" help:"memory of a password hash in KiB (argon2id memory)"`
	Argon2Time      int      `env:"DOORWARD_ARGON2_TIME" default:"2" min:"1" help:"passes of a password hash (argon2id time)"`
	Argon2Threads   int      `env:"DOORWARD_ARGON2_THREADS" default:"1" min:"1" help:"lanes of a password hash (argon2id parallelism)"`
	HashWorkers     int      `env:"DOORWARD_HASH_WORKERS" default:"0" min:"0" help:"password hashes computed at once; 0 means one per"`
	_               env.More `help:"processor; a CPU quota lowers it to the whole processors of the quota"`
	HashQueue       int      `env:"DOORWARD_HASH_QUEUE" default:"128" min:"1" help:"password hashes that may wait; more are refused"`
	_               env.More `help:"with 503"`
	Outbound        outbound.Config
	SocialEndpoints string        `env:"DOORWARD_SOCIAL_ENDPOINTS" help:"addresses of social providers instead of their public ones, JSON by"`
	_               env.More      `help:"provider id; mostly given as DOORWARD_SOCIAL_ENDPOINTS_FILE"`
	VerificationTTL time.Duration `env:"DOORWARD_VERIFICATION_TTL" default:"168h" help:"lifetime of an email verification token"`
	AgentArchive    string        `env:"DOORWARD_AGENT_ARCHIVE" help:"ZIP archive of the directory agent, offered at"`
	_               env.More      `help:"/v1/agents/{id}/download; none without it"`
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
