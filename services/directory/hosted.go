package directory

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// The methods below are called by the hosted login and the Client API: what a login page and a
// registration page show of directories, and the profile of a user (userinfo, also of SAML
// responses).

// LoginDirectories returns what a hosted login page shows of directories and their providers.
func (s *Service) LoginDirectories(ctx context.Context,
	in directoryapi.LoginDirectories) (out directoryapi.LoginDirectoryList, err error) {
	providers, err := s.store.LoginProviders(ctx, in.Tenant, in.Directories)
	for _, p := range providers {
		out.Items = append(out.Items, directoryapi.LoginDirectory{
			ID: p.ID, Name: p.Name, Status: p.Status, ProviderID: p.ProviderID, ProviderType: p.ProviderType,
			ClientID: p.Settings.ClientID, Scope: p.Settings.Scope, HD: p.Settings.HD, Display: p.Settings.Display,
			AccessType: p.Settings.AccessType,
		})
	}
	return out, err
}

// RegistrationRules returns what a registration page has to know of a directory: the strength of
// passwords, required names, and mails.
func (s *Service) RegistrationRules(ctx context.Context,
	directory directoryapi.Ref) (out directoryapi.RegistrationRules, err error) {
	d, err := s.store.Directory(ctx, directory.Tenant, directory.ID)
	if err != nil {
		return out, err
	}
	policy, err := s.store.PasswordPolicy(ctx, directory.Tenant, directory.ID)
	if err != nil {
		return out, err
	}
	registration, err := s.store.RegistrationPolicy(ctx, directory.Tenant, directory.ID)
	if err != nil {
		return out, err
	}
	out.GivenNameRequired, out.SurnameRequired = registration.GivenNameRequired, registration.SurnameRequired
	out.Directory, out.MinLength, out.MaxLength = d.Name, policy.MinLength, policy.MaxLength
	out.MinLowerCase, out.MinUpperCase, out.MinNumeric = policy.MinLowerCase, policy.MinUpperCase, policy.MinNumeric
	out.MinSymbol, out.MinDiacritic = policy.MinSymbol, policy.MinDiacritic
	out.VerificationEmail = registration.VerificationEmailStatus == directoryapi.Enabled && !d.Mirror()
	out.ResetEmail = policy.ResetEmailStatus == directoryapi.Enabled
	out.Builtin, out.Mirror = d.Builtin, d.Mirror()
	return out, nil
}

// Profile returns an account with those of its directory, tenant, groups, memberships, custom data
// and provider data that the request asks for (userinfo).
func (s *Service) Profile(ctx context.Context, in directoryapi.ProfileRequest) (out directoryapi.Profile, err error) {
	if out.Account, err = s.Account(ctx, in.Ref); err != nil {
		return out, err
	}
	out.Account.VerificationSealed, out.Account.VerificationToken = nil, ""
	if in.Directory {
		d, err := s.store.Directory(ctx, in.Tenant, out.Account.DirectoryID)
		if err != nil {
			return out, err
		}
		out.Directory = &d
	}
	if in.OfTenant {
		tenant, err := s.store.Tenant(ctx, in.Tenant)
		if err != nil {
			return out, err
		}
		out.Tenant = &tenant
	}
	if in.Groups {
		if out.Groups, err = allPages(func(q list.Query) (list.Page[directoryapi.Group], error) {
			return s.store.AccountGroups(ctx, in.Ref, q)
		}); err != nil {
			return out, err
		}
	}
	if in.Memberships {
		memberships, err := allPages(func(q list.Query) (list.Page[store.Membership], error) {
			return s.store.AccountMemberships(ctx, in.Ref, q)
		})
		if err != nil {
			return out, err
		}
		for _, m := range memberships {
			out.Memberships = append(out.Memberships,
				directoryapi.ProfileMembership{ID: m.ID, CreatedAt: m.CreatedAt, ModifiedAt: m.CreatedAt})
		}
	}
	if in.CustomData {
		resource, err := s.CustomData().Accounts.Read(ctx, in.Ref)
		if err != nil {
			return out, err
		}
		if out.CustomData, err = json.Marshal(resource.Document); err != nil {
			return out, err
		}
	}
	if in.ProviderData {
		data, err := s.store.ProviderData(ctx, in.Tenant, in.ID)
		if err != nil {
			return out, err
		}
		providerID, err := json.Marshal(data.ProviderID)
		if err != nil {
			return out, err
		}
		members := map[string]json.RawMessage{"providerId": providerID}
		maps.Copy(members, data.Claims)
		if out.ProviderData, err = json.Marshal(members); err != nil {
			return out, err
		}
	}
	return out, nil
}

// allPages reads all pages of a collection.
func allPages[T any](page func(list.Query) (list.Page[T], error)) (all []T, err error) {
	for {
		next, err := page(list.Query{Offset: len(all), Limit: list.MaxLimit})
		if err != nil {
			return nil, err
		}
		all = append(all, next.Items...)
		if len(next.Items) == 0 || len(all) >= next.Size {
			return all, nil
		}
	}
}
