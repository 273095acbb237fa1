package applicationfake

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// ApplicationByDNSLabel returns the application whose Client API has the label.
func (s *Service) ApplicationByDNSLabel(_ context.Context, in applicationapi.DNSLabel) (applicationapi.Application, error) {
	return call(s, "ApplicationByDNSLabel", func() (applicationapi.Application, error) {
		for _, a := range s.applications {
			if a.DNSLabel != "" && a.DNSLabel == strings.ToLower(in.Label) {
				return a.Application, nil
			}
		}
		return applicationapi.Application{}, apierr.NotFound
	})
}

// findStores returns the application of a Where, and the account stores that the Where names.
func (s *Service) findStores(ctx context.Context, in applicationapi.LoginTarget) (*application, loginStores, error) {
	a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	if err != nil {
		return nil, loginStores{}, err
	}
	where, err := s.narrow(ctx, a, directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey})
	return a, where, err
}

// LoginDirectories returns the directories in which a login name is looked up. Organizations have no
// default account store.
func (s *Service) LoginDirectories(ctx context.Context, in applicationapi.LoginTarget) (applicationapi.LoginDirectories, error) {
	return call(s, "LoginStores", func() (out applicationapi.LoginDirectories, err error) {
		a, where, err := s.findStores(ctx, in)
		if a != nil {
			out.Status = a.Status
			out.HasOrganizations = slices.ContainsFunc(a.stores, func(at directoryapi.Store) bool { return at.Kind == organizations })
		}
		if out.Status == directoryapi.Disabled || errors.Is(err, apierr.NoStores) || errors.Is(err, apierr.OrgNoStores) {
			return out, nil
		}
		if err != nil {
			return applicationapi.LoginDirectories{}, err
		}
		out.Organization = where.organization
		if o, ok := s.organizations[directoryapi.Ref{Tenant: in.Tenant, ID: where.organization}]; ok {
			out.NameKey = o.nameKey
		} else if !in.Brief {
			out.Default = a.defaultStore.ID
		}
		if in.DirectOnly && where.organization.IsZero() {
			where.stores = a.stores
		}
		for _, at := range where.stores {
			if at.Kind == directoryapi.Directories && !slices.Contains(out.Directories, at.ID) {
				out.Directories = append(out.Directories, at.ID)
			}
		}
		return out, nil
	})
}

// Register creates an account in the default account store, or in the directory that is named.
func (s *Service) Register(ctx context.Context, in applicationapi.Register) (directoryapi.Account, error) {
	return call(s, "Register", func() (directoryapi.Account, error) {
		a, where, err := s.findStores(ctx, in.LoginTarget)
		if err != nil {
			return directoryapi.Account{}, err
		}
		to := a.defaultStore
		if in.AccountStore.Href != "" {
			to = where.stores[0]
		}
		if to.ID.IsZero() {
			return directoryapi.Account{}, apierr.NoAccountStore
		}
		in.Account.Status, in.Account.EmailVerificationStatus = field.Text{}, field.Text{}
		return s.directories.CreateAccount(ctx, directoryapi.CreateAccount{
			Tenant: in.Tenant, ID: id.New(s.now()), Directory: to.ID, Application: in.Application, Account: in.Account, Workflow: true,
		})
	})
}

// RequestVerification requests another verification mail.
func (s *Service) RequestVerification(ctx context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	return call(s, "RequestVerification", func() (directoryapi.Empty, error) {
		_, where, err := s.findStores(ctx, in.LoginTarget)
		if err != nil {
			return directoryapi.Empty{}, err
		}
		_, err = s.directories.RequestVerification(ctx, directoryapi.RequestVerification{
			Tenant: in.Tenant, Application: in.Application, Stores: where.stores, Login: in.Login, Anonymous: true,
		})
		return directoryapi.Empty{}, err
	})
}

