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

const directoryColumns = `tenant_id, id, name, description, status, builtin, provider_id, schema_id, created_at,
	modified_at`

// Directories are searched and sorted by these attributes.
var Directories = list.Spec{
	"name":        {Column: "name", Folded: "name_folded", Search: "search"},
	"description": {Column: "description", Folded: "description_folded", Search: "search"},
	"status":      {Column: "status", Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Column: "created_at", Kind: list.Time},
	"modifiedAt":  {Column: "modified_at", Kind: list.Time},
}

// Directory returns a directory, or apierr.NotFound.
func (s *Store) Directory(ctx context.Context, tenant, directory id.ID) (directoryapi.Directory, error) {
	return pg.One[directoryapi.Directory](ctx, s.db, `SELECT `+directoryColumns+` FROM directories
		WHERE tenant_id = $1 AND id = $2`, tenant, directory)
}

// ListDirectories returns a page of the tenant's directories.
func (s *Store) ListDirectories(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[directoryapi.Directory], error) {
	return listsql.Select[directoryapi.Directory](ctx, s.db, Directories, query, directoryColumns,
		`FROM directories WHERE tenant_id = $1`, "id", tenant.Tenant)
}

// LockDirectory reads a directory and locks it for a change.
func (tx *Tx) LockDirectory(ctx context.Context, tenant, directory id.ID) (directoryapi.Directory, error) {
	return pg.One[directoryapi.Directory](ctx, tx, `SELECT `+directoryColumns+` FROM directories
		WHERE tenant_id = $1 AND id = $2 FOR
		UPDATE`, tenant, directory)
}

// LockDirectoryShared reads a directory and locks it against deletion (FOR KEY SHARE) until the
// transaction ends.
func (tx *Tx) LockDirectoryShared(ctx context.Context, tenant, directory id.ID) (directoryapi.Directory, error) {
	return pg.One[directoryapi.Directory](ctx, tx, `SELECT `+directoryColumns+` FROM directories
		WHERE tenant_id = $1 AND id = $2 FOR
		KEY SHARE`, tenant, directory)
}

// InsertDirectory inserts a directory. A name that is not unique in the tenant is apierr.Exists.
func (tx *Tx) InsertDirectory(ctx context.Context, d directoryapi.Directory) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("directories", directoryColumns+", name_folded, description_folded, search"),
		pg.Named(d, describe(d.Name, d.Description)))
	return err
}

// InsertDirectoryDefaults inserts what every directory has: its policies with their default
// values, its email templates, and the fields of its account schema.
func (tx *Tx) InsertDirectoryDefaults(ctx context.Context, d directoryapi.Directory,
	templates []directoryapi.EmailTemplate, fields []Field) error {
	var batch pg.Batch
	insertCreationPolicy(&batch, d)
	insertPasswordPolicy(&batch, d)
	for _, template := range templates {
		insertTemplate(&batch, template)
	}
	for _, f := range fields {
		insertField(&batch, f)
	}
	return pg.ExecBatch(ctx, tx, &batch)
}

// UpdateDirectory updates what a client can change.
func (tx *Tx) UpdateDirectory(ctx context.Context, before, d directoryapi.Directory) error {
	if before.Status != d.Status {
		tx.invalidateAccess(d.TenantID, d.ID)
	}
	return pg.MustChange(ctx, tx, `UPDATE directories SET `+pg.Set(`name, name_folded, description, description_folded,
		search, status,
		modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(d, describe(d.Name, d.Description)))
}

// DeleteDirectory deletes a directory with its policies. Its accounts and groups are hidden from
// then on, and deleted in batches after that (directoryremoval.go).
func (tx *Tx) DeleteDirectory(ctx context.Context, tenant, directory id.ID, now time.Time) error {
	agents, err := pg.Values[id.ID](ctx, tx, `SELECT id FROM agents WHERE tenant_id = $1 AND directory_id = $2`, tenant,
		directory)
	if err != nil {
		return err
	}
	for _, ended := range append(agents, directory) {
		tx.invalidateAccess(tenant, ended)
	}
	if err := pg.MustChange(ctx, tx, `DELETE FROM directories WHERE tenant_id = $1 AND id = $2`, tenant,
		directory); err != nil {
		return err
	}
	_, err = pg.Exec(ctx, tx,
		`INSERT INTO directory_removals (tenant_id, directory_id, created_at) VALUES ($1, $2, $3)`, tenant,
		directory, now)
	return err
}
