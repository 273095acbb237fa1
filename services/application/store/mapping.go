package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Mapping is an account store mapping: it makes a directory, a group or an organization an
// account store of its owner, an application or an organization.
type Mapping struct {
	TenantID              id.ID
	ID                    id.ID
	OwnerKind             OwnerKind
	OwnerID               id.ID
	StoreKind             string // as in an href; organizations are stores of applications only
	StoreID               id.ID
	DirectoryID           id.ID   // the directory, or that of the group; zero for an organization
	SocialProvider        *string // of a social directory, folded
	ListIndex             int     // position in the order of login (priority), from 0
	IsDefaultAccountStore bool
	IsDefaultGroupStore   bool
	CreatedAt             time.Time
	ModifiedAt            time.Time
}

// Store returns the account store that is mapped.
func (m Mapping) Store() directoryapi.Store {
	return directoryapi.Store{Kind: m.StoreKind, ID: m.StoreID}
}

// Owner returns the application or the organization that the store is mapped to.
func (m Mapping) Owner() id.Ref { return id.Ref{Tenant: m.TenantID, ID: m.OwnerID} }

// DefaultFlag is a flag that at most one mapping of an owner has: its store is the default
// account store, or the default group store. It is the name of the column.
type DefaultFlag string

// The flags.
const (
	ForAccounts DefaultFlag = "is_default_account_store"
	ForGroups   DefaultFlag = "is_default_group_store"
)

const mappingColumns = `m.tenant_id, m.id, m.owner_kind, m.owner_id, m.store_kind, m.store_id, m.directory_id,
	m.social_provider, m.list_index, m.is_default_account_store, m.is_default_group_store, m.created_at, m.modified_at`

// Mappings has the attributes by which mappings are searched and sorted.
var Mappings = list.Spec{
	"listIndex":             {Column: "m.list_index", Kind: list.Integer},
	"isDefaultAccountStore": {Column: "m.is_default_account_store", Kind: list.Enum, NoFind: true},
	"isDefaultGroupStore":   {Column: "m.is_default_group_store", Kind: list.Enum, NoFind: true},
	"createdAt":             {Column: "m.created_at", Kind: list.Time},
	"modifiedAt":            {Column: "m.modified_at", Kind: list.Time},
}

// Mapping returns a mapping of an application, or of an organization, or apierr.NotFound.
func (s *Store) Mapping(ctx context.Context, tenant id.ID, kind OwnerKind, mapping id.ID) (Mapping, error) {
	return pg.One[Mapping](ctx, s.db, `SELECT `+mappingColumns+` FROM account_store_mappings m
		WHERE m.tenant_id = $1 AND m.owner_kind = $2 AND m.id = $3`, tenant, kind, mapping)
}

// DefaultMapping returns the mapping of an owner that has the flag, or
// apierr.NotFound.
func (s *Store) DefaultMapping(ctx context.Context, owner id.Ref, flag DefaultFlag) (Mapping, error) {
	return pg.One[Mapping](ctx, s.db, `SELECT `+mappingColumns+` FROM account_store_mappings m
		WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.`+string(flag), owner.Tenant, owner.ID)
}

// orderByListIndex sorts mappings by listIndex unless the client asks for another order
// (docs/interface/search.md#order).
func orderByListIndex(query list.Query) list.Query {
	if len(query.Order) == 0 {
		query.Order = []list.Order{{Attribute: "listIndex"}}
	}
	return query
}

// OwnerMappings returns a page of an owner's mappings.
func (s *Store) OwnerMappings(ctx context.Context, owner id.Ref, query list.Query) (list.Page[Mapping], error) {
	return listsql.Select[Mapping](ctx, s.db, Mappings, orderByListIndex(query), mappingColumns,
		`FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.owner_id = $2`, "m.id", owner.Tenant, owner.ID)
}

// StoreMappings returns a page of the mappings of an account store to applications, or to
// organizations.
func (s *Store) StoreMappings(ctx context.Context, kind OwnerKind, store id.Ref,
	query list.Query) (list.Page[Mapping], error) {
	return listsql.Select[Mapping](ctx, s.db, Mappings, orderByListIndex(query), mappingColumns,
		`FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.owner_kind = $2 AND m.store_id = $3`, "m.id",
		store.Tenant, kind, store.ID)
}

// The transaction must have the lock on the mapping's owner for all methods below.

// Mapping reads a mapping under the lock, or returns apierr.NotFound.
func (tx *Tx) Mapping(ctx context.Context, tenant, mapping id.ID) (Mapping, error) {
	return pg.One[Mapping](ctx, tx, `SELECT `+mappingColumns+` FROM account_store_mappings m
		WHERE m.tenant_id = $1 AND m.id = $2`, tenant, mapping)
}

// CountMappings returns the number of an owner's mappings.
func (tx *Tx) CountMappings(ctx context.Context, owner id.Ref) (int, error) {
	return pg.Value[int](ctx, tx, `SELECT count(*) FROM account_store_mappings WHERE tenant_id = $1 AND owner_id = $2`,
		owner.Tenant, owner.ID)
}

