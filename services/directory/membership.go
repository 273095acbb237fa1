package directory

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// NewMembership is the body that makes an account a member of a group.
type NewMembership struct {
	Account field.Link `json:"account"`
	Group   field.Link `json:"group"`
}

// Membership returns a membership, or apierr.NotFound.
func (s *Service) Membership(ctx context.Context, in id.Ref) (store.Membership, error) {
	return s.store.Membership(ctx, in.Tenant, in.ID)
}

// AccountMemberships returns a page of the memberships of an account.
func (s *Service) AccountMemberships(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[store.Membership], error) {
	return list.PageOf(ctx, s.Account, s.store.AccountMemberships, account, query)
}

// GroupMemberships returns a page of the memberships of a group.
func (s *Service) GroupMemberships(ctx context.Context, group id.Ref,
	query list.Query) (list.Page[store.Membership], error) {
	return list.PageOf(ctx, s.Group, s.store.GroupMemberships, group, query)
}

// CreateMembership makes an account a member of a group of its directory
// (docs/interface/accounts.md#groups). It returns apierr.Reference for an account or group that
// the tenant does not have or that are in different directories, apierr.Exists for an account that
// is a member already, and apierr.MirroredProperty in a mirror directory.
func (s *Service) CreateMembership(ctx context.Context, tenant id.ID, in NewMembership) (store.Membership, error) {
	now := s.now()
	m := store.Membership{TenantID: tenant, ID: id.New(now), CreatedAt: now}
	var noAccount, noGroup error
	m.AccountID, noAccount = s.ParseReference(in.Account, "account", "accounts")
	m.GroupID, noGroup = s.ParseReference(in.Group, "group", directoryapi.Groups)
	if err := field.First(noAccount, noGroup); err != nil {
		return m, asReferenceError(err)
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		a, err := tx.LockAccountShared(ctx, tenant, m.AccountID)
		if err != nil {
			return asReferenceError(missingError("account", in.Account, err))
		}
		g, err := tx.LockGroupShared(ctx, tenant, m.GroupID)
		if err != nil {
			return asReferenceError(missingError("group", in.Group, err))
		}
		if a.DirectoryID != g.DirectoryID {
			return apierr.Reference.Because("the account and the group are in different directories")
		}
		if err := refuseMirror(ctx, tx, tenant, g.DirectoryID, "the memberships of its groups"); err != nil {
			return err
		}
		m.DirectoryID = g.DirectoryID
		return tx.InsertMembership(ctx, m)
	})
	if errors.Is(err, apierr.Exists) {
		err = apierr.Exists.Because("the account is in the group already")
	}
	return m, err
}

// DeleteMembership removes an account from a group. It returns apierr.MirroredProperty in a mirror
// directory.
func (s *Service) DeleteMembership(ctx context.Context, at id.Ref) error {
	m, err := s.store.Membership(ctx, at.Tenant, at.ID)
	if err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := refuseMirror(ctx, tx, at.Tenant, m.DirectoryID, "the memberships of its groups"); err != nil {
			return err
		}
		return tx.DeleteMembership(ctx, m)
	})
}
