package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/services/directory/store"
)

// newMappingRules makes the rules of a new directory, without storing them.
func newMappingRules(p store.Provider, kind mappingrule.Kind, in mappingrule.Change) (*mappingrule.Rules, error) {
	rules := mappingrule.Rules{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), Kind: kind, Items: []mappingrule.Rule{}, CreatedAt: p.CreatedAt, ModifiedAt: p.CreatedAt,
	}
	return &rules, rules.Apply(in)
}

// MappingRules gives the rules of a kind by their id, or apierr.NotFound.
func (s *Service) MappingRules(kind mappingrule.Kind) func(context.Context, id.Ref) (mappingrule.Rules, error) {
	return func(ctx context.Context, at id.Ref) (mappingrule.Rules, error) {
		return s.store.MappingRules(ctx, kind, at.Tenant, at.ID)
	}
}

// UpdateMappingRules replaces the items of rules of a kind.
func (s *Service) UpdateMappingRules(kind mappingrule.Kind) func(context.Context, id.Ref, mappingrule.Change) (mappingrule.Rules, error) {
	return func(ctx context.Context, at id.Ref, in mappingrule.Change) (rules mappingrule.Rules, err error) {
		err = s.tx(ctx, func(tx *store.Tx) error {
			if rules, err = tx.LockMappingRules(ctx, kind, at.Tenant, at.ID); err != nil {
				return err
			}
			if err := rules.Apply(in); err != nil {
				return err
			}
			rules.ModifiedAt = s.now()
			return tx.UpdateMappingRules(ctx, rules)
		})
		return rules, err
	}
}
