package store

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Loaded is an account that comes with many others.
type Loaded struct {
	directoryapi.Account
	CustomData customdata.Document
}

// Load adds the accounts of each batch to a directory, as InsertAccount would
// one by one, in one transaction. They have no password, no events are
// emitted, and a user name or email that is taken fails the whole. When rebuild is
// set the indexes of searches are made again after it, which is faster for many
// accounts.
func (s *Store) Load(ctx context.Context, tenant, directory id.ID, rebuild bool, batches iter.Seq[[]Loaded]) error {
	return s.Tx(ctx, func(tx *Tx) error {
		if !rebuild {
			return tx.load(ctx, tenant, directory, batches)
		}
		return tx.withoutIndexes(ctx, func() error { return tx.load(ctx, tenant, directory, batches) })
	})
}

func (tx *Tx) load(ctx context.Context, tenant, directory id.ID, batches iter.Seq[[]Loaded]) error {
	for accounts := range batches {
		if err := tx.loadBatch(ctx, tenant, directory, accounts); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) loadBatch(ctx context.Context, tenant, directory id.ID, accounts []Loaded) error {
	if err := tx.copy(ctx, "accounts", accountRowColumns, len(accounts), func(i int) []any {
		row, err := accountRow(accounts[i].Account, "", nil).Row(accountRowColumns)
		if err != nil {
			panic(err)
		}
		return row
	}); err != nil {
		return err
	}
	loaded := make([]directoryapi.Account, len(accounts))
	for i, a := range accounts {
		loaded[i] = a.Account
	}
	if err := tx.insertLoginNames(ctx, loaded); err != nil {
		return err
	}
	if err := tx.copy(ctx, "custom_data", "tenant_id, owner_id, document, modified_at", len(accounts), func(i int) []any {
		return []any{tenant, accounts[i].ID, string(accounts[i].CustomData), accounts[i].CreatedAt}
	}); err != nil {
		return err
	}
	var values [][]any
	statuses := map[string]int{}
	for _, a := range accounts {
		statuses[a.Status]++
		for place, leaf := range a.CustomData.Leaves() {
			values = append(values, []any{tenant, a.ID, place + 1, directory, leaf.Path, leaf.Element, leaf.Text, leaf.Number,
				leaf.Start})
		}
	}
	const columns = "tenant_id, account_id, place, directory_id, path, element, text, number, moment"
	if err := tx.copy(ctx, "account_values", columns, len(values), func(i int) []any { return values[i] }); err != nil {
		return err
	}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		if _, err := pg.Exec(ctx, tx, `INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n)
			VALUES ($1, $2, $3, `+countSlot+`, $4)
			ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + excluded.n`,
			tenant, directory, status, statuses[status]); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) copy(ctx context.Context, table, columns string, rows int, row func(int) []any) error {
	source := pgx.CopyFromSlice(rows, func(i int) ([]any, error) { return row(i), nil })
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, pg.Columns(columns), source)
	return pg.Error(err)
}

// index is how PostgreSQL writes one down.
type index struct{ Name, Definition string }

// withoutIndexes runs fn while the tables have only the indexes of their
// constraints, and makes the others again.
func (tx *Tx) withoutIndexes(ctx context.Context, fn func() error) error {
	indexes, err := pg.All[index](ctx, tx, `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid)
		AS definition
		FROM pg_index i WHERE i.indrelid IN ('accounts'::regclass, 'account_values'::regclass)
		AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid) ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if _, err := pg.Exec(ctx, tx, `DROP INDEX `+index.Name); err != nil {
			return err
		}
	}
	if err := fn(); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `SET LOCAL maintenance_work_mem = '512MB'`); err != nil {
		return err
	}
	for _, index := range indexes {
		if _, err := pg.Exec(ctx, tx, index.Definition); err != nil {
			return err
		}
	}
	return nil
}

// Analyze does for tables that were loaded what autovacuum does for them in time:
// the planner knows what they hold, and an index says which pages need no look.
func (s *Store) Analyze(ctx context.Context) error {
	for _, table := range []string{"accounts", "account_values", "account_counts", "custom_data"} {
		if _, err := pg.Exec(ctx, s.db, `VACUUM (ANALYZE) `+table); err != nil {
			return err
		}
	}
	return nil
}
