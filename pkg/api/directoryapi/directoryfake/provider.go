package directoryfake

import (
	"cmp"
	"context"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// ProviderAccount returns the account of a user of a provider, or creates it.
func (d *Service) ProviderAccount(_ context.Context, in directoryapi.ProviderUser) (directoryapi.ProviderAccountResult, error) {
	return call(d, "ProviderAccount", func() (directoryapi.ProviderAccountResult, error) {
		directory, err := d.directory(directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory})
		switch {
		case err != nil:
			return directoryapi.ProviderAccountResult{}, err
		case !directory.Mirror():
			return directoryapi.ProviderAccountResult{}, apierr.Reference
		case directory.Status != directoryapi.Enabled:
			return directoryapi.ProviderAccountResult{}, apierr.DirectoryDisabled
		case in.Email == "":
			return directoryapi.ProviderAccountResult{}, apierr.ProviderIncomplete
		}
		a, isNew, err := d.findOrCreateUser(in)
		if err != nil {
			return directoryapi.ProviderAccountResult{}, err
		}
		a.externalID = cmp.Or(in.ExternalID, field.Fold(in.Email))
		a.Email, a.Username = in.Email, cmp.Or(in.Username, in.Email)
		a.GivenName, a.MiddleName, a.Surname = statedOrBefore(in.GivenName, a.GivenName), statedOrBefore(in.MiddleName, a.MiddleName),
			statedOrBefore(in.Surname, a.Surname)
		switch {
		case in.EmailVerified:
			a.EmailVerificationStatus, a.EmailAssumed = directoryapi.Verified, false
		case isNew && in.EmailUnstated:
			a.EmailVerificationStatus, a.EmailAssumed = directoryapi.Verified, true
		}
		return directoryapi.ProviderAccountResult{Account: a.Account, IsNew: isNew}, nil
	})
}

func statedOrBefore(value string, before *string) *string {
	if value == "" {
		return before
	}
	return &value
}

// findOrCreateUser finds the account by the provider's id or by a verified email, or creates it.
func (d *Service) findOrCreateUser(in directoryapi.ProviderUser) (a *account, isNew bool, err error) {
	for _, other := range d.accounts {
		if other.TenantID == in.Tenant && other.DirectoryID == in.Directory && other.externalID == cmp.Or(in.ExternalID, field.Fold(in.Email)) {
			switch {
			case other.ID == in.Account:
				return other, true, nil
			case other.Status == directoryapi.Disabled:
				return nil, false, apierr.AccountDisabled
			}
			return other, false, nil
		}
	}
	for _, other := range d.accounts {
		if other.TenantID == in.Tenant && other.DirectoryID == in.Directory && hasLoginName(other, in.Email) {
			if !in.EmailVerified || !hasVerifiedEmail(other) || !field.SameMailbox(other.Email, in.Email) {
				return nil, false, apierr.Exists
			}
			return other, false, nil
		}
	}
	now := d.now()
	a = &account{Account: directoryapi.Account{
		TenantID: in.Tenant, ID: in.Account, DirectoryID: in.Directory, Status: directoryapi.Enabled,
		EmailVerificationStatus: directoryapi.Unverified, CreatedAt: now, ModifiedAt: now,
	}}
	if a.ID.IsZero() {
		a.ID = id.New(now)
	}
	if in.CustomData.Given() {
		a.data = in.CustomData.Value.Append(nil)
	}
	d.accounts = append(d.accounts, a)
	return a, true, nil
}

// UserToken is an access token or code of a user, of any provider.
func UserToken(externalID, email string) secure.Secret {
	return secure.Secret("user:" + externalID + ":" + email)
}

// SocialAccount returns the account of a UserToken; other tokens are refused as a provider would.
func (d *Service) SocialAccount(ctx context.Context, in directoryapi.SocialAccount) (directoryapi.ProviderAccountResult, error) {
	directory, err := d.Directory(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory})
	if err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	if !directory.Mirror() || field.Fold(directory.ProviderID) != in.Login.Provider {
		return directoryapi.ProviderAccountResult{}, apierr.Reference
	}
	parts := strings.SplitN(cmp.Or(in.Login.AccessToken, in.Login.Code).Reveal(), ":", 3)
	if len(parts) != 3 || parts[0] != "user" {
		return directoryapi.ProviderAccountResult{}, apierr.ProviderRefused
	}
	return d.ProviderAccount(ctx, directoryapi.ProviderUser{
		Tenant: in.Tenant, Directory: in.Directory, Application: in.Application, Account: in.Account,
		ExternalID: parts[1], Email: parts[2], EmailVerified: true, CustomData: in.Login.CustomData,
	})
}

// BeginSocialLogin returns a URL at which no provider answers.
func (d *Service) BeginSocialLogin(ctx context.Context, in directoryapi.BeginSocialLogin) (directoryapi.SocialLoginBegun, error) {
	directory, err := d.Directory(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory})
	if err != nil {
		return directoryapi.SocialLoginBegun{}, err
	}
	return directoryapi.SocialLoginBegun{URL: "https://" + directory.ProviderID + ".test/authorize?state=" + in.State.Reveal()}, nil
}
