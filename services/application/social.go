package application

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// ProviderLogin logs in the user of a social or OAuth provider (social login,
// docs/interface/applications.md#accounts-by-provider). The directory service calls the
// provider and creates the account of a new user (services/directory/provider/account.go); the
// account links are followed then (linking.go).
func (s *Service) ProviderLogin(ctx context.Context,
	in applicationapi.ProviderLogin) (out applicationapi.ProviderLoggedIn, err error) {
	defer func() { s.store.Usage.AddLogin(in.Tenant, err) }()
	order, at, err := s.providerDirectory(ctx, in)
	if err != nil {
		return applicationapi.ProviderLoggedIn{}, err
	}
	in.Login.Provider = field.Fold(in.Login.Provider)
	made, err := s.directories.SocialAccount(ctx, directoryapi.SocialAccount{
		Tenant: in.Tenant, Directory: at.ID, Application: in.Application, Account: id.New(s.now()), Login: in.Login,
	})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("the directory of the provider %q was deleted", in.Login.Provider)
	}
	if err != nil {
		return applicationapi.ProviderLoggedIn{}, err
	}
	logged, err := s.followLinks(ctx, order, directoryapi.Authenticated{Account: made.Account, Store: at})
	// The account that logs in may be a copy in the default account store, which was created
	// after the account of the provider, or an account that existed before.
	isNew := made.IsNew && !logged.Account.CreatedAt.Before(made.Account.CreatedAt)
	return applicationapi.ProviderLoggedIn{LoggedIn: logged, IsNew: isNew}, err
}

// providerDirectory returns the directory in which the user of a provider logs in: the one of
// the request, or the first directory of the provider in the order of login. It also returns
// the login order, narrowed to the account store that the login names.
func (s *Service) providerDirectory(ctx context.Context,
	in applicationapi.ProviderLogin) (store.LoginOrder, directoryapi.Store, error) {
	where := directoryapi.StoreName{Href: in.Login.AccountStore, NameKey: in.Login.NameKey}
	order, err := s.loginOrder(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}, where)
	if err != nil && !errors.Is(err, apierr.NoStores) && !errors.Is(err, apierr.OrgNoStores) {
		return order, directoryapi.Store{}, err
	}
	if order.Status != directoryapi.Enabled {
		return order, directoryapi.Store{}, apierr.NoSuchAccount // as the login by a password answers
	}
	provider := field.Fold(in.Login.Provider)
	i := slices.IndexFunc(order.Mapped, func(m store.MappedStore) bool {
		return provider != "" && m.SocialProvider == provider && (in.Directory.IsZero() || m.StoreID == in.Directory)
	})
	switch {
	case i < 0 && !order.NamedOrganization.IsZero():
		return order, directoryapi.Store{}, apierr.OrgDirectoryTypeUnmapped.Because(
			"no directory of the provider %q is mapped to the organization; %s", in.Login.Provider,
			mappedProviders(order),
		)
	case i < 0:
		return order, directoryapi.Store{}, apierr.DirectoryTypeUnavailable.Because(
			"no directory of the provider %q is mapped to the application; %s", in.Login.Provider,
			mappedProviders(order),
		)
	}
	at := order.Mapped[i].Store()
	if !slices.Contains(order.EnabledStores(), at) {
		return order, at, apierr.OrganizationDisabled.Because(
			"the organization through which the directory of the provider is reached is disabled",
		)
	}
	return order, at, nil
}

// mappedProviders says which providers have a mapped directory, as the end of the sentence "no
// directory of the provider x is mapped": "those of a and b are", or "none of any provider is".
func mappedProviders(order store.LoginOrder) string {
	var names []string
	for _, p := range order.Mapped {
		if p.SocialProvider != "" {
			names = append(names, p.SocialProvider)
		}
	}
	if len(names) == 0 {
		return "none of any provider is"
	}
	slices.Sort(names)
	return "those of " + field.And(slices.Compact(names)) + " are"
}

// CreateProviderAccount returns the account of a user of a provider, which is created at the
// first login, for a client with an API key.
func (s *Service) CreateProviderAccount(
	ctx context.Context, application id.Ref, login directoryapi.SocialLogin,
) (directoryapi.ProviderAccountResult, error) {
	if _, err := s.Application(ctx, application); err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	out, err := s.ProviderLogin(ctx,
		applicationapi.ProviderLogin{Tenant: application.Tenant, Application: application.ID, Login: login})
	return directoryapi.ProviderAccountResult{Account: out.Account, IsNew: out.IsNew}, err
}

// RefuseOrganizationProviderAccount refuses a login at a provider in the accounts of an
// organization: such a login goes to an application, and may name the organization.
func (s *Service) RefuseOrganizationProviderAccount(
	ctx context.Context, organization id.Ref, _ directoryapi.SocialLogin,
) (directoryapi.ProviderAccountResult, error) {
	if _, err := s.Organization(ctx, organization); err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	return directoryapi.ProviderAccountResult{}, apierr.UnusedProperty.Because(
		"providerData is for the accounts of an application or a directory; its accountStore names the organization",
	)
}
