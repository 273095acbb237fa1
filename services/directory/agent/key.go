package agent

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// agentSecretLength is the length of the secret of an agent's key in characters
// of base62, which carry 256 bits.
const agentSecretLength = 43

// errAgentKey is the error for an invalid key. It does not tell whether the id or the secret is
// wrong.
var errAgentKey = apierr.Unauthorized.Because("the key of the agent is unknown, or its secret is wrong")

// NewAgentKey is the body that creates a key of an agent.
type NewAgentKey struct {
	Name field.Text `json:"name"`
}

// CreateAgentKey creates an API key that is valid for the calls of one agent only, or returns
// apierr.NotFound for the agent. No later answer shows the secret again.
func (s *Service) CreateAgentKey(ctx context.Context, at id.Ref, in NewAgentKey) (store.AgentKey, error) {
	secret := secure.Token(agentSecretLength)
	k := store.AgentKey{
		TenantID: at.Tenant, ID: directoryapi.NewAgentKeyID(at.Tenant, at.ID), AgentID: at.ID,
		SecretDigest: secure.Digest(secret), Secret: secret, CreatedAt: s.now(),
	}
	var err error
	if k.Name, err = field.Optional(in.Name, "name", directory.MaxName); err != nil {
		return k, err
	}
	return k, s.store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockAgent(ctx, at.Tenant, at.ID, s.onlineSince()); err != nil {
			return err
		}
		return tx.InsertAgentKey(ctx, k)
	})
}

// AgentKeys returns a page of the keys of an agent, without secrets.
func (s *Service) AgentKeys(ctx context.Context, at id.Ref, query list.Query) (list.Page[store.AgentKey], error) {
	return list.PageOf(ctx, s.Agent, s.store.ListAgentKeys, at, query)
}

// DeleteAgentKey removes a key of an agent.
func (s *Service) DeleteAgentKey(ctx context.Context, at id.Ref, key string) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteAgentKey(ctx, at.Tenant, at.ID, key) })
}

// AuthenticateAgent validates a key of an agent. It takes the same time for a key that does not
// exist.
func (s *Service) AuthenticateAgent(ctx context.Context,
	in directoryapi.AuthenticateAgent) (directoryapi.AgentKey, error) {
	agent, ok := directoryapi.AgentOfKey(in.ID)
	k, err := s.store.AgentKey(caller.WithTenant(ctx, agent.Tenant), agent.Tenant, in.ID)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return directoryapi.AgentKey{}, err
	}
	if subtle.ConstantTimeCompare(k.SecretDigest, secure.Digest(in.Secret)) != 1 || !ok || err != nil ||
		k.AgentID != agent.ID {
		return directoryapi.AgentKey{}, errAgentKey
	}
	return directoryapi.AgentKey{TenantID: k.TenantID, ID: k.ID, AgentID: k.AgentID, Name: k.Name,
			CreatedAt: k.CreatedAt},
		nil
}
