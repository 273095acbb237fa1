package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/pg"
)

const mappingRuleColumns = `tenant_id, id, kind, items, created_at, modified_at`

const mappingRulesQuery = `SELECT ` + mappingRuleColumns + ` FROM mapping_rules WHERE tenant_id = $1 AND
	id = $2 AND kind = $3`

// MappingRules returns the rules of that kind and id, or apierr.NotFound.
func (s *Store) MappingRules(ctx context.Context, kind mappingrule.Kind, tenant,
	rules id.ID) (mappingrule.Rules, error) {
	return pg.One[mappingrule.Rules](ctx, s.db, mappingRulesQuery, tenant, rules, kind)
}

// LockMappingRules reads mapping rules and locks them for a change.
func (tx *Tx) LockMappingRules(ctx context.Context, kind mappingrule.Kind, tenant,
	rules id.ID) (mappingrule.Rules, error) {
	return pg.One[mappingrule.Rules](ctx, tx, mappingRulesQuery+` FOR UPDATE`, tenant, rules, kind)
}

// InsertMappingRules inserts the mapping rules of a new directory, which has at most one set of
// them.
func (tx *Tx) InsertMappingRules(ctx context.Context, directory id.ID, r mappingrule.Rules) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("mapping_rules", mappingRuleColumns+", directory_id"),
		pg.Named(r, pg.Args{"directory_id": directory}))
	return err
}

// UpdateMappingRules updates what a client can change.
func (tx *Tx) UpdateMappingRules(ctx context.Context, r mappingrule.Rules) error {
	return pg.MustChange(ctx, tx,
		`UPDATE mapping_rules SET items = $3, modified_at = $4 WHERE tenant_id = $1 AND id = $2`,
		r.TenantID, r.ID, r.Items, r.ModifiedAt)
}
