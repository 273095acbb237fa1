package pg

import (
	"context"
	"errors"
	"slices"
)

// TenantTable is a table with a tenant_id, from the catalogue of PostgreSQL.
type TenantTable struct {
	Name    string
	Columns []string // without those that PostgreSQL computes
	Primary []string // columns of the primary key
	Parents []string // tables that foreign keys lead to
}

// TenantTables returns the tables of the schema with a tenant_id, in the order of their foreign keys,
// referenced tables first.
func (db *DB) TenantTables(ctx context.Context) ([]TenantTable, error) {
	all, err := All[TenantTable](ctx, db, `
		SELECT c.relname::text AS name,
			ARRAY(SELECT a.attname::text FROM pg_attribute a
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
				ORDER BY a.attnum) AS columns,
			ARRAY(SELECT a.attname::text FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, n)
				JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
				WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY k.n) AS "primary",
			ARRAY(SELECT DISTINCT p.relname::text FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid
				WHERE f.conrelid = c.oid AND f.contype = 'f') AS parents
		FROM pg_class c
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
		ORDER BY c.relname`)
	if err != nil {
		return nil, err
	}
	sorted := make([]TenantTable, 0, len(all))
	has := func(name string) bool {
		return slices.ContainsFunc(sorted, func(t TenantTable) bool { return t.Name == name })
	}
	for len(sorted) < len(all) {
		before := len(sorted)
		for _, t := range all {
			if !has(t.Name) && !slices.ContainsFunc(t.Parents, func(parent string) bool { return !has(parent) }) {
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before {
			return nil, errors.New("foreign keys refer to each other in a circle")
		}
	}
	return sorted, nil
}
