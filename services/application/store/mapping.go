package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

// Mapping makes an account store one of an application's.
type Mapping struct {
	TenantID              id.ID
	ID                    id.ID
	ApplicationID         id.ID
	StoreKind             string // "directories"
	StoreID               id.ID
	ListIndex             int // place in the order of login, 0 first
	IsDefaultAccountStore bool
	IsDefaultGroupStore   bool
	CreatedAt             time.Time
	ModifiedAt            time.Time
}

// Store is what is mapped.
func (m Mapping) Store() directoryapi.Store {
	return directoryapi.Store{Kind: m.StoreKind, ID: m.StoreID}
}

const mappingColumns = `m.tenant_id, m.id, m.application_id, m.store_kind, m.store_id, m.list_index,
	m.is_default_account_store, m.is_default_group_store, m.created_at, m.modified_at`

// Mappings are searched by their times and sorted by these attributes. The
// kind of those that cannot be searched does not matter, only that it is not
// text, which sorts by its normal form.
var Mappings = list.Spec{
	"listIndex":             {Column: "m.list_index", Kind: list.Enum, NoFind: true},
	"isDefaultAccountStore": {Column: "m.is_default_account_store", Kind: list.Enum, NoFind: true},
	"isDefaultGroupStore":   {Column: "m.is_default_group_store", Kind: list.Enum, NoFind: true},
	"createdAt":             {Column: "m.created_at", Kind: list.Time},
	"modifiedAt":            {Column: "m.modified_at", Kind: list.Time},
}

// Reach is what a login through an application needs to know of it.
type Reach struct {
	Status string
	Kinds  []string // of the stores, in the order of login
	IDs    []id.ID  // of the same stores
}

// Stores are the application's account stores in the order of login.
func (r Reach) Stores() []directoryapi.Store {
	stores := make([]directoryapi.Store, len(r.IDs))
	for i := range r.IDs {
		stores[i] = directoryapi.Store{Kind: r.Kinds[i], ID: r.IDs[i]}
	}
	return stores
}

// Reach gives, in one query, whether an application is enabled and where its
// accounts are; apierr.NotFound when there is no such application.
func (s *Store) Reach(ctx context.Context, tenant, application id.ID) (Reach, error) {
	return pg.One[Reach](ctx, s.db, `SELECT a.status,
		ARRAY (SELECT m.store_kind FROM account_store_mappings m WHERE m.tenant_id = a.tenant_id AND m.application_id = a.id ORDER BY m.list_index) AS kinds,
		ARRAY (SELECT m.store_id FROM account_store_mappings m WHERE m.tenant_id = a.tenant_id AND m.application_id = a.id ORDER BY m.list_index) AS ids
		FROM applications a WHERE a.tenant_id = $1 AND a.id = $2`, tenant, application)
}

// Mapping gives a mapping, or apierr.NotFound.
func (s *Store) Mapping(ctx context.Context, tenant, mapping id.ID) (Mapping, error) {
	return pg.One[Mapping](ctx, s.db, `SELECT `+mappingColumns+` FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.id = $2`, tenant, mapping)
}

// ListApplicationMappings gives a page of an application's mappings.
func (s *Store) ListApplicationMappings(ctx context.Context, tenant, application id.ID, query list.Query) (list.Page[Mapping], error) {
	return list.Select[Mapping](ctx, s.db, Mappings, query, mappingColumns,
		`FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.application_id = $2`, "m.id", tenant, application)
}

// ListStoreMappings gives a page of the mappings of a store.
func (s *Store) ListStoreMappings(ctx context.Context, tenant, store id.ID, query list.Query) (list.Page[Mapping], error) {
	return list.Select[Mapping](ctx, s.db, Mappings, query, mappingColumns,
		`FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.store_id = $2`, "m.id", tenant, store)
}

// What follows wants the lock on the mapping's application.

// Mapping reads a mapping as it is under the lock, or gives apierr.NotFound.
func (tx *Tx) Mapping(ctx context.Context, tenant, mapping id.ID) (Mapping, error) {
	return pg.One[Mapping](ctx, tx, `SELECT `+mappingColumns+` FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.id = $2`, tenant, mapping)
}

// CountMappings gives the number of an application's mappings.
func (tx *Tx) CountMappings(ctx context.Context, tenant, application id.ID) (int, error) {
	return pg.Value[int](ctx, tx, `SELECT count(*) FROM account_store_mappings WHERE tenant_id = $1 AND application_id = $2`, tenant, application)
}

// InsertMapping adds a mapping at its place, which must be free. A store that
// is mapped to the application already is apierr.Exists.
func (tx *Tx) InsertMapping(ctx context.Context, m Mapping) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO account_store_mappings (tenant_id, id, application_id, store_kind, store_id, list_index,
		is_default_account_store, is_default_group_store, created_at, modified_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		m.TenantID, m.ID, m.ApplicationID, m.StoreKind, m.StoreID, m.ListIndex, m.IsDefaultAccountStore, m.IsDefaultGroupStore, m.CreatedAt, m.ModifiedAt)
	return err
}

// UpdateMapping writes a mapping's flags. Its place is changed by MoveMapping.
func (tx *Tx) UpdateMapping(ctx context.Context, m Mapping) error {
	return pg.MustChange(ctx, tx, `UPDATE account_store_mappings SET is_default_account_store = $3, is_default_group_store = $4, modified_at = $5
		WHERE tenant_id = $1 AND id = $2`, m.TenantID, m.ID, m.IsDefaultAccountStore, m.IsDefaultGroupStore, m.ModifiedAt)
}

// MoveMapping puts a mapping, which is at its ListIndex, to another place; those
// between the two close up.
func (tx *Tx) MoveMapping(ctx context.Context, m Mapping, to int) error {
	return pg.MustChange(ctx, tx, `UPDATE account_store_mappings
		SET list_index = CASE WHEN id = $3 THEN $5::int WHEN $4::int < $5::int THEN list_index - 1 ELSE list_index + 1 END
		WHERE tenant_id = $1 AND application_id = $2 AND list_index BETWEEN least($4::int, $5::int) AND greatest($4::int, $5::int)`,
		m.TenantID, m.ApplicationID, m.ID, m.ListIndex, to)
}

// ClearDefaults takes the flags that a mapping sets from the application's
// other mappings.
func (tx *Tx) ClearDefaults(ctx context.Context, m Mapping) error {
	_, err := pg.Exec(ctx, tx, `UPDATE account_store_mappings SET is_default_account_store = is_default_account_store AND NOT $4,
		is_default_group_store = is_default_group_store AND NOT $5, modified_at = $6
		WHERE tenant_id = $1 AND application_id = $2 AND id <> $3 AND (is_default_account_store AND $4 OR is_default_group_store AND $5)`,
		m.TenantID, m.ApplicationID, m.ID, m.IsDefaultAccountStore, m.IsDefaultGroupStore, m.ModifiedAt)
	return err
}

// DropStore removes the mappings of a store from applications; those behind
// them close up.
func (tx *Tx) DropStore(ctx context.Context, tenant, store id.ID, applications ...id.ID) error {
	// An application has a store once, so that those behind move by one.
	_, err := pg.Exec(ctx, tx, `WITH gone AS (
			DELETE FROM account_store_mappings WHERE tenant_id = $1 AND store_id = $2 AND application_id = ANY ($3)
			RETURNING application_id, list_index)
		UPDATE account_store_mappings m SET list_index = m.list_index - 1 FROM gone
		WHERE m.tenant_id = $1 AND m.application_id = gone.application_id AND m.list_index > gone.list_index`, tenant, store, applications)
	return err
}