// HasSocialMapping reports whether the owner of m has another directory of its social provider.
func (tx *Tx) HasSocialMapping(ctx context.Context, m Mapping) (bool, error) {
	return pg.Value[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM account_store_mappings
		WHERE tenant_id = $1 AND owner_id = $2 AND social_provider = $3 AND store_id <> $4)`, m.TenantID, m.OwnerID,
		m.SocialProvider, m.StoreID)
}

// InsertMapping inserts a mapping at its ListIndex, which no other mapping may have. A store
// that is mapped to the owner already is apierr.Exists.
func (tx *Tx) InsertMapping(ctx context.Context, m Mapping) error {
	tx.invalidateLoginOrders(m.TenantID, m.OwnerID)
	_, err := pg.Exec(ctx, tx, pg.Insert("account_store_mappings", mappingColumns), pg.Named(m))
	return err
}

// UpdateMapping writes the default flags of a mapping. Its ListIndex is changed by MoveMapping.
func (tx *Tx) UpdateMapping(ctx context.Context, m Mapping) error {
	tx.invalidateLoginOrders(m.TenantID, m.OwnerID)
	return pg.MustChange(ctx, tx, `UPDATE account_store_mappings
		SET is_default_account_store = $3, is_default_group_store = $4, modified_at = $5
		WHERE tenant_id = $1 AND id = $2`, m.TenantID, m.ID, m.IsDefaultAccountStore, m.IsDefaultGroupStore,
		m.ModifiedAt)
}

// MoveMapping moves a mapping from its ListIndex to another one. The mappings between the two
// move by one.
func (tx *Tx) MoveMapping(ctx context.Context, m Mapping, to int) error {
	tx.invalidateLoginOrders(m.TenantID, m.OwnerID)
	return pg.MustChange(ctx, tx, `UPDATE account_store_mappings
		SET list_index = CASE WHEN id = $3 THEN $5::int WHEN $4::int < $5::int THEN list_index - 1
			ELSE list_index + 1 END
		WHERE tenant_id = $1 AND owner_id = $2 AND list_index BETWEEN least($4::int, $5::int)
		AND greatest($4::int, $5::int)`,
		m.TenantID, m.OwnerID, m.ID, m.ListIndex, to)
}

// ClearOtherDefaults clears the default flags that m has in the other mappings of its owner.
func (tx *Tx) ClearOtherDefaults(ctx context.Context, m Mapping) error {
	tx.invalidateLoginOrders(m.TenantID, m.OwnerID)
	_, err := pg.Exec(ctx, tx, `UPDATE account_store_mappings SET is_default_account_store = is_default_account_store
		AND NOT $4, is_default_group_store = is_default_group_store AND NOT $5, modified_at = $6
		WHERE tenant_id = $1 AND owner_id = $2 AND id <> $3 AND (is_default_account_store AND $4
		OR is_default_group_store
		AND $5)`, m.TenantID, m.OwnerID, m.ID, m.IsDefaultAccountStore, m.IsDefaultGroupStore, m.ModifiedAt)
	return err
}

// DeleteMapping deletes a mapping; the mappings after it move up by one.
func (tx *Tx) DeleteMapping(ctx context.Context, m Mapping) error {
	tx.invalidateLoginOrders(m.TenantID, m.OwnerID)
	if err := pg.MustChange(ctx, tx, `DELETE FROM account_store_mappings WHERE tenant_id = $1 AND id = $2`, m.TenantID,
		m.ID); err != nil {
		return err
	}
	_, err := pg.Exec(ctx, tx, `UPDATE account_store_mappings SET list_index = list_index - 1
		WHERE tenant_id = $1 AND owner_id = $2 AND list_index > $3`, m.TenantID, m.OwnerID, m.ListIndex)
	return err
}

// DeleteStoreMappings deletes the mappings of an account store to owners; the mappings after
// them move up. For a directory, the mappings of its groups are deleted too.
func (tx *Tx) DeleteStoreMappings(ctx context.Context, tenant, store id.ID, owners ...id.ID) error {
	tx.invalidateLoginOrders(tenant, owners...)
	_, err := pg.Exec(ctx, tx, `WITH deleted AS (
			DELETE FROM account_store_mappings WHERE tenant_id = $1 AND (store_id = $2 OR directory_id = $2)
			AND owner_id = ANY ($3)
			RETURNING id, owner_id, list_index)
		UPDATE account_store_mappings m
		SET list_index = m.list_index -
			(SELECT count(*) FROM deleted d WHERE d.owner_id = m.owner_id AND d.list_index < m.list_index)
		WHERE m.tenant_id = $1 AND m.id NOT IN (SELECT id FROM deleted)
			AND EXISTS (SELECT 1 FROM deleted d WHERE d.owner_id = m.owner_id AND d.list_index < m.list_index)`, tenant,
		store, owners)
	return err
}
