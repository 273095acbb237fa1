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

// storeKinds are the kinds of account store, as they stand in an href.
var storeKinds = []string{directoryapi.Directories, directoryapi.Groups, organizations.name()}

// accountStore is what a mapping leads to.
type accountStore struct {
	directoryapi.Store
	directory directoryapi.Directory // that the store is or is in; none of an organization
	enabled   bool                   // the store, and the directory that it is in
}

func (a accountStore) isGroup() bool { return a.Kind == directoryapi.Groups }

func (a accountStore) isMirror() bool { return !a.directory.ID.IsZero() && a.directory.Mirror() }

// socialProvider is that of a directory whose accounts log in elsewhere on the
// web, or nil. There may be many directories of the other kinds.
func (a accountStore) socialProvider() *string {
	if a.Kind != directoryapi.Directories || !directoryapi.IsSocial(a.directory.ProviderID) {
		return nil
	}
	provider := field.Fold(a.directory.ProviderID)
	return &provider
}

// group is the group that the store is, or the zero id.
func (a accountStore) group() id.ID {
	if a.isGroup() {
		return a.ID
	}
	return id.ID{}
}

// accountStore finds what a mapping leads to, or returns apierr.NotFound.
func (s *Service) accountStore(ctx context.Context, tenant id.ID, at directoryapi.Store) (accountStore, error) {
	found := accountStore{Store: at}
	directory := at.ID
	switch at.Kind {
	case organizations.name():
		o, err := s.store.Organization(ctx, tenant, at.ID)
		found.enabled = o.Status == directoryapi.Enabled
		return found, err
	case directoryapi.Groups:
		g, err := s.directories.Group(ctx, directoryapi.Ref{Tenant: tenant, ID: at.ID})
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

// defaultStoreOf returns where the accounts or groups that are made through an owner
// go. One that is an organization leads on to that of the organization.
func (s *Service) defaultStoreOf(ctx context.Context, of id.Ref, kind defaultStore) (accountStore, error) {
	m, err := s.store.DefaultMapping(ctx, of, kind.flag)
	if errors.Is(err, apierr.NotFound) {
		return accountStore{}, kind.none.Because("no default store of that kind is chosen")
	}
	if err != nil {
		return accountStore{}, err
	}
	at, err := s.accountStore(ctx, of.Tenant, m.Store())
	switch {
	case errors.Is(err, apierr.NotFound):
		return at, kind.gone()
	case err != nil:
		return at, err
	case !at.enabled:
		return at, kind.disabled.Because("the default store %q is disabled", s.base.To(at.Kind, at.ID))
	case at.Kind == organizations.name():
		return s.defaultStoreOf(ctx, id.Ref{Tenant: of.Tenant, ID: at.ID}, *kind.within)
	}
	return at, nil
}

// gone is the refusal of a default store that is not there any more.
func (d defaultStore) gone() error { return d.none.Because("the default store was deleted") }

// wantLink refuses a required link that is absent.
func wantLink(in field.Link, name string) error {
	if !in.Given() {
		return apierr.Required.Because("%s is required; it cannot be null", name)
	}
	return nil
}

// wantAddress refuses a link whose href is no absolute address
// (docs/interface/applications.md#account-store-mappings).
func wantAddress(in field.Link, name string) error {
	if u, err := url.Parse(in.Value.Href); err != nil || !u.IsAbs() || u.Host == "" {
		return apierr.Invalid.Because("%s: %q is not an absolute address", name, in.Value.Href)
	}
	return nil
}

// reference reads a link to a resource of one of the kinds.
func (s *Service) reference(in field.Link, name string, kinds ...string) (href.Ref, error) {
	ref, ok := s.base.Parse(in.Value.Href)
	if !ok || !slices.Contains(kinds, ref.Kind) {
		return ref, apierr.Reference.Because("%s must be an href of the form %s/%s/{id}, as answers have it; it is %q", name, s.base,
			field.Or(kinds), in.Value.Href)
	}
	return ref, nil
}
