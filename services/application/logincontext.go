package application

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// LoginContext returns the names of an account's groups in the account stores of an application, and the organization
// that its login named.
func (s *Service) LoginContext(ctx context.Context,
	in applicationapi.AskLoginContext) (out applicationapi.LoginContext, err error) {
	order, err := s.store.LoginOrder(ctx, in.Tenant, in.Application)
	if err != nil {
		return out, err
	}
	profile, err := s.directories.Profile(ctx, directoryapi.ProfileRequest{
		Ref: id.Ref{Tenant: in.Tenant, ID: in.Account}, Groups: true,
	})
	if err != nil {
		return out, err
	}
	stores := order.Stores()
	isMapped := func(kind string, store id.ID) bool {
		return slices.ContainsFunc(stores, func(s directoryapi.Store) bool { return s.Kind == kind && s.ID == store })
	}
	out.Groups = []string{}
	for _, g := range profile.Groups {
		if g.Status == directoryapi.Enabled &&
			(isMapped(directoryapi.Directories, g.DirectoryID) || isMapped(directoryapi.Groups, g.ID)) {
			out.Groups = append(out.Groups, g.Name)
		}
	}
	if in.Organization.IsZero() {
		return out, nil
	}
	organization, err := s.Organization(ctx, id.Ref{Tenant: in.Tenant, ID: in.Organization})
	if errors.Is(err, apierr.NotFound) {
		return out, nil
	}
	out.Organization = &applicationapi.LoginOrganization{ID: organization.ID, NameKey: organization.NameKey,
		Name: organization.Name}
	return out, err
}
