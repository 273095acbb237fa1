package application

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/application/store"
)

// followLinks follows the account links of an account that has authenticated (account linking
// at login, docs/interface/account-linking.md#outcome-at-login): it returns the linked account
// of the default account store, which logs in instead. The policy is that of the organization
// that the login names, otherwise that of the application (linkingpolicy.go). The rules by
// which the directory service finds a linked account, links an account by its email, or creates
// a copy are in services/directory/provider/linking.go (decideLink).
func (s *Service) followLinks(
	ctx context.Context, order store.LoginOrder, in directoryapi.Authenticated,
) (applicationapi.LoggedIn, error) {
	logged := applicationapi.LoggedIn{Account: in.Account, Organization: order.NamedOrganization}
	if reasonLinksIgnored(order.Linking, in) != "" {
		return logged, nil
	}
	linked, err := s.findLinkedAccount(ctx, order.Linking, in.Account, false)
	logged.Account = linked.Account
	return logged, err
}

// reasonLinksIgnored returns why the links of an account are not followed, so that the account
// itself logs in; empty when they are followed.
func reasonLinksIgnored(linking store.LinkingRules, in directoryapi.Authenticated) string {
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

// findLinkedAccount returns the account that logs in for another one, and makes the link or
// the copy that the policy asks for unless dryRun. While the default account store is mapped
// through disabled organizations only, no link is made and no copy is created, and a linked
// account in it is refused.
func (s *Service) findLinkedAccount(
	ctx context.Context, linking store.LinkingRules, account directoryapi.Account, dryRun bool,
) (directoryapi.LinkedAccount, error) {
	linked, err := s.directories.LinkedAccount(ctx, directoryapi.LinkedAccountRequest{
		Tenant: account.TenantID, Account: account.ID, Store: linking.Default, DryRun: dryRun,
		ByEmail: linking.ByEmail && !linking.DefaultDisabled, Provision: linking.Provision && !linking.DefaultDisabled,
	})
	if err == nil && linking.DefaultDisabled && linked.Outcome != directoryapi.Unchanged {
		err = apierr.OrganizationDisabled.Because("the organization that is the default account store is disabled")
	}
	if err != nil {
		return directoryapi.LinkedAccount{}, err
	}
	return linked, nil
}
