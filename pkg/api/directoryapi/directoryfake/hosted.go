package directoryfake

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// signUp is a pending sign-up or invitation.
type signUp struct {
	directoryapi.PendingSignUp
	password secure.Secret
}

// LoginDirectories returns directories as a login page shows them.
func (d *Service) LoginDirectories(_ context.Context, in directoryapi.LoginDirectories) (directoryapi.LoginDirectoryList, error) {
	return call(d, "LoginDirectories", func() (out directoryapi.LoginDirectoryList, err error) {
		for _, v := range in.Directories {
			if found, ok := d.directories[directoryapi.Ref{Tenant: in.Tenant, ID: v}]; ok {
				out.Items = append(out.Items, directoryapi.LoginDirectory{
					ID: found.ID, Name: found.Name, Status: found.Status, ProviderID: found.ProviderID,
				})
			}
		}
		return out, nil
	})
}

// RegistrationRules returns the rules of a new directory, or those that SetRules has set.
func (d *Service) RegistrationRules(_ context.Context, in directoryapi.Ref) (directoryapi.RegistrationRules, error) {
	return call(d, "RegistrationRules", func() (directoryapi.RegistrationRules, error) {
		directory, err := d.directory(in)
		if err != nil {
			return directoryapi.RegistrationRules{}, err
		}
		rules, ok := d.rules[in]
		if !ok {
			rules = directoryapi.RegistrationRules{MinLength: 8, MaxLength: 100, MinLowerCase: 1, MinUpperCase: 1, MinNumeric: 1, ResetEmail: true}
		}
		rules.Directory, rules.Builtin, rules.Mirror = directory.Name, directory.Builtin, directory.Mirror()
		rules.VerificationEmail = d.verifying[in]
		return rules, nil
	})
}

// SetRules sets what RegistrationRules returns of the passwords of a directory.
func (d *Service) SetRules(at directoryapi.Ref, rules directoryapi.RegistrationRules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules[at] = rules
}

// RequestSignUp makes the token of a sign-up's mail.
func (d *Service) RequestSignUp(_ context.Context, in directoryapi.RequestSignUp) (directoryapi.Empty, error) {
	return call(d, "RequestSignUp", func() (directoryapi.Empty, error) {
		email, err := field.Required(in.Owner.Email, "email", 255)
		if err != nil {
			return directoryapi.Empty{}, err
		}
		password, err := validatePassword(in.Owner.Password)
		if err == nil {
			pending := directoryapi.PendingSignUp{Tenant: in.Tenant, Account: in.Account, Email: email}
			d.signUps[secure.Token(43)] = signUp{pending, password}
		}
		return directoryapi.Empty{}, err
	})
}

// Invite makes the token of an invitation to a tenant.
func (d *Service) Invite(tenant id.ID, email string) secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := secure.Token(43)
	d.signUps[token] = signUp{PendingSignUp: directoryapi.PendingSignUp{
		Tenant: tenant, Account: id.New(d.now()), Email: email, Invitation: true,
	}}
	return token
}

// SignUpTokens returns the tokens of pending sign-ups and invitations, by email.
func (d *Service) SignUpTokens() map[string]secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	tokens := map[string]secure.Secret{}
	for token, pending := range d.signUps {
		tokens[pending.Email] = token
	}
	return tokens
}

// pendingSignUpOf returns the pending sign-up of the tenant with this owner.
func (d *Service) pendingSignUpOf(tenant, owner id.ID) (signUp, bool) {
	for _, pending := range d.signUps {
		if pending.Tenant == tenant && pending.Account == owner && !pending.Invitation {
			return pending, true
		}
	}
	return signUp{}, false
}

// PendingSignUp returns the sign-up or invitation of a mailed token.
func (d *Service) PendingSignUp(_ context.Context, in directoryapi.SignUpToken) (directoryapi.PendingSignUp, error) {
	return call(d, "PendingSignUp", func() (directoryapi.PendingSignUp, error) {
		pending, ok := d.signUps[in.Token]
		if !ok {
			return directoryapi.PendingSignUp{}, apierr.NotFound
		}
		return pending.PendingSignUp, nil
	})
}

// EndSignUp consumes a mailed token.
func (d *Service) EndSignUp(_ context.Context, in directoryapi.SignUpToken) (directoryapi.Empty, error) {
	return call(d, "EndSignUp", func() (directoryapi.Empty, error) {
		if _, ok := d.signUps[in.Token]; !ok {
			return directoryapi.Empty{}, apierr.NotFound
		}
		delete(d.signUps, in.Token)
		return directoryapi.Empty{}, nil
	})
}

// AcceptInvitation creates the account of an invited administrator.
func (d *Service) AcceptInvitation(ctx context.Context, in directoryapi.AcceptInvitation) (directoryapi.Account, error) {
	pending, err := d.PendingSignUp(ctx, directoryapi.SignUpToken{Token: in.Token})
	switch {
	case err != nil:
		return directoryapi.Account{}, err
	case !pending.Invitation:
		return directoryapi.Account{}, apierr.NotFound
	case !field.SameMailbox(pending.Email, in.Account.Email.Or("")):
		return directoryapi.Account{}, apierr.OtherInvitee
	}
	owner, err := d.Owner(ctx, directoryapi.Ref{Tenant: pending.Tenant, ID: pending.Tenant})
	if err != nil {
		return directoryapi.Account{}, err
	}
	in.Account.EmailVerificationStatus = field.Some(directoryapi.Verified)
	made, err := d.CreateAccount(ctx, directoryapi.CreateAccount{
		Tenant: pending.Tenant, ID: pending.Account, Directory: owner.DirectoryID, Account: in.Account,
	})
	if err == nil {
		_, err = d.EndSignUp(ctx, directoryapi.SignUpToken{Token: in.Token})
	}
	return made, err
}

// Tenants returns the tenants that SignUp has created.
func (d *Service) Tenants() (list []directoryapi.SignedUp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tenant := range d.tenants {
		made := directoryapi.SignedUp{Tenant: tenant}
		for _, a := range d.accounts {
			if a.Owner && a.TenantID == tenant.ID {
				made.Owner, made.Directory = a.Account, d.directoryOf(a)
			}
		}
		list = append(list, made)
	}
	return list
}
