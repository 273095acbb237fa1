package app

import (
	"maps"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
)

// keysOfTheDeployment are the keys of tables that do not begin with tenant_id. Where
// tables are distributed by tenant (docs/sizing.md) these are on every node.
var keysOfTheDeployment = map[string]string{
	"directory.backups_pkey":            "when the last backup of the deployment was complete",
	"directory.operator_events_pkey":    "what operators have done with the deployment",
	"application.applications_id":       "leads from the address of an OpenID provider to its tenant",
	"application.dns_label_routes_pkey": "leads from a label to its tenant",
	"directory.tenants_key_key":         "leads from a key to its tenant",
	"idsite.id_site_domains_pkey":       "leads from a domain to its tenant",
	"oauth.api_key_routes_pkey":         "leads from the id of an API key to its tenant",
}

// keysOfASchema are those of tables that each schema has for the process itself.
var keysOfASchema = []string{"migrations_pkey", "write_probes_pkey", "master_key_canaries_pkey", "purged_tenants_pkey"}

func TestEveryKeyBeginsWithItsTenant(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, migrated)
	unused, keys := maps.Clone(keysOfTheDeployment), 0
	for _, schema := range allInOneDatabase(url).Configs() {
		db, err := pg.OpenWithoutMigrating(t.Context(), schema)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		type key struct{ Table, Name, First string }
		found, err := pg.All[key](t.Context(), db, `
			SELECT c.relname::text AS table, k.relname::text AS name, coalesce(a.attname::text, 'an expression') AS first
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class k ON k.oid = i.indexrelid
				LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
			WHERE i.indisunique AND c.relnamespace = current_schema()::regnamespace`)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range found {
			if slices.Contains(keysOfASchema, k.Name) {
				continue
			}
			keys++
			name := schema.Schema + "." + k.Name
			if _, known := keysOfTheDeployment[name]; known {
				delete(unused, name)
			} else if k.First != "tenant_id" {
				t.Errorf("the key %s of the table %s begins with %s, not with tenant_id", name, k.Table, k.First)
			}
		}
		without, err := pg.Values[string](t.Context(), db, `SELECT relname::text FROM pg_class c
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
			AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = c.oid AND indisunique)`)
		if err != nil || len(without) > 0 {
			t.Errorf("%s: tables without a key: %v, %v", schema.Schema, without, err)
		}
	}
	if keys < 60 || len(unused) > 0 {
		t.Errorf("%d keys were found, and of the exceptions not %v", keys, slices.Sorted(maps.Keys(unused)))
	}
}
