package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

const groupColumns = `g.tenant_id, g.id, g.directory_id, g.name, g.description, g.status, g.created_at, g.modified_at`

// Groups are searched and sorted by these attributes.
var Groups = list.Spec{
	"name":        {Column: "g.name", Folded: "g.name_folded"},
	"description": {Column: "g.description", Folded: "g.description_folded"},
	"status":      {Column: "g.status", Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Column: "g.created_at", Kind: list.Time},
	"modifiedAt":  {Column: "g.modified_at", Kind: list.Time},
}

// Group gives a group, or apierr.NotFound.
func (s *Store) Group(ctx context.Context, tenant, group id.ID) (directoryapi.Group, error) {
	return pg.One[directoryapi.Group](ctx, s.db, `SELECT `+groupColumns+` FROM groups g WHERE g.tenant_id = $1 AND g.id = $2`, tenant, group)
}

// TenantGroups gives a page of the tenant's groups.
func (s *Store) TenantGroups(ctx context.Context, tenant id.ID, query list.Query) (list.Page[directoryapi.Group], error) {
	return s.listGroups(ctx, query, `FROM groups g WHERE g.tenant_id = $1`, tenant)
}

// DirectoryGroups gives a page of the groups of a directory.
func (s *Store) DirectoryGroups(ctx context.Context, tenant, directory id.ID, query list.Query) (list.Page[directoryapi.Group], error) {
	return s.listGroups(ctx, query, `FROM groups g WHERE g.tenant_id = $1 AND g.directory_id = $2`, tenant, directory)
}

// StoreGroups gives a page of the groups of the directories together with the
// groups that are named, each once.
func (s *Store) StoreGroups(ctx context.Context, tenant id.ID, directories, groups []id.ID, query list.Query) (list.Page[directoryapi.Group], error) {
	return s.listGroups(ctx, query, `FROM groups g WHERE g.tenant_id = $1 AND (g.directory_id = ANY ($2) OR g.id = ANY ($3))`, tenant, directories, groups)
}

// AccountGroups gives a page of the groups that an account is a member of.
func (s *Store) AccountGroups(ctx context.Context, tenant, account id.ID, query list.Query) (list.Page[directoryapi.Group], error) {
	return s.listGroups(ctx, query, `FROM group_memberships m JOIN groups g ON g.tenant_id = m.tenant_id AND g.id = m.group_id
		WHERE m.tenant_id = $1 AND m.account_id = $2`, tenant, account)
}

func (s *Store) listGroups(ctx context.Context, query list.Query, from string, args ...any) (list.Page[directoryapi.Group], error) {
	return list.Select[directoryapi.Group](ctx, s.db, Groups, query, groupColumns, from, "g.id", args...)
}

// StoresOf gives the directory and the groups of an account. An account that is
// not there has none.
func (s *Store) StoresOf(ctx context.Context, tenant, account id.ID) ([]directoryapi.Store, error) {
	return pg.All[directoryapi.Store](ctx, s.db, `SELECT 'directories' AS kind, a.directory_id AS id FROM accounts a WHERE a.tenant_id = $1 AND a.id = $2
		UNION ALL SELECT 'groups', m.group_id FROM group_memberships m WHERE m.tenant_id = $1 AND m.account_id = $2
		ORDER BY kind, id`, tenant, account)
}

// LockGroup reads a group that the transaction will change.
func (tx *Tx) LockGroup(ctx context.Context, tenant, group id.ID) (directoryapi.Group, error) {
	return pg.One[directoryapi.Group](ctx, tx, `SELECT `+groupColumns+` FROM groups g WHERE g.tenant_id = $1 AND g.id = $2 FOR UPDATE`, tenant, group)
}

// HoldGroup reads a group that nobody can delete before the transaction ends.
func (tx *Tx) HoldGroup(ctx context.Context, tenant, group id.ID) (directoryapi.Group, error) {
	return pg.One[directoryapi.Group](ctx, tx, `SELECT `+groupColumns+` FROM groups g WHERE g.tenant_id = $1 AND g.id = $2 FOR KEY SHARE`, tenant, group)
}

// InsertGroup adds a group. A name that the directory has is apierr.Exists.
func (tx *Tx) InsertGroup(ctx context.Context, g directoryapi.Group) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO groups (tenant_id, id, directory_id, name, name_folded, description, description_folded, status, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		g.TenantID, g.ID, g.DirectoryID, g.Name, field.Fold(g.Name), g.Description, folded(g.Description), g.Status, g.CreatedAt, g.ModifiedAt)
	return err
}

// UpdateGroup writes what a client can change.
func (tx *Tx) UpdateGroup(ctx context.Context, g directoryapi.Group) error {
	return pg.MustChange(ctx, tx, `UPDATE groups SET name = $3, name_folded = $4, description = $5, description_folded = $6, status = $7, modified_at = $8
		WHERE tenant_id = $1 AND id = $2`, g.TenantID, g.ID, g.Name, field.Fold(g.Name), g.Description, folded(g.Description), g.Status, g.ModifiedAt)
}

// DeleteGroup removes a group with its memberships.
func (tx *Tx) DeleteGroup(ctx context.Context, tenant, group id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM groups WHERE tenant_id = $1 AND id = $2`, tenant, group)
}

// folded is the normal form of a text that may be absent.
func folded(text *string) *string {
	if text == nil {
		return nil
	}
	form := field.Fold(*text)
	return &form
}
