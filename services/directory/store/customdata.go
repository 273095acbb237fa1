package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

// CustomData is the customData of the resources of this service. Accounts and groups can be
// searched by theirs.
type CustomData struct {
	Tenants, Directories, Groups, Accounts customdata.Store
}

// CustomData returns the customData of the resources of this service.
func (s *Store) CustomData(now func() time.Time) CustomData {
	return CustomData{
		Tenants:     customdatastore.Store{DB: s.db, Now: now, Table: "tenants", ID: "tenant_id"},
		Directories: customdatastore.Store{DB: s.db, Now: now, Table: "directories", ID: "id"},
		Groups: customdatastore.Store{DB: s.db, Now: now, Table: "live_groups", ID: "id",
			Changed: groupValues.replace},
		Accounts: customdatastore.Store{DB: s.db, Now: now, Table: "live_accounts", ID: "id",
			Changed: accountValues.replace},
	}
}

// MergeCustomData adds members to the customData of a tenant or directory that the transaction has
// locked or inserted.
func (tx *Tx) MergeCustomData(ctx context.Context, tenant, owner id.ID, in customdata.Document, now time.Time) error {
	if in.IsEmpty() {
		return nil
	}
	_, err := customdatastore.Merge(ctx, tx, tenant, owner, in, now)
	return err
}

// MergeAccountCustomData adds members to the customData of an account, and updates its searchable
// values.
func (tx *Tx) MergeAccountCustomData(ctx context.Context, tenant, account id.ID, in customdata.Document,
	now time.Time) error {
	return tx.mergeSearchable(ctx, accountValues, tenant, account, in, now)
}

// MergeGroupCustomData adds members to the customData of a group, and updates its searchable
// values.
func (tx *Tx) MergeGroupCustomData(ctx context.Context, tenant, group id.ID, in customdata.Document,
	now time.Time) error {
	return tx.mergeSearchable(ctx, groupValues, tenant, group, in, now)
}

func (tx *Tx) mergeSearchable(ctx context.Context, values valueTable, tenant, owner id.ID, in customdata.Document,
	now time.Time) error {
	if in.IsEmpty() {
		return nil
	}
	document, err := customdatastore.Merge(ctx, tx, tenant, owner, in, now)
	if err != nil {
		return err
	}
	return values.replace(ctx, tx, id.Ref{Tenant: tenant, ID: owner}, document)
}

// DeleteCustomData deletes the customData of a resource that the transaction deletes.
func (tx *Tx) DeleteCustomData(ctx context.Context, tenant, owner id.ID) error {
	return customdatastore.Remove(ctx, tx, tenant, owner)
}

// valueTable is a table of the searchable values of customData, of accounts or of groups.
type valueTable struct {
	name   string
	owner  string // its column of the owner's id
	owners string // the table of the owners
}

var (
	accountValues = valueTable{name: "account_values", owner: "account_id", owners: "accounts"}
	groupValues   = valueTable{name: "group_values", owner: "group_id", owners: "groups"}
)

// attribute is the attribute customData.* of a search, whose SQL expression of the resource's id
// is given (docs/interface/search.md#custom-data).
func (t valueTable) attribute(id string) list.Attribute {
	return list.Attribute{Kind: list.Custom, Custom: &list.CustomValues{
		From: t.name + " v WHERE v.tenant_id = $1 AND v.directory_id = part.id", Key: t.owner, Owner: id,
	}}
}

// replace writes the searchable values of a document in place of the former ones.
func (t valueTable) replace(ctx context.Context, tx pg.Querier, owner id.Ref, document customdata.Document) error {
	if _, err := pg.Exec(ctx, tx, `DELETE FROM `+t.name+` WHERE tenant_id = $1 AND `+t.owner+` = $2`, owner.Tenant,
		owner.ID); err != nil {
		return err
	}
	leaves := document.Leaves()
	if len(leaves) == 0 {
		return nil
	}
	var (
		paths    = make([]string, len(leaves))
		elements = make([]bool, len(leaves))
		texts    = make([]string, len(leaves))
		numbers  = make([]*string, len(leaves))
		moments  = make([]*time.Time, len(leaves))
	)
	for i, leaf := range leaves {
		paths[i], elements[i], texts[i], numbers[i], moments[i] = leaf.Path, leaf.Element, leaf.Text, leaf.Number,
			leaf.Start
	}
	_, err := pg.Exec(ctx, tx,
		`INSERT INTO `+t.name+` (tenant_id, `+t.owner+`, place, directory_id, path, element, text,
		number, moment)
		SELECT o.tenant_id, o.id, v.place, o.directory_id, v.path, v.element, v.text, v.number::numeric, v.moment
		FROM `+t.owners+` o, unnest(@paths::text[], @elements::boolean[], @texts::text[], @numbers::text[],
			@moments::timestamptz[])
			WITH ORDINALITY AS v (path, element, text, number, moment, place)
		WHERE o.tenant_id = @tenant AND o.id = @id`,
		pg.Named(pg.Args{"paths": paths, "elements": elements, "texts": texts, "numbers": numbers, "moments": moments},
			owner))
	return err
}
