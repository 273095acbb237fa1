package applicationfake

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// organizations is the kind of organizations, as it stands in an href.
const organizations = "organizations"

// maxFailures is how many times a login name may fail at one address.
const maxFailures = 20

// attempt is a login name at a client address.
type attempt struct {
	tenant  id.ID
	login   string
	address netip.Addr
}

// Login logs an account in by its password.
func (s *Service) Login(ctx context.Context, in applicationapi.Login) (applicationapi.LoggedIn, error) {
	return call(s, "Login", func() (applicationapi.LoggedIn, error) {
		a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
		if err != nil {
			return applicationapi.LoggedIn{}, err
		}
		if a.Status != directoryapi.Enabled {
			return applicationapi.LoggedIn{}, apierr.NoSuchAccount
		}
		where, err := s.narrow(ctx, a, directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey})
		if err != nil {
			return applicationapi.LoggedIn{}, err
		}
		from := attempt{in.Tenant, field.LoginName(in.Login), caller.From(ctx).Address}
		if from.address.IsValid() && s.failures[from] >= maxFailures {
			return applicationapi.LoggedIn{}, apierr.TooMany.WithRetryAfter(time.Minute)
		}
		found, err := s.directories.Authenticate(ctx, directoryapi.Authenticate{
			Tenant: in.Tenant, Stores: where.stores, Login: in.Login, Password: in.Password,
		})
		if err != nil {
			s.failures[from]++
			return applicationapi.LoggedIn{}, err
		}
		delete(s.failures, from)
		return s.followLinks(ctx, a, found, where.organization)
	})
}

// CompleteLogin logs in an account that was authenticated without a password.
func (s *Service) CompleteLogin(ctx context.Context, in applicationapi.CompleteLogin) (applicationapi.LoggedIn, error) {
	return call(s, "CompleteLogin", func() (out applicationapi.LoggedIn, err error) {
		a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
		if err != nil {
			return out, err
		}
		request := applicationapi.CheckAccess{Tenant: in.Tenant, Application: in.Application, Account: in.Account}
		access, err := s.checkAccess(ctx, a, request)
		if err != nil {
			return out, err
		}
		where := loginStores{stores: s.expandOrganizations(a, a.stores)}
		if named := (directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}); named != (directoryapi.StoreName{}) {
			if where, err = s.narrow(ctx, a, named); err != nil {
				return out, err
			}
			if access, err = s.directories.CheckAccess(ctx, directoryapi.CheckAccess{Tenant: in.Tenant, Account: in.Account,
				Stores: where.stores}); err != nil {
				return out, err
			}
		}
		return s.followLinks(ctx, a, directoryapi.Authenticated{Account: access.Account}, where.organization)
	})
}

// followLinks returns the account that logs in for an account that was authenticated.
func (s *Service) followLinks(
	ctx context.Context, a *application, in directoryapi.Authenticated, organization id.ID,
) (applicationapi.LoggedIn, error) {
	out := applicationapi.LoggedIn{Account: in.Account, Organization: organization}
	if !a.followsLinks || in.Store == a.defaultStore || in.Account.DirectoryID == a.defaultStore.ID {
		return out, nil
	}
	to, err := s.directories.LinkedAccount(
		ctx, directoryapi.LinkedAccountRequest{Tenant: a.TenantID, Account: in.Account.ID, Store: a.defaultStore},
	)
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	out.Account = to.Account
	return out, nil
}

// loginStores are the account stores in which a login name is looked up, and the organization
// that the login names; zero: none.
type loginStores struct {
	stores       []directoryapi.Store
	organization id.ID
}

// narrow returns the account stores of an application that a login names.
func (s *Service) narrow(ctx context.Context, a *application, named directoryapi.StoreName) (loginStores, error) {
	if named == (directoryapi.StoreName{}) {
		if len(a.stores) == 0 {
			return loginStores{}, apierr.NoStores
		}
		return loginStores{stores: s.expandOrganizations(a, a.stores)}, nil
	}
	at, err := s.named(ctx, a.TenantID, named)
	if err != nil {
		return loginStores{}, err
	}
	if !slices.Contains(a.stores, at) {
		return loginStores{}, apierr.NotMapped
	}
	o, isOrganization := s.organizations[directoryapi.Ref{Tenant: a.TenantID, ID: at.ID}]
	switch {
	case !isOrganization:
		return loginStores{stores: []directoryapi.Store{at}}, nil
	case o.status != directoryapi.Enabled:
		return loginStores{}, apierr.OrganizationDisabled
	case len(o.stores) == 0:
		return loginStores{}, apierr.OrgNoStores
	}
	return loginStores{o.stores, at.ID}, nil
}

// named returns the account store with an href or a nameKey, or apierr.Reference.
func (s *Service) named(ctx context.Context, tenant id.ID, named directoryapi.StoreName) (directoryapi.Store, error) {
	if named.Href == "" {
		for at, o := range s.organizations {
			if at.Tenant == tenant && o.nameKey == named.NameKey {
				return directoryapi.Store{Kind: organizations, ID: at.ID}, nil
			}
		}
		return directoryapi.Store{}, apierr.Reference
	}
	ref, _ := s.base.Parse(named.Href)
	at := directoryapi.Ref{Tenant: tenant, ID: ref.ID}
	var err error
	switch ref.Kind {
	case directoryapi.Directories:
		_, err = s.directories.Directory(ctx, at)
	case directoryapi.Groups:
		_, err = s.directories.Group(ctx, at)
	default:
		if _, ok := s.organizations[at]; !ok || ref.Kind != organizations {
			err = apierr.NotFound
		}
	}
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference
	}
	return directoryapi.Store{Kind: ref.Kind, ID: ref.ID}, err
}

