package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// OwnerKind is a kind of resource that account stores are mapped to: applications or
// organizations. It is the name of the table and of the collection in hrefs.
type OwnerKind string

// The kinds of owner.
const (
	ApplicationKind  OwnerKind = "applications"
	OrganizationKind OwnerKind = "organizations"
)

// LockOwner locks an owner until the transaction ends. Every transaction that changes mappings
// takes the lock of their owner first. An unknown owner is apierr.NotFound.
func (tx *Tx) LockOwner(ctx context.Context, kind OwnerKind, owner id.Ref) error {
	_, err := pg.Value[id.ID](ctx, tx, `SELECT id FROM `+string(kind)+` WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
		owner.Tenant, owner.ID)
	return err
}

// LockStoreOwners locks, until the transaction ends, the owners that an account store is mapped
// to, and returns their ids. For a directory, these are also the owners of its mapped groups.
// Every transaction locks organizations before applications (lock order, no deadlock).
func (tx *Tx) LockStoreOwners(ctx context.Context, tenant, store id.ID) ([]id.ID, error) {
	var owners []id.ID
	for _, kind := range []OwnerKind{OrganizationKind, ApplicationKind} {
		locked, err := pg.Values[id.ID](ctx, tx,
			`SELECT o.id FROM `+string(kind)+` o WHERE o.tenant_id = $1 AND o.id IN (
			SELECT m.owner_id FROM account_store_mappings m WHERE m.tenant_id = $1 AND (m.store_id = $2
			OR m.directory_id = $2)
			) ORDER BY o.id FOR UPDATE`, tenant, store)
		if err != nil {
			return nil, err
		}
		owners = append(owners, locked...)
	}
	return owners, nil
}

// insertOwnerResources inserts the linking policy and the customData of a new owner.
func (tx *Tx) insertOwnerResources(ctx context.Context, kind OwnerKind, owner id.Ref, policy id.ID,
	data customdata.Document, now time.Time) error {
	tx.invalidateLoginOrders(owner.Tenant, owner.ID)
	if err := tx.insertLinkingPolicy(ctx, kind, owner, policy, now); err != nil {
		return err
	}
	return tx.MergeCustomData(ctx, owner.Tenant, owner.ID, data, now)
}

// deleteOwner deletes an owner with its mappings, its linking policy and its customData. The
// transaction must have the lock on the owner.
func (tx *Tx) deleteOwner(ctx context.Context, kind OwnerKind, owner id.Ref) error {
	tx.invalidateLoginOrders(owner.Tenant, owner.ID)
	if err := pg.MustChange(ctx, tx, `DELETE FROM `+string(kind)+` WHERE tenant_id = $1 AND id = $2`, owner.Tenant,
		owner.ID); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `DELETE FROM account_store_mappings WHERE tenant_id = $1 AND owner_id = $2`,
		owner.Tenant, owner.ID); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `DELETE FROM account_linking_policies WHERE tenant_id = $1 AND owner_id = $2`,
		owner.Tenant, owner.ID); err != nil {
		return err
	}
	return customdatastore.Remove(ctx, tx, owner.Tenant, owner.ID)
}
