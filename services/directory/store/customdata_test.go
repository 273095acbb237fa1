package store_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/directory/store"
)

// Groups whose custom data an earlier release stored are found once a worker has
// written their values.
func TestValuesOfGroupsFromBefore(t *testing.T) {
	t.Parallel()
	seeding, stored, db, tenant := open(t)
	directory, group, gone := fill(t, seeding, db, tenant, 1), id.New(now), id.New(now)
	for sql, args := range map[string][]any{
		`INSERT INTO groups (tenant_id, id, directory_id, name, name_folded, status, created_at, modified_at)
			VALUES ($1, $2, $3, 'g', 'g', 'ENABLED', $4, $4)`: {tenant, group, directory, now},
		`INSERT INTO custom_data (tenant_id, owner_id, document, modified_at) VALUES ($1, $2, '{"site":"Bonn"}', $3)`: {tenant, group, now},
		`INSERT INTO group_values_missing (tenant_id, group_id) VALUES ($1, $2), ($1, $3)`:                            {tenant, group, gone},
	} {
		if _, err := pg.Exec(t.Context(), db, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	query, err := list.Parse("customData.site=bonn", store.DirectoryGroups)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		filled int64
		found  int
	}{{2, 1}, {0, 1}} {
		var filled int64
		err := stored.Tx(t.Context(), func(tx *store.Tx) (err error) {
			filled, err = tx.BackfillGroupValues(t.Context(), 10)
			return err
		})
		if err != nil || filled != want.filled {
			t.Errorf("filled %d, %v; want %d", filled, err, want.filled)
		}
		page, err := stored.StoreGroups(t.Context(), tenant, []id.ID{directory}, nil, query)
		if err != nil || page.Size != want.found {
			t.Errorf("found %d, %v; want %d", page.Size, err, want.found)
		}
	}
}
