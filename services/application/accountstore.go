package application

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
)

// storeKinds are the kinds of account stores, as they stand in an href.
var storeKinds = []string{directoryapi.Directories, directoryapi.Groups, organizationOwner.hrefKind()}

// accountStore is the account store of a mapping: a directory, a group or an organization.
type accountStore struct {
	directoryapi.Store
	directory directoryapi.Directory // the directory, or that of the group; zero for an organization
	enabled   bool                   // the store and, of a group, its directory are enabled
}

func (a accountStore) isGroup() bool { return a.Kind == directoryapi.Groups }

func (a accountStore) isMirror() bool { return !a.directory.ID.IsZero() && a.directory.Mirror() }

// socialProvider returns the social provider of a directory, such as google, or nil for any
// other store. An owner may have one directory of each social provider, and any number of
// other directories.
func (a accountStore) socialProvider() *string {
	if a.Kind != directoryapi.Directories || !directoryapi.IsSocial(a.directory.ProviderID) {
		return nil
	}
	provider := field.Fold(a.directory.ProviderID)
	return &provider
}

// group returns the id of a group, or the zero id for any other store.
func (a accountStore) group() id.ID {
	if a.isGroup() {
		return a.ID
	}
	return id.ID{}
}

// findAccountStore reads an account store, or returns apierr.NotFound.
func (s *Service) findAccountStore(ctx context.Context, tenant id.ID, ref directoryapi.Store) (accountStore, error) {
	found := accountStore{Store: ref}
	directory := ref.ID
	switch ref.Kind {
	case organizationOwner.hrefKind():
		o, err := s.store.Organization(ctx, tenant, ref.ID)
		found.enabled = o.Status == directoryapi.Enabled
		return found, err
	case directoryapi.Groups:
		g, err := s.directories.Group(ctx, directoryapi.Ref{Tenant: tenant, ID: ref.ID})
		if err != nil {
			return found, err
		}
		found.enabled, directory = g.Status == directoryapi.Enabled, g.DirectoryID
	default:
		found.enabled = true
	}
	var err error
	found.directory, err = s.directories.Directory(ctx, directoryapi.Ref{Tenant: tenant, ID: directory})
	found.enabled = found.enabled && found.directory.Status == directoryapi.Enabled
	return found, err
}

// findDefaultStore returns the default account store, or default group store, of an owner:
// the store in which accounts or groups are created through the owner. Where the default store
// of an application is an organization, it is the default store of that organization.
func (s *Service) findDefaultStore(ctx context.Context, owner id.Ref, rule defaultStoreRule) (accountStore, error) {
	m, err := s.store.DefaultMapping(ctx, owner, rule.flag)
	if errors.Is(err, apierr.NotFound) {
		return accountStore{}, rule.noneError.Because("no default store of that kind is chosen")
	}
	if err != nil {
		return accountStore{}, err
	}
	found, err := s.findAccountStore(ctx, owner.Tenant, m.Store())
	switch {
	case errors.Is(err, apierr.NotFound):
		return found, rule.deletedError()
	case err != nil:
		return found, err
	case !found.enabled:
		return found, rule.disabledError.Because("the default store %q is disabled", s.base.To(found.Kind, found.ID))
	case found.Kind == organizationOwner.hrefKind():
		return s.findDefaultStore(ctx, id.Ref{Tenant: owner.Tenant, ID: found.ID}, *rule.organizationRule)
	}
	return found, nil
}

// deletedError returns the error of a default store that was deleted.
func (d defaultStoreRule) deletedError() error {
	return d.noneError.Because("the default store was deleted")
}

// requireLink returns apierr.Required for a link that is absent or null.
func requireLink(in field.Link, name string) error {
	if !in.Given() {
		return apierr.Required.Because("%s is required; it cannot be null", name)
	}
	return nil
}

// requireAbsoluteURL returns apierr.Invalid for a link whose href is not an absolute URL
// (docs/interface/applications.md#account-store-mappings).
func requireAbsoluteURL(in field.Link, name string) error {
	if u, err := url.Parse(in.Value.Href); err != nil || !u.IsAbs() || u.Host == "" {
		return apierr.Invalid.Because("%s: %q is not an absolute address", name, in.Value.Href)
	}
	return nil
}

// ParseReference parses the href of a link, which must lead to a resource of one of the
// kinds; otherwise it returns apierr.Reference. It does not check that the resource exists.
func (s *Service) ParseReference(in field.Link, name string, kinds ...string) (href.Ref, error) {
	ref, ok := s.base.Parse(in.Value.Href)
	if !ok || !slices.Contains(kinds, ref.Kind) {
		return ref, apierr.Reference.Because("%s must be an href of the form %s/%s/{id}, as answers have it; it is %q",
			name, s.base, field.Or(kinds), in.Value.Href)
	}
	return ref, nil
}