// expandOrganizations replaces organizations by their account stores.
func (s *Service) expandOrganizations(a *application, in []directoryapi.Store) (out []directoryapi.Store) {
	for _, store := range in {
		if o, ok := s.organizations[directoryapi.Ref{Tenant: a.TenantID, ID: store.ID}]; ok {
			out = append(out, o.stores...)
			continue
		}
		out = append(out, store)
	}
	return out
}

// CheckAccess returns an account that may act through an application.
func (s *Service) CheckAccess(ctx context.Context, in applicationapi.CheckAccess) (applicationapi.Access, error) {
	return call(s, "CheckAccess", func() (applicationapi.Access, error) {
		if in.WithDependencies && (in.Recent || !in.Brief) {
			panic("an answer that is to be kept must be brief, and must not come from a cache")
		}
		a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
		if err != nil {
			return applicationapi.Access{}, err
		}
		found, err := s.checkAccess(ctx, a, in)
		access := applicationapi.Access{Account: found.Account}
		if in.WithDependencies && found.Direct {
			access.DependsOn = []id.ID{in.Application, found.ID, found.DirectoryID}
			for _, store := range a.stores {
				if store.Kind == organizations {
					access.DependsOn = append(access.DependsOn, store.ID)
				}
			}
		}
		return access, err
	})
}

// AccessChanges returns what tests have changed.
func (s *Service) AccessChanges(_ context.Context, after changefeed.Position) (changefeed.Page, error) {
	return call(s, "AccessChanges", func() (changefeed.Page, error) { return s.Changes.After(after), nil })
}

func (s *Service) checkAccess(ctx context.Context, a *application, in applicationapi.CheckAccess) (directoryapi.Access, error) {
	request := directoryapi.CheckAccess{Tenant: in.Tenant, Account: in.Account, Stores: s.expandOrganizations(a, a.stores)}
	access, err := s.directories.CheckAccess(ctx, request)
	o := s.organizations[directoryapi.Ref{Tenant: in.Tenant, ID: in.Organization}]
	switch {
	case errors.Is(err, apierr.TokenAccountDisabled):
	case a.Status != directoryapi.Enabled:
		err = apierr.TokenApplicationDisabled
	case err != nil, in.Organization.IsZero():
	case o == nil, !slices.Contains(a.stores, directoryapi.Store{Kind: organizations, ID: in.Organization}):
		err = apierr.TokenAccountUnreachable
	case o.status != directoryapi.Enabled:
		err = apierr.TokenStoreDisabled
	default:
		request.Stores = o.stores
		access, err = s.directories.CheckAccess(ctx, request)
	}
	if err != nil {
		return directoryapi.Access{}, err
	}
	return access, nil
}

// Administrator returns an account if it is in an account store of the built-in application.
func (s *Service) Administrator(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	return call(s, "Administrator", func() (directoryapi.Account, error) {
		for _, a := range s.applications {
			if a.TenantID == in.Tenant && a.Builtin {
				request := directoryapi.CheckAccess{Tenant: in.Tenant, Account: in.ID, Stores: s.expandOrganizations(a, a.stores)}
				access, err := s.directories.CheckAccess(ctx, request)
				return access.Account, err
			}
		}
		return directoryapi.Account{}, apierr.NotFound
	})
}

// HasAccount reports whether an account is in an account store of an application.
func (s *Service) HasAccount(ctx context.Context, in applicationapi.HasAccountRequest) (applicationapi.HasAccountAnswer, error) {
	return call(s, "Reaches", func() (out applicationapi.HasAccountAnswer, err error) {
		a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
		if err != nil {
			return out, err
		}
		of, err := s.directories.StoresOf(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Account})
		if errors.Is(err, apierr.NotFound) {
			return out, nil
		}
		mapped := s.expandOrganizations(a, a.stores)
		out.Reached = slices.ContainsFunc(of.Stores, func(at directoryapi.Store) bool { return slices.Contains(mapped, at) })
		return out, err
	})
}

// ProviderLogin logs in the user of a token, or code, "user:…" of the fake directory service. Any
// other token is refused as by the provider.
func (s *Service) ProviderLogin(ctx context.Context, in applicationapi.ProviderLogin) (applicationapi.ProviderLoggedIn, error) {
	return call(s, "ProviderLogin", func() (out applicationapi.ProviderLoggedIn, err error) {
		a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
		if err != nil {
			return out, err
		}
		if a.Status != directoryapi.Enabled {
			return out, apierr.NoSuchAccount
		}
		where, err := s.narrow(ctx, a, directoryapi.StoreName{Href: in.Login.AccountStore, NameKey: in.Login.NameKey})
		if err != nil && !errors.Is(err, apierr.NoStores) {
			return out, err
		}
		at, ok := a.social[field.Fold(in.Login.Provider)]
		if !ok || !slices.Contains(where.stores, directoryapi.Store{Kind: directoryapi.Directories, ID: at}) {
			if !where.organization.IsZero() {
				return out, apierr.OrgDirectoryTypeUnmapped
			}
			return out, apierr.DirectoryTypeUnavailable
		}
		if !strings.HasPrefix(cmp.Or(in.Login.AccessToken, in.Login.Code).Reveal(), "user:") {
			return out, apierr.ProviderRefused
		}
		made, err := s.directories.SocialAccount(ctx, directoryapi.SocialAccount{Tenant: in.Tenant, Directory: at, Login: in.Login})
		out.Account, out.IsNew, out.Organization = made.Account, made.IsNew, where.organization
		return out, err
	})
}
