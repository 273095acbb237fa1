package application

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/application/store"
)

// linked returns the account that logs in when one is authenticated
// (docs/interface/account-linking.md#outcome-at-login): under the policy of the
// organization that the login names, otherwise of the application. The directory
// service holds the links, finds and makes them.
func (s *Service) linked(ctx context.Context, order store.LoginOrder, in directoryapi.Authenticated) (applicationapi.LoggedIn, error) {
	logged := applicationapi.LoggedIn{Account: in.Account, Organization: order.Named}
	if asItself(order.Linking, in) != "" {
		return logged, nil
	}
	to, err := s.linkedAccount(ctx, order.Linking, in.Account, false)
	logged.Account = to.Account
	return logged, err
}

// asItself returns why an account logs in as itself whatever it is linked to; empty
// when its links have to be looked for.
func asItself(linking store.Linking, in directoryapi.Authenticated) string {
	isDirectory := linking.Default.Kind == directoryapi.Directories
	switch {
	case !linking.Enabled:
		return "the account linking policy is disabled"
	case linking.Default.ID.IsZero():
		return "there is no default account store"
	case linking.Default == in.Store, isDirectory && linking.Default.ID == in.Account.DirectoryID:
		return "the account is in the default account store"
	}
	return ""
}

// linkedAccount asks which account logs in for another. A default store that only
// disabled organizations lead to gets no new accounts, and an account that a link
// leads to in it is refused.
func (s *Service) linkedAccount(
	ctx context.Context, linking store.Linking, account directoryapi.Account, dryRun bool,
) (directoryapi.LinkedAccount, error) {
	to, err := s.directories.LinkedAccount(ctx, directoryapi.LinkAccount{
		Tenant: account.TenantID, Account: account.ID, Store: linking.Default, DryRun: dryRun,
		ByEmail: linking.ByEmail && !linking.Closed, Provision: linking.Provision && !linking.Closed,
	})
	if err == nil && linking.Closed && to.Outcome != directoryapi.Unchanged {
		err = apierr.OrganizationDisabled.Because("the organization that is the default account store is disabled")
	}
	if err != nil {
		return directoryapi.LinkedAccount{}, err
	}
	return to, nil
}
