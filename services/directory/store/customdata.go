package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// The customData of the owners that this service has.

// TenantData is the customData of tenants.
func (s *Store) TenantData(now func() time.Time) customdata.Owners {
	return customdatastore.Owners{DB: s.db, Now: now, Table: "tenants", ID: "tenant_id"}
}

// DirectoryData is the customData of directories.
func (s *Store) DirectoryData(now func() time.Time) customdata.Owners {
	return customdatastore.Owners{DB: s.db, Now: now, Table: "directories", ID: "id"}
}

// GroupData is the customData of groups.
func (s *Store) GroupData(now func() time.Time) customdata.Owners {
	return customdatastore.Owners{DB: s.db, Now: now, Table: "live_groups", ID: "id"}
}

// AccountData is the customData of accounts, which can be searched.
func (s *Store) AccountData(now func() time.Time) customdata.Owners {
	return customdatastore.Owners{DB: s.db, Now: now, Table: "live_accounts", ID: "id",
		Changed: func(ctx context.Context, tx pg.Querier, account id.Ref, document customdata.Document) error {
			return replaceValues(ctx, tx, account.Tenant, account.ID, document)
		}}
}

// MergeData adds to the customData of an owner that the transaction has locked
// or made, and is no account.
func (tx *Tx) MergeData(ctx context.Context, tenant, owner id.ID, in customdata.Document, now time.Time) error {
	if in.IsEmpty() {
		return nil
	}
	_, err := customdatastore.Merge(ctx, tx, tenant, owner, in, now)
	return err
}

// MergeAccountData is MergeData for an account.
func (tx *Tx) MergeAccountData(ctx context.Context, tenant, account id.ID, in customdata.Document, now time.Time) error {
	if in.IsEmpty() {
		return nil
	}
	document, err := customdatastore.Merge(ctx, tx, tenant, account, in, now)
	if err != nil {
		return err
	}
	return replaceValues(ctx, tx, tenant, account, document)
}

// RemoveData forgets the customData of an owner that the transaction removes.
func (tx *Tx) RemoveData(ctx context.Context, tenant, owner id.ID) error {
	return customdatastore.Remove(ctx, tx, tenant, owner)
}

// replaceValues writes what of an account's customData can be searched.
func replaceValues(ctx context.Context, tx pg.Querier, tenant, account id.ID, document customdata.Document) error {
	if _, err := pg.Exec(ctx, tx, `DELETE FROM account_values WHERE tenant_id = $1 AND account_id = $2`, tenant, account); err != nil {
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
		paths[i], elements[i], texts[i], numbers[i], moments[i] = leaf.Path, leaf.Element, leaf.Text, leaf.Number, leaf.Start
	}
	_, err := pg.Exec(ctx, tx, `INSERT INTO account_values (tenant_id, account_id, place, directory_id, path, element, text, number, moment)
		SELECT a.tenant_id, a.id, v.place, a.directory_id, v.path, v.element, v.text, v.number::numeric, v.moment
		FROM accounts a, unnest($3::text[], $4::boolean[], $5::text[], $6::text[], $7::timestamptz[])
			WITH ORDINALITY AS v (path, element, text, number, moment, place)
		WHERE a.tenant_id = $1 AND a.id = $2`, tenant, account, paths, elements, texts, numbers, moments)
	return err
}
