package application

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// SocialDirectory returns the directory through which the accounts of a social
// provider log in: the first in the order of login.
func (s *Service) SocialDirectory(ctx context.Context, in applicationapi.SocialDirectory) (directoryapi.Ref, error) {
	where := directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}
	reach, err := s.searched(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}, where)
	if err != nil && !errors.Is(err, apierr.NoStores) {
		return directoryapi.Ref{}, err
	}
	provider := field.Fold(in.Provider)
	at := slices.IndexFunc(reach.Mapped, func(p store.MappedStore) bool { return provider != "" && p.SocialProvider == provider })
	if at < 0 {
		if !reach.Named.IsZero() {
			return directoryapi.Ref{}, apierr.OrgDirectoryTypeUnmapped.Because(
				"no directory of the provider %q is mapped to the organization", in.Provider,
			)
		}
		return directoryapi.Ref{}, apierr.DirectoryTypeUnavailable.Because(
			"no directory of the provider %q is mapped to the application", in.Provider,
		)
	}
	return directoryapi.Ref{Tenant: in.Tenant, ID: reach.Mapped[at].StoreID}, nil
}

// newSocialAccount asks the directory of a social provider for the account of the
// user who logged in there.
func (s *Service) newSocialAccount(
	ctx context.Context, application directoryapi.Ref, in directoryapi.CreateAccount,
) (directoryapi.Account, error) {
	at, err := s.SocialDirectory(ctx, applicationapi.SocialDirectory{
		Tenant: application.Tenant, Application: application.ID, Provider: in.Social.Provider,
		AccountStore: href.Link{Href: in.Social.AccountStore}, NameKey: in.Social.NameKey,
	})
	if err != nil {
		return directoryapi.Account{}, err
	}
	in.Tenant, in.ID, in.Directory = at.Tenant, id.New(s.now()), at.ID
	account, err := s.directories.CreateAccount(ctx, in)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("the directory of the provider %q was deleted", in.Social.Provider)
	}
	return account, err
}
