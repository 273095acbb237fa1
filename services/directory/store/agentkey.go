package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// AgentKey is an API key that is good for the calls of one agent.
type AgentKey struct {
	TenantID     id.ID
	ID           string
	AgentID      id.ID
	Name         *string
	SecretDigest []byte
	Secret       secure.Secret `db:"-"` // of a key that was just made
	CreatedAt    time.Time
}

const agentKeyColumns = `tenant_id, id, agent_id, name, secret_digest, created_at`

// AgentKeys are searched and sorted by these attributes.
var AgentKeys = list.Spec{
	"createdAt": {Column: "created_at", Kind: list.Time},
}

// AgentKey returns a key, or apierr.NotFound.
func (s *Store) AgentKey(ctx context.Context, tenant id.ID, key string) (AgentKey, error) {
	return pg.One[AgentKey](ctx, s.db, `SELECT `+agentKeyColumns+` FROM agent_keys WHERE tenant_id = $1 AND id = $2`,
		tenant, key)
}

// ListAgentKeys returns a page of the keys of an agent.
func (s *Store) ListAgentKeys(ctx context.Context, agent id.Ref, query list.Query) (list.Page[AgentKey], error) {
	return listsql.Select[AgentKey](ctx, s.db, AgentKeys, query, agentKeyColumns,
		`FROM agent_keys WHERE tenant_id = $1 AND agent_id = $2`, "id", agent.Tenant, agent.ID)
}

// InsertAgentKey inserts a key of an existing agent.
func (tx *Tx) InsertAgentKey(ctx context.Context, k AgentKey) error {
	tx.invalidateAccess(k.TenantID, k.AgentID)
	_, err := pg.Exec(ctx, tx, `INSERT INTO agent_keys (`+agentKeyColumns+`) VALUES ($1, $2, $3, $4, $5, $6)`,
		k.TenantID, k.ID, k.AgentID, k.Name, k.SecretDigest, k.CreatedAt)
	return err
}

// DeleteAgentKey removes a key of an agent, or returns apierr.NotFound.
func (tx *Tx) DeleteAgentKey(ctx context.Context, tenant, agent id.ID, key string) error {
	tx.invalidateAccess(tenant, agent)
	return pg.MustChange(ctx, tx, `DELETE FROM agent_keys WHERE tenant_id = $1 AND agent_id = $2 AND id = $3`, tenant,
		agent, key)
}
