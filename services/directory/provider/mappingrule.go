package provider

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/services/directory/store"
)

// newMappingRules makes the mapping rules of a new directory, without storing them. They are
// applied at a login in claims.go.
func newMappingRules(p store.Provider, kind mappingrule.Kind, in mappingrule.Change) (*mappingrule.Rules, error) {
	rules := mappingrule.Rules{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), Kind: kind, Items: []mappingrule.Rule{}, CreatedAt: p.CreatedAt,
		ModifiedAt: p.CreatedAt,
	}
	return &rules, rules.Apply(in)
}

// MappingRules returns the function that reads the mapping rules of a kind by their id, or returns
// apierr.NotFound.
func (s *Service) MappingRules(kind mappingrule.Kind) func(context.Context, id.Ref) (mappingrule.Rules, error) {
	return func(ctx context.Context, at id.Ref) (mappingrule.Rules, error) {
		return s.store.MappingRules(ctx, kind, at.Tenant, at.ID)
	}
}

// UpdateMappingRules returns the function that replaces the items of mapping rules of a kind.
func (s *Service) UpdateMappingRules(
	kind mappingrule.Kind,
) func(context.Context, id.Ref, mappingrule.Change) (mappingrule.Rules, error) {
	return func(ctx context.Context, at id.Ref, in mappingrule.Change) (rules mappingrule.Rules, err error) {
		err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			rules, err = s.updateRules(ctx, tx, kind, at, in)
			return err
		})
		return rules, err
	}
}

func (s *Service) updateRules(ctx context.Context, tx *store.Tx, kind mappingrule.Kind, at id.Ref,
	in mappingrule.Change) (mappingrule.Rules, error) {
	rules, err := tx.LockMappingRules(ctx, kind, at.Tenant, at.ID)
	if err != nil {
		return rules, err
	}
	if err := rules.Apply(in); err != nil {
		return rules, err
	}
	rules.ModifiedAt = s.now()
	return rules, tx.UpdateMappingRules(ctx, rules)
}
