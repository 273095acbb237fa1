package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

const groupColumns = `g.tenant_id, g.id, g.directory_id, g.name, g.description, g.status, g.created_at, g.modified_at`

// liveGroups are the groups of existing directories. A directory that is deleted is hidden at
// once, and its groups are deleted in batches after that (directoryremoval.go).
const liveGroups = `groups g JOIN directories d ON d.tenant_id = g.tenant_id AND d.id = g.directory_id`

// Groups are searched and sorted by these attributes.
var Groups = list.Spec{
	"name":        {Column: "g.name", Folded: "g.name_folded", Search: "g.search"},
	"description": {Column: "g.description", Folded: "g.description_folded", Search: "g.search"},
	"status":      {Column: "g.status", Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Column: "g.created_at", Kind: list.Time},
	"modifiedAt":  {Column: "g.modified_at", Kind: list.Time},
}

// DirectoryGroups are the attributes by which groups in directories are searched and sorted: those
// of Groups, and custom data.
var DirectoryGroups = withCustomData(Groups, groupValues.attribute("g.id"))

// Group returns a group, or apierr.NotFound.
func (s *Store) Group(ctx context.Context, tenant, group id.ID) (directoryapi.Group, error) {
	return pg.One[directoryapi.Group](ctx, s.db, `SELECT `+groupColumns+` FROM `+liveGroups+` WHERE g.tenant_id = $1
		AND g.id = $2`, tenant, group)
}

// TenantGroups returns a page of the tenant's groups.
func (s *Store) TenantGroups(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[directoryapi.Group], error) {
	return s.listGroups(ctx, query,
		[]listsql.Part{{Each: "(SELECT d.id FROM directories d WHERE d.tenant_id = $1) AS part",
			Where: ofPart}}, tenant.Tenant)
}

// StoreGroups returns a page of the groups of the directories, together with the named groups,
// each once.
func (s *Store) StoreGroups(ctx context.Context, tenant id.ID, directories, groups []id.ID,
	query list.Query) (list.Page[directoryapi.Group], error) {
	parts := []listsql.Part{{
		Each:  "(SELECT d.id FROM directories d WHERE d.tenant_id = $1 AND d.id = ANY ($2)) AS part",
		Where: ofPart,
	}}
	args := []any{tenant, directories}
	if len(groups) > 0 {
		args = append(args, groups)
		parts = append(parts, listsql.Part{
			Each:  "(SELECT d.id FROM directories d WHERE d.tenant_id = $1 AND d.id <> ALL ($2)) AS part",
			Where: ofPart + " AND g.id = ANY ($3)",
		})
	}
	return s.listGroups(ctx, query, parts, args...)
}

// ofPart is the SQL condition of a group in the directory of a part.
const ofPart = "g.tenant_id = $1 AND g.directory_id = part.id"

// byName returns a query ordered by name where it has no order (docs/interface/search.md#order).
func byName(query list.Query) list.Query {
	if len(query.Order) == 0 {
		query.Order = []list.Order{{Attribute: "name"}}
	}
	return query
}

func (s *Store) listGroups(ctx context.Context, query list.Query, parts []listsql.Part,
	args ...any) (list.Page[directoryapi.Group], error) {
	return listsql.SelectParts[directoryapi.Group](ctx, s.db, listsql.Parts{
		Spec: DirectoryGroups, Columns: groupColumns, Table: "groups g", Key: "g.id", Tenant: "g.tenant_id = $1",
		Parts: parts, Args: args,
	}, byName(query))
}

// AccountGroups returns a page of the groups that an account is a member of.
func (s *Store) AccountGroups(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[directoryapi.Group], error) {
	return listsql.Select[directoryapi.Group](ctx, s.db, Groups, byName(query), groupColumns,
		`FROM group_memberships m JOIN groups g ON g.tenant_id = m.tenant_id AND g.id = m.group_id
		WHERE m.tenant_id = $1 AND m.account_id = $2`, "g.id", account.Tenant, account.ID)
}

// GroupsOutside returns those of the groups that are in none of the directories.
func (s *Store) GroupsOutside(ctx context.Context, tenant id.ID, groups, directories []id.ID) ([]id.ID, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	return pg.Values[id.ID](ctx, s.db, `SELECT g.id FROM `+liveGroups+` WHERE g.tenant_id = $1 AND g.id = ANY ($2)
		AND g.directory_id
		<> ALL ($3)`, tenant, groups, directories)
}

// StoresOf returns the directory and the groups of an account; none for an account that does not
// exist.
func (s *Store) StoresOf(ctx context.Context, tenant, account id.ID) ([]directoryapi.Store, error) {
	return pg.All[directoryapi.Store](ctx, s.db, `SELECT 'directories' AS kind, a.directory_id AS id FROM `+
		accountsWithDirectory+` WHERE
		a.tenant_id = $1 AND a.id = $2
		UNION ALL SELECT 'groups', m.group_id FROM group_memberships m WHERE m.tenant_id = $1 AND m.account_id = $2
		ORDER BY kind, id`, tenant, account)
}

// LockGroup reads a group and locks it for a change.
func (tx *Tx) LockGroup(ctx context.Context, tenant, group id.ID) (directoryapi.Group, error) {
	return pg.One[directoryapi.Group](ctx, tx, `SELECT `+groupColumns+` FROM `+liveGroups+` WHERE g.tenant_id = $1
		AND g.id = $2 FOR
		UPDATE OF g`, tenant, group)
}

// LockGroupShared reads a group and locks it against deletion (FOR KEY SHARE) until the
// transaction ends.
func (tx *Tx) LockGroupShared(ctx context.Context, tenant, group id.ID) (directoryapi.Group, error) {
	return pg.One[directoryapi.Group](ctx, tx, `SELECT `+groupColumns+` FROM `+liveGroups+` WHERE g.tenant_id = $1
		AND g.id = $2 FOR
		KEY SHARE OF g`, tenant, group)
}

// InsertGroup inserts a group. A name that is not unique in the directory is apierr.Exists.
func (tx *Tx) InsertGroup(ctx context.Context, g directoryapi.Group) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("groups", groupRow), groupArgs(g))
	return err
}

// UpdateGroup updates what a client can change.
func (tx *Tx) UpdateGroup(ctx context.Context, before, g directoryapi.Group) error {
	if before.Status != g.Status {
		tx.invalidateAccess(g.TenantID, g.ID)
	}
	return pg.MustChange(ctx, tx,
		`UPDATE groups SET `+pg.Set(`name, name_folded, description, description_folded, search, status,
		modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, groupArgs(g))
}

// groupRow are the columns of a new group, groupArgs their values.
const groupRow = groupColumns + `, name_folded, description_folded, search`

func groupArgs(g directoryapi.Group) pg.NamedArgs {
	return pg.Named(g, describe(g.Name, g.Description))
}

// describe returns the normal form of a name and a description, and their text for searches.
func describe(name string, description *string) pg.Args {
	return pg.Args{
		"name_folded": field.Fold(name), "description_folded": field.FoldOptional(description),
		"search": field.SearchText(name, field.OrEmpty(description)),
	}
}

// DeleteGroup removes a group with its memberships.
func (tx *Tx) DeleteGroup(ctx context.Context, tenant, group id.ID) error {
	tx.invalidateAccess(tenant, group)
	return pg.MustChange(ctx, tx, `DELETE FROM groups WHERE tenant_id = $1 AND id = $2`, tenant, group)
}
