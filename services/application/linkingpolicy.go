package application

import (
	"context"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// LinkingPolicyChange is the body that updates an account linking policy
// (docs/interface/account-linking.md#policy).
type LinkingPolicyChange struct {
	Status                field.Text `json:"status"`
	AutomaticProvisioning field.Text `json:"automaticProvisioning"`
	MatchingProperty      field.Text `json:"matchingProperty"`
}

// LinkingPolicy returns the account linking policy of an application or an organization, or
// apierr.NotFound. The policy is applied at a login in linking.go.
func (s *Service) LinkingPolicy(ctx context.Context, at id.Ref) (store.LinkingPolicy, error) {
	return s.store.LinkingPolicy(ctx, at.Tenant, at.ID)
}

// UpdateLinkingPolicy changes the members that the body names. Accounts can be matched by
// "email" only, or, with null, not at all.
func (s *Service) UpdateLinkingPolicy(ctx context.Context, at id.Ref,
	in LinkingPolicyChange) (store.LinkingPolicy, error) {
	var p store.LinkingPolicy
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockLinkingPolicy(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		var errs field.Errors
		errs.Enum(&p.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
		errs.Enum(&p.AutomaticProvisioning, in.AutomaticProvisioning, "automaticProvisioning", directoryapi.Enabled,
			directoryapi.Disabled)
		if in.MatchingProperty.Present {
			p.MatchingProperty, err = matchingProperty(in.MatchingProperty)
			errs.Add(err)
		}
		if err := errs.First(); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		return tx.UpdateLinkingPolicy(ctx, p)
	})
	return p, err
}

// matchingProperty parses the member matchingProperty; nil for null.
func matchingProperty(in field.Text) (*string, error) {
	if in.Null {
		return nil, nil
	}
	if name := strings.ToLower(strings.TrimSpace(in.Value)); name == "email" {
		return &name, nil
	}
	return nil, apierr.Unsupported.Because("matchingProperty must be email or null")
}
