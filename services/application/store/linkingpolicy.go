package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// LinkingPolicy is an account linking policy: it says whether a login follows account links, and
// makes new ones. Each application and each organization has one.
type LinkingPolicy struct {
	TenantID              id.ID
	ID                    id.ID
	OwnerKind             OwnerKind
	OwnerID               id.ID
	Status                string
	AutomaticProvisioning string  // Enabled or Disabled
	MatchingProperty      *string // "email" or nil
	CreatedAt             time.Time
	ModifiedAt            time.Time
}

const (
	linkingPolicyColumns = `tenant_id, id, owner_kind, owner_id, status, automatic_provisioning, matching_property,
		created_at, modified_at`
	linkingPolicyQuery = `SELECT ` + linkingPolicyColumns + ` FROM account_linking_policies
		WHERE tenant_id = $1 AND id = $2`
)

// LinkingPolicy returns a policy, or apierr.NotFound.
func (s *Store) LinkingPolicy(ctx context.Context, tenant, policy id.ID) (LinkingPolicy, error) {
	return pg.One[LinkingPolicy](ctx, s.db, linkingPolicyQuery, tenant, policy)
}

// LinkingPolicyOf returns the policy of an application or an organization.
func (s *Store) LinkingPolicyOf(ctx context.Context, tenant, owner id.ID) (LinkingPolicy, error) {
	return pg.One[LinkingPolicy](ctx, s.db,
		`SELECT `+linkingPolicyColumns+` FROM account_linking_policies WHERE tenant_id = $1 AND owner_id = $2`, tenant,
		owner)
}

// LockLinkingPolicy reads and locks a policy that the transaction will change.
func (tx *Tx) LockLinkingPolicy(ctx context.Context, tenant, policy id.ID) (LinkingPolicy, error) {
	return pg.One[LinkingPolicy](ctx, tx, linkingPolicyQuery+` FOR UPDATE`, tenant, policy)
}

// insertLinkingPolicy inserts the policy of a new owner, which is disabled.
func (tx *Tx) insertLinkingPolicy(ctx context.Context, kind OwnerKind, owner id.Ref, policy id.ID,
	now time.Time) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("account_linking_policies", linkingPolicyColumns), pg.Named(LinkingPolicy{
		TenantID: owner.Tenant, ID: policy, OwnerKind: kind, OwnerID: owner.ID, Status: directoryapi.Disabled,
		AutomaticProvisioning: directoryapi.Disabled, CreatedAt: now, ModifiedAt: now,
	}))
	return err
}

// UpdateLinkingPolicy writes the members that a client can change.
func (tx *Tx) UpdateLinkingPolicy(ctx context.Context, p LinkingPolicy) error {
	tx.invalidateLoginOrders(p.TenantID, p.OwnerID)
	return pg.MustChange(ctx, tx, `UPDATE account_linking_policies
		SET status = $3, automatic_provisioning = $4, matching_property = $5, modified_at = $6
		WHERE tenant_id = $1 AND id = $2`, p.TenantID, p.ID, p.Status, p.AutomaticProvisioning, p.MatchingProperty,
		p.ModifiedAt)
}
