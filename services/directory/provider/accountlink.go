package provider

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// maxLinks is how many links an account can have (docs/interface/account-linking.md#links).
const maxLinks = 10

// NewAccountLink is the body that links two accounts.
type NewAccountLink struct {
	LeftAccount  field.Link `json:"leftAccount"`
	RightAccount field.Link `json:"rightAccount"`
}

// AccountLink returns a link, or apierr.NotFound.
func (s *Service) AccountLink(ctx context.Context, in id.Ref) (store.AccountLink, error) {
	return s.store.AccountLink(ctx, in.Tenant, in.ID)
}

// AccountLinks returns a page of the links of an account.
func (s *Service) AccountLinks(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[store.AccountLink], error) {
	return list.PageOf(ctx, s.core.Account, s.store.AccountLinks, account, query)
}

// LinkedAccounts returns a page of the accounts to which an account is linked.
func (s *Service) LinkedAccounts(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[directoryapi.Account], error) {
	return s.core.WithVerificationTokens(list.PageOf(ctx, s.core.Account, s.store.LinkedAccounts, account, query))
}

// CreateAccountLink links two accounts of different directories by a client's request
// (docs/interface/account-linking.md#links); linking.go links them at a login. Both accounts are
// locked, so that of concurrent links that exclude each other only one is created.
func (s *Service) CreateAccountLink(ctx context.Context, tenant id.ID, in NewAccountLink) (store.AccountLink, error) {
	now := s.now()
	l := store.AccountLink{TenantID: tenant, ID: id.New(now), CreatedAt: now}
	var err error
	if l.LeftAccountID, err = s.accountReference(in.LeftAccount, "leftAccount"); err != nil {
		return l, err
	}
	if l.RightAccountID, err = s.accountReference(in.RightAccount, "rightAccount"); err != nil {
		return l, err
	}
	if l.LeftAccountID == l.RightAccountID {
		return l, apierr.LinkToItself.Because("leftAccount and rightAccount are the same account")
	}
	for _, end := range []id.ID{l.LeftAccountID, l.RightAccountID} {
		if err := s.checkEndDomain(ctx, tenant, end); err != nil && !errors.Is(err, apierr.NotFound) {
			return l, err
		}
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		directories, err := s.lockAccountsInOrder(ctx, tx, tenant, l.LeftAccountID, l.RightAccountID)
		if err != nil {
			return err
		}
		links, err := tx.LinksOf(ctx, tenant, l.LeftAccountID, l.RightAccountID)
		if err != nil {
			return err
		}
		if err := s.checkLink(l, directories, links); err != nil {
			return err
		}
		return tx.InsertAccountLink(ctx, l)
	})
	return l, err
}

// checkEndDomain is CheckAccountDomain for an account of a link.
func (s *Service) checkEndDomain(ctx context.Context, tenant, account id.ID) error {
	a, err := s.store.Account(ctx, tenant, account)
	if err != nil {
		return err
	}
	return s.core.CheckAccountDomain(ctx, a)
}

// accountReference reads the link to one of the two accounts in a body.
func (s *Service) accountReference(in field.Link, name string) (id.ID, error) {
	v, err := s.core.ParseReference(in, name, "accounts")
	if err != nil && !errors.Is(err, apierr.NotFound) {
		err = apierr.LinkMalformed.Because("%s", apierr.From(err).Reason)
	}
	return v, err
}

// lockAccountsInOrder locks the accounts of a new link in the order of their ids, which prevents a
// deadlock with another link, and returns the directory of each.
func (s *Service) lockAccountsInOrder(ctx context.Context, tx *store.Tx, tenant id.ID,
	ends ...id.ID) (map[id.ID]id.ID, error) {
	slices.SortFunc(ends, func(a, b id.ID) int { return bytes.Compare(a[:], b[:]) })
	directories := map[id.ID]id.ID{}
	for _, end := range ends {
		a, err := tx.LockAccount(ctx, tenant, end)
		if errors.Is(err, apierr.NotFound) {
			return nil, apierr.NotFound.Because("there is no account %q", s.base.To("accounts", end))
		}
		if err != nil {
			return nil, err
		}
		directories[end] = a.DirectoryID
	}
	return directories, nil
}

// checkLink returns an error for a link that existing links of its accounts exclude: an account
// can be linked to at most one account of each other directory, and to maxLinks in all.
func (s *Service) checkLink(l store.AccountLink, directories map[id.ID]id.ID, links []store.DirectedLink) error {
	if directories[l.LeftAccountID] == directories[l.RightAccountID] {
		return apierr.LinkSameDirectory.Because("both accounts are in the same directory")
	}
	partner := map[id.ID]id.ID{l.LeftAccountID: l.RightAccountID, l.RightAccountID: l.LeftAccountID}
	for _, link := range links {
		if link.OtherID == partner[link.AccountID] {
			existing := s.base.Link("accountLinks", link.LinkID)
			return apierr.AlreadyLinked.Because("the accounts are linked by %q", existing.Href).
				WithLocation(existing.Href).With("accountLink", existing)
		}
	}
	for _, link := range links {
		if link.OtherDirectoryID == directories[partner[link.AccountID]] {
			return apierr.LinkedToOther.Because(
				"the account %q is linked to another account of that directory", s.base.To("accounts", link.AccountID))
		}
	}
	count := map[id.ID]int{}
	for _, link := range links {
		if count[link.AccountID]++; count[link.AccountID] == maxLinks {
			return apierr.TooManyLinks.Because("the account %q has %d links; it cannot have more",
				s.base.To("accounts", link.AccountID), maxLinks)
		}
	}
	return nil
}

// DeleteAccountLink removes a link, not its accounts.
func (s *Service) DeleteAccountLink(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteAccountLink(ctx, at.Tenant, at.ID) })
}
