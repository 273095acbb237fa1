package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Schema is the account schema of a directory. It consists of its fields: it was created with its
// directory, and last changed with one of them.
type Schema struct {
	TenantID    id.ID
	ID          id.ID
	DirectoryID id.ID
	CreatedAt   time.Time
	ModifiedAt  time.Time
}

// Times returns the times of the collections below the schema.
func (s Schema) Times() (createdAt, modifiedAt time.Time) { return s.CreatedAt, s.ModifiedAt }

// The names of the fields of every schema.
const (
	GivenName = "givenName"
	Surname   = "surname"
)

// Field says whether an attribute of accounts is required.
type Field struct {
	TenantID    id.ID
	ID          id.ID
	SchemaID    id.ID
	DirectoryID id.ID
	Name        string // GivenName or Surname
	Required    bool
	CreatedAt   time.Time
	ModifiedAt  time.Time
}

const (
	fieldColumns = `f.tenant_id, f.id, d.schema_id, f.directory_id, f.name, f.required, f.created_at, f.modified_at`
	fromFields   = ` FROM schema_fields f JOIN directories d ON d.tenant_id = f.tenant_id AND d.id = f.directory_id `
)

// Fields are searched and sorted by these attributes.
var Fields = list.Spec{
	"name":       {Column: "f.name"},
	"required":   {Column: "f.required", Kind: list.Enum, NoFind: true},
	"createdAt":  {Column: "f.created_at", Kind: list.Time},
	"modifiedAt": {Column: "f.modified_at", Kind: list.Time},
}

// Schema returns an account schema, or apierr.NotFound.
func (s *Store) Schema(ctx context.Context, tenant, schema id.ID) (Schema, error) {
	return pg.One[Schema](ctx, s.db, `SELECT d.tenant_id, d.schema_id AS id, d.id AS directory_id, d.created_at,
		(SELECT max(f.modified_at) FROM schema_fields f WHERE f.tenant_id = d.tenant_id
		AND f.directory_id = d.id) AS modified_at
		FROM directories d WHERE d.tenant_id = $1 AND d.schema_id = $2`, tenant, schema)
}

// ListFields returns a page of the fields of a schema.
func (s *Store) ListFields(ctx context.Context, schema id.Ref, query list.Query) (list.Page[Field], error) {
	return listsql.Select[Field](ctx, s.db, Fields, query, fieldColumns, fromFields+`WHERE d.tenant_id = $1
		AND d.schema_id = $2`, "f.name", schema.Tenant, schema.ID)
}

// Field returns a field, or apierr.NotFound.
func (s *Store) Field(ctx context.Context, tenant, field id.ID) (Field, error) {
	return pg.One[Field](ctx, s.db, `SELECT `+fieldColumns+fromFields+`WHERE f.tenant_id = $1 AND f.id = $2`, tenant,
		field)
}

// RequiredNames says which names an account of a directory must have. A mirror directory requires
// none, as its source decides.
type RequiredNames struct {
	GivenNameRequired bool
	SurnameRequired   bool
}

// requiredColumns are the columns of Required for a query whose directory is d
// and which joins requiredFields.
const requiredColumns = `coalesce(d.provider_id = 'native' AND fg.required, false) AS given_name_required,
	coalesce(d.provider_id = 'native' AND fs.required, false) AS surname_required`

// requiredFields are the fields of the schema of the directory d.
const requiredFields = `
	LEFT JOIN schema_fields fg ON fg.tenant_id = d.tenant_id AND fg.directory_id = d.id AND fg.name = 'givenName'
	LEFT JOIN schema_fields fs ON fs.tenant_id = d.tenant_id AND fs.directory_id = d.id AND fs.name = 'surname'`

// LockField reads a field and locks it for a change.
func (tx *Tx) LockField(ctx context.Context, tenant, field id.ID) (Field, error) {
	return pg.One[Field](ctx, tx,
		`SELECT `+fieldColumns+fromFields+`WHERE f.tenant_id = $1 AND f.id = $2 FOR UPDATE OF f`,
		tenant, field)
}

// UpdateField updates what a client can change.
func (tx *Tx) UpdateField(ctx context.Context, f Field) error {
	return pg.MustChange(ctx, tx, `UPDATE schema_fields SET required = $3, modified_at = $4
		WHERE tenant_id = $1 AND id = $2`, f.TenantID, f.ID, f.Required, f.ModifiedAt)
}

func insertField(batch *pg.Batch, f Field) {
	batch.Queue(pg.Insert("schema_fields", `tenant_id, id, directory_id, name, required, created_at, modified_at`),
		pg.Named(f))
}
