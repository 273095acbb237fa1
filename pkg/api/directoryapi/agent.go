package directoryapi

import (
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// AuthenticateAgent is the request to validate a key of an agent.
type AuthenticateAgent struct {
	ID     string        `json:"id"`
	Secret secure.Secret `json:"secret"`
}

// AgentKey is an API key that is valid for the calls of one agent only, without its secret.
type AgentKey struct {
	TenantID  id.ID     `json:"tenantId"`
	ID        string    `json:"id"`
	AgentID   id.ID     `json:"agentId"`
	Name      *string   `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
}

// The id of a key of an agent is its prefix, the id of the tenant, that of the
// agent, and agentKeyRandom random characters. No other API key has the prefix.
const (
	agentKeyPrefix = "agent-"
	agentKeyRandom = 10
	idLength       = 22 // characters of an id.ID
)

// NewAgentKeyID returns the id of a new key of an agent.
func NewAgentKeyID(tenant, agent id.ID) string {
	return agentKeyPrefix + tenant.String() + agent.String() + secure.Token(agentKeyRandom).Reveal()
}

// IsAgentKey reports whether a key id has the form of a key of an agent.
func IsAgentKey(key string) bool { return strings.HasPrefix(key, agentKeyPrefix) }

// AgentOfKey returns the agent that the id of a key names; ok is false for another text. It does
// not validate the key.
func AgentOfKey(key string) (agent id.Ref, ok bool) {
	text, prefixed := strings.CutPrefix(key, agentKeyPrefix)
	if !prefixed || len(text) != 2*idLength+agentKeyRandom {
		return id.Ref{}, false
	}
	tenant, err := id.Parse(text[:idLength])
	if err != nil {
		return id.Ref{}, false
	}
	of, err := id.Parse(text[idLength : 2*idLength])
	return id.Ref{Tenant: tenant, ID: of}, err == nil
}