// LoginAccount returns the account of a login name.
func (s *Service) LoginAccount(ctx context.Context, in applicationapi.LoginName) (directoryapi.Account, error) {
	return call(s, "LoginAccount", func() (directoryapi.Account, error) {
		_, where, err := s.findStores(ctx, in.LoginTarget)
		if err != nil {
			return directoryapi.Account{}, err
		}
		explained, err := s.directories.ExplainLogin(ctx, directoryapi.ExplainLogin{Tenant: in.Tenant, Stores: where.stores, Login: in.Login})
		if err == nil && explained.Found == nil {
			err = apierr.NotFound
		}
		if err != nil {
			return directoryapi.Account{}, err
		}
		return explained.Found.Account, nil
	})
}

// RequestReset requests a password reset mail.
func (s *Service) RequestReset(ctx context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	return call(s, "RequestReset", func() (directoryapi.Empty, error) {
		_, where, err := s.findStores(ctx, in.LoginTarget)
		if err == nil {
			_, err = s.directories.RequestReset(ctx, directoryapi.RequestReset{
				Tenant: in.Tenant, Application: in.Application, Stores: where.stores, Login: in.Login, Anonymous: true,
			})
		}
		return directoryapi.Empty{}, err
	})
}

// CheckReset returns the password reset of a token.
func (s *Service) CheckReset(ctx context.Context, in applicationapi.ResetToken) (directoryapi.PasswordReset, error) {
	return call(s, "CheckReset", func() (directoryapi.PasswordReset, error) { return s.reset(ctx, in) })
}

func (s *Service) reset(ctx context.Context, in applicationapi.ResetToken) (directoryapi.PasswordReset, error) {
	a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
	if err == nil && a.Status != directoryapi.Enabled {
		err = apierr.NotFound
	}
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	return s.directories.Reset(ctx, directoryapi.ResetToken{Tenant: in.Tenant, Token: in.Token})
}

// ResetPassword sets a new password.
func (s *Service) ResetPassword(ctx context.Context, in applicationapi.ResetPassword) (directoryapi.PasswordReset, error) {
	return call(s, "ResetPassword", func() (directoryapi.PasswordReset, error) {
		if _, err := s.reset(ctx, in.ResetToken); err != nil {
			return directoryapi.PasswordReset{}, err
		}
		return s.directories.ResetPassword(ctx, directoryapi.ResetPassword{
			ResetToken: directoryapi.ResetToken{Tenant: in.Tenant, Token: in.Token}, Password: field.Some(in.Password.Reveal()),
		})
	})
}

// AccountApplications returns the applications that have an account in their account stores.
func (s *Service) AccountApplications(ctx context.Context, in directoryapi.Ref) (applicationapi.Applications, error) {
	return call(s, "AccountApplications", func() (out applicationapi.Applications, err error) {
		of, err := s.directories.StoresOf(ctx, in)
		if err != nil {
			return out, err
		}
		for _, a := range s.applications {
			mapped := s.expandOrganizations(a, a.stores)
			isMapped := func(store directoryapi.Store) bool { return slices.Contains(mapped, store) }
			if a.TenantID == in.Tenant && slices.ContainsFunc(of.Stores, isMapped) {
				out.Items = append(out.Items, a.Application)
			}
		}
		return out, nil
	})
}

// Homes returns the enabled applications of a tenant that have a HomeURL, the oldest first.
func (s *Service) Homes(_ context.Context, in applicationapi.Homes) (applicationapi.Applications, error) {
	return call(s, "Homes", func() (out applicationapi.Applications, err error) {
		for _, a := range s.applications {
			if a.TenantID == in.Tenant && a.Status == directoryapi.Enabled && !a.Builtin && a.HomeURL != nil {
				out.Items = append(out.Items, a.Application)
			}
		}
		slices.SortFunc(out.Items, func(a, b applicationapi.Application) int { return strings.Compare(a.ID.String(), b.ID.String()) })
		out.Items = out.Items[:min(len(out.Items), applicationapi.MaxHomes)]
		return out, nil
	})
}
