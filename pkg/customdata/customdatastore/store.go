// Package customdatastore stores customData in the schema of a service.
package customdatastore

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the table of documents in a service's schema; a service that
// has owners of customData hands it to pg.Open.
func Migrations() fs.FS { return pg.Embedded(files) }

const empty customdata.Document = "{}"

// Store reads and changes the customData of one kind of owner, the resource that has it. Its methods
// return apierr.NotFound if the tenant has no such owner.
type Store struct {
	DB  *pg.DB
	Now func() time.Time
	// Table is the table of the owners in the schema of the service, with the columns
	// tenant_id and created_at. ID is the column of their id: "id", or "tenant_id" for tenants.
	Table, ID string
	// Changed, if it is set, is called in the transaction of every change, with the new
	// document.
	Changed func(ctx context.Context, tx pg.Querier, owner id.Ref, document customdata.Document) error
}

// Read returns the customData of an owner.
func (s Store) Read(ctx context.Context, owner id.Ref) (customdata.Resource, error) {
	return pg.One[customdata.Resource](ctx, s.DB, `SELECT coalesce(d.document, '{}') AS document, o.created_at,
			coalesce(d.modified_at, o.created_at) AS modified_at
		FROM `+s.Table+` o LEFT JOIN custom_data d ON d.tenant_id = o.tenant_id AND d.owner_id = o.`+s.ID+`
		WHERE o.tenant_id = $1 AND o.`+s.ID+` = $2`, owner.Tenant, owner.ID)
}

// Merge adds the members of in to an owner's customData, or replaces them, and
// returns the whole. An empty document changes nothing.
func (s Store) Merge(ctx context.Context, owner id.Ref, in customdata.Document) (r customdata.Resource, err error) {
	if in.IsEmpty() {
		return s.Read(ctx, owner)
	}
	r.ModifiedAt = s.Now()
	r.CreatedAt, err = s.change(ctx, owner, func(tx pg.Querier) error {
		r.Document, err = Merge(ctx, tx, owner.Tenant, owner.ID, in, r.ModifiedAt)
		return s.changed(ctx, tx, owner, r.Document, err)
	})
	return r, err
}

// Clear removes all keys of an owner's customData.
func (s Store) Clear(ctx context.Context, owner id.Ref) error {
	return s.reduce(ctx, owner, func(customdata.Document) customdata.Document { return empty })
}

// DeleteKey removes one key of an owner's customData, which need not be there.
func (s Store) DeleteKey(ctx context.Context, owner id.Ref, key string) error {
	return s.reduce(ctx, owner, func(d customdata.Document) customdata.Document { return d.Without(key) })
}

// reduce replaces the document of an owner by smaller of it, if that differs.
func (s Store) reduce(ctx context.Context, owner id.Ref, smaller func(customdata.Document) customdata.Document) error {
	_, err := s.change(ctx, owner, func(tx pg.Querier) error {
		before, err := Lock(ctx, tx, owner.Tenant, owner.ID)
		if err != nil {
			return err
		}
		after := smaller(before)
		if after == before {
			return nil
		}
		err = write(ctx, tx, owner.Tenant, owner.ID, after, s.Now())
		return s.changed(ctx, tx, owner, after, err)
	})
	return err
}

// change runs fn in a transaction that locks the owner against deletion, and returns the time at which
// the owner was created.
func (s Store) change(ctx context.Context, owner id.Ref, fn func(pg.Querier) error) (created time.Time, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) (err error) {
		created, err = pg.Value[time.Time](ctx, tx,
			`SELECT created_at FROM `+s.Table+` WHERE tenant_id = $1 AND `+s.ID+` = $2 FOR KEY SHARE`, owner.Tenant,
			owner.ID)
		if err != nil {
			return err
		}
		return fn(tx)
	})
	return created, err
}

func (s Store) changed(
	ctx context.Context, tx pg.Querier, owner id.Ref, document customdata.Document, err error,
) error {
	if err != nil || s.Changed == nil {
		return err
	}
	return s.Changed(ctx, tx, owner, document)
}

// Merge adds the members of in to the customData of an owner in a transaction
// that holds a lock on the owner or creates it, and returns the whole document.
// An empty document changes nothing. It returns apierr.CustomDataSize when the
// whole would be too large.
func Merge(
	ctx context.Context, tx pg.Querier, tenant, owner id.ID, in customdata.Document, now time.Time,
) (customdata.Document, error) {
	if in.IsEmpty() {
		return Lock(ctx, tx, tenant, owner)
	}
	n, err := pg.Exec(ctx, tx,
		`INSERT INTO custom_data (tenant_id, owner_id, document, modified_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`,
		tenant, owner, string(in), now)
	if err != nil || n == 1 {
		return in, err
	}
	before, err := Lock(ctx, tx, tenant, owner)
	if err != nil {
		return before, err
	}
	after, err := before.Merge(in)
	if err != nil {
		return before, err
	}
	return after, write(ctx, tx, tenant, owner, after, now)
}

// Lock locks the customData of an owner for a change (FOR UPDATE), in a transaction that holds a lock on
// the owner, and returns it: the empty document if the owner has none.
func Lock(ctx context.Context, tx pg.Querier, tenant, owner id.ID) (customdata.Document, error) {
	text, err := pg.Value[string](ctx, tx,
		`SELECT document FROM custom_data WHERE tenant_id = $1 AND owner_id = $2 FOR UPDATE`, tenant, owner)
	if errors.Is(err, apierr.NotFound) {
		return empty, nil
	}
	return customdata.Document(text), err
}

// Remove deletes the customData of owners that the transaction deletes. It must be called after their
// rows are locked or deleted, so that no other transaction adds customData.
func Remove(ctx context.Context, tx pg.Querier, tenant id.ID, owners ...id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id = ANY ($2)`, tenant, owners)
	return err
}

func write(ctx context.Context, tx pg.Querier, tenant, owner id.ID, document customdata.Document, now time.Time) error {
	return pg.MustChange(ctx, tx,
		`UPDATE custom_data SET document = $3, modified_at = $4 WHERE tenant_id = $1 AND owner_id = $2`,
		tenant, owner, string(document), now)
}
