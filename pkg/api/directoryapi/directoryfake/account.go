package directoryfake

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/pkg/secure"
)

// findAccount returns an account of the tenant, or nil.
func (d *Service) findAccount(tenant, v id.ID) *account {
	for _, a := range d.accounts {
		if a.TenantID == tenant && a.ID == v {
			return a
		}
	}
	return nil
}

// CreateAccount creates an account.
func (d *Service) CreateAccount(_ context.Context, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	return call(d, "CreateAccount", func() (directoryapi.Account, error) {
		if own := d.findAccount(in.Tenant, in.ID); own != nil {
			return own.Account, nil
		}
		at := directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory}
		directory, err := d.directory(at)
		if err != nil {
			return directoryapi.Account{}, err
		}
		if directory.Mirror() {
			return directoryapi.Account{}, apierr.MirrorReadOnly
		}
		if directory.Status != directoryapi.Enabled && !in.Application.IsZero() {
			return directoryapi.Account{}, apierr.AccountStoreDisabled
		}
		a, err := d.validate(in)
		if err != nil {
			return a.Account, err
		}
		if in.Workflow && d.verifying[at] && a.Status == directoryapi.Enabled {
			a.Status, a.VerificationToken, a.verificationApplication = directoryapi.Unverified, secure.Token(22), in.Application
		}
		if !in.Group.IsZero() {
			g, err := d.group(directoryapi.Ref{Tenant: in.Tenant, ID: in.Group})
			if err != nil {
				return a.Account, err
			}
			if g.DirectoryID != in.Directory {
				return a.Account, apierr.Reference
			}
			a.groups = []id.ID{in.Group}
		}
		for _, other := range d.accounts {
			if other.DirectoryID == a.DirectoryID && (hasLoginName(other, a.Email) || hasLoginName(other, a.Username)) {
				return a.Account, apierr.Exists
			}
		}
		d.accounts = append(d.accounts, &a)
		return a.Account, nil
	})
}

// hasLoginName reports whether a login name (user name or email) is that of the account.
func hasLoginName(a *account, name string) bool {
	return field.LoginName(name) == field.LoginName(a.Email) || field.LoginName(name) == field.LoginName(a.Username)
}

// validate validates a new account as far as the contract's suite requires.
func (d *Service) validate(in directoryapi.CreateAccount) (a account, err error) {
	now := d.now()
	a.Account = directoryapi.Account{
		TenantID: in.Tenant, ID: in.ID, DirectoryID: in.Directory,
		EmailVerificationStatus: in.Account.EmailVerificationStatus.Or(directoryapi.Unverified),
		PasswordModifiedAt:      &now, CreatedAt: now, ModifiedAt: now,
	}
	if a.Email, err = field.Required(in.Account.Email, "email", 255); err != nil {
		return a, err
	}
	if !strings.Contains(a.Email, "@") {
		return a, apierr.Format
	}
	a.Username = in.Account.Username.Or(a.Email)
	for from, to := range map[*field.Text]**string{&in.Account.GivenName: &a.GivenName, &in.Account.MiddleName: &a.MiddleName,
		&in.Account.Surname: &a.Surname} {
		if *to, err = field.Optional(*from, "name", 255); err != nil {
			return a, err
		}
	}
	if in.Account.Locale.Given() {
		tag, err := locale.Canonical("locale", in.Account.Locale.Value)
		if err != nil {
			return a, err
		}
		a.Locale = &tag
	}
	if a.password, err = validatePassword(in.Account.Password); err != nil {
		return a, err
	}
	a.Status, err = field.Enum(in.Account.Status.NullIsAbsent(true), "status", directoryapi.Enabled, directoryapi.Enabled,
		directoryapi.Disabled, directoryapi.Unverified)
	return a, err
}

func validatePassword(in field.Text) (secure.Secret, error) {
	password, err := field.Required(in, "password", 255)
	if err == nil && len(password) < 8 {
		err = apierr.TooShort
	}
	return secure.Secret(password), err
}

// Account returns an account.
func (d *Service) Account(_ context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	return call(d, "Account", func() (directoryapi.Account, error) {
		a := d.findAccount(in.Tenant, in.ID)
		if a == nil {
			return directoryapi.Account{}, apierr.NotFound
		}
		return a.Account, nil
	})
}

// Profile returns an account with its customData.
func (d *Service) Profile(_ context.Context, in directoryapi.ProfileRequest) (directoryapi.Profile, error) {
	return call(d, "Profile", func() (directoryapi.Profile, error) {
		a := d.findAccount(in.Tenant, in.ID)
		if a == nil {
			return directoryapi.Profile{}, apierr.NotFound
		}
		out := directoryapi.Profile{Account: a.Account}
		if in.CustomData {
			out.CustomData = a.data
		}
		return out, nil
	})
}

// SetCustomData sets what Profile returns as the customData of an account.
func (d *Service) SetCustomData(at directoryapi.Ref, data json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.findAccount(at.Tenant, at.ID).data = data
}

// ListAccounts returns a page of accounts.
func (d *Service) ListAccounts(_ context.Context, in directoryapi.ListAccounts) (list.Page[directoryapi.Account], error) {
	return call(d, "ListAccounts", func() (list.Page[directoryapi.Account], error) {
		var held []directoryapi.Account
		for _, a := range d.accounts {
			if a.TenantID == in.Tenant && containsAccount(in.Stores, a) {
				held = append(held, a.Account)
			}
		}
		return page(held, accountAttributes, in.Query), nil
	})
}

func containsAccount(stores []directoryapi.Store, a *account) bool {
	return slices.ContainsFunc(stores, func(store directoryapi.Store) bool { return storeContains(store, a) })
}

// storeContains reports whether the directory or the group contains the account.
func storeContains(store directoryapi.Store, a *account) bool {
	if store.Kind == directoryapi.Groups {
		return slices.Contains(a.groups, store.ID)
	}
	return store.ID == a.DirectoryID
}

func accountAttributes(a directoryapi.Account) attributes {
	changed := a.CreatedAt
	if a.PasswordModifiedAt != nil {
		changed = *a.PasswordModifiedAt
	}
	return attributes{
		texts: map[string]string{
			"username": a.Username, "email": a.Email, "givenName": orEmpty(a.GivenName), "middleName": orEmpty(a.MiddleName),
			"surname": orEmpty(a.Surname), "locale": orEmpty(a.Locale),
		},
		status: a.Status,
		times:  map[string]time.Time{"createdAt": a.CreatedAt, "modifiedAt": a.ModifiedAt, "passwordModifiedAt": changed},
	}
}

// Authenticate checks a password.
func (d *Service) Authenticate(_ context.Context, in directoryapi.Authenticate) (directoryapi.Authenticated, error) {
	return call(d, "Authenticate", func() (directoryapi.Authenticated, error) {
		a, store := d.findPasswordLogin(in.Tenant, in.Stores, in.Login)
		switch {
		case a == nil:
			return directoryapi.Authenticated{}, apierr.NoSuchAccount
		case a.password == "" || a.password != in.Password:
			return directoryapi.Authenticated{}, apierr.WrongPassword
		}
		return directoryapi.Authenticated{Account: a.Account, Store: store}, d.checkLoginAllowed(a, store)
	})
}

// checkLoginAllowed returns the error for an account that may not log in because of its own status
// or that of its account store.
func (d *Service) checkLoginAllowed(a *account, store directoryapi.Store) error {
	switch {
	case d.directoryOf(a).Status != directoryapi.Enabled:
		return apierr.DirectoryDisabled
	case !d.isEnabled(store):
		return apierr.GroupDisabled
	case a.Status == directoryapi.Disabled:
		return apierr.AccountDisabled
	case a.Status == directoryapi.Unverified:
		return apierr.AccountUnverified
	}
	return nil
}

// findPasswordLogin is findLogin for a login with a password: accounts without a password are
// considered last.
func (d *Service) findPasswordLogin(tenant id.ID, stores []directoryapi.Store, login string) (*account, directoryapi.Store) {
	if a, store := d.findFirst(tenant, stores, login, func(a *account) bool { return a.password != "" }); a != nil {
		return a, store
	}
	return d.findLogin(tenant, stores, login)
}

// findLogin returns the account of a login in the first account store that has one, by its user
// name before its email, and that store; nil where there is none.
func (d *Service) findLogin(tenant id.ID, stores []directoryapi.Store, login string) (*account, directoryapi.Store) {
	return d.findFirst(tenant, stores, login, func(*account) bool { return true })
}

func (d *Service) findFirst(
	tenant id.ID, stores []directoryapi.Store, login string, is func(*account) bool,
) (*account, directoryapi.Store) {
	login = field.LoginName(login)
	for _, store := range stores {
		for _, of := range []func(*account) string{func(a *account) string { return a.Username }, func(a *account) string { return a.Email }} {
			for _, a := range d.accounts {
				if a.TenantID == tenant && storeContains(store, a) && is(a) && field.LoginName(of(a)) == login {
					return a, store
				}
			}
		}
	}
	return nil, directoryapi.Store{}
}

// isEnabled reports whether a store is not a disabled group.
func (d *Service) isEnabled(store directoryapi.Store) bool {
	return !slices.ContainsFunc(d.groups, func(g directoryapi.Group) bool {
		return store.Kind == directoryapi.Groups && g.ID == store.ID && g.Status != directoryapi.Enabled
	})
}

func (d *Service) directoryOf(a *account) directoryapi.Directory {
	return d.directories[directoryapi.Ref{Tenant: a.TenantID, ID: a.DirectoryID}]
}

// CheckAccess reports whether an account may act.
func (d *Service) CheckAccess(_ context.Context, in directoryapi.CheckAccess) (directoryapi.Access, error) {
	return call(d, "CheckAccess", func() (directoryapi.Access, error) {
		a := d.findAccount(in.Tenant, in.Account)
		switch {
		case a == nil || a.Status != directoryapi.Enabled:
			return directoryapi.Access{}, apierr.TokenAccountDisabled
		case !containsAccount(in.Stores, a):
			return directoryapi.Access{}, apierr.TokenAccountUnreachable
		case d.directoryOf(a).Status != directoryapi.Enabled,
			!containsAccount(slices.DeleteFunc(slices.Clone(in.Stores), func(s directoryapi.Store) bool { return !d.isEnabled(s) }), a):
			return directoryapi.Access{}, apierr.TokenStoreDisabled
		}
		home := directoryapi.Store{Kind: directoryapi.Directories, ID: a.DirectoryID}
		return directoryapi.Access{Account: a.Account, Direct: slices.Contains(in.Stores, home)}, nil
	})
}

// AccessChanges returns the changes by tests and by password resets.
func (d *Service) AccessChanges(_ context.Context, after changefeed.Position) (changefeed.Page, error) {
	return call(d, "AccessChanges", func() (changefeed.Page, error) { return d.Changes.After(after), nil })
}

// Mail returns the parts of a mail. The mails of a reset are enabled, those of a registration only
// after EnableVerification.
func (d *Service) Mail(_ context.Context, in directoryapi.MailOf) (directoryapi.Mail, error) {
	return call(d, "Mail", func() (directoryapi.Mail, error) {
		a := d.findAccount(in.Tenant, in.Account)
		if a == nil {
			return directoryapi.Mail{}, apierr.NotFound
		}
		directory := d.directoryOf(a)
		switch in.Workflow {
		case directoryapi.Reset, directoryapi.ResetSuccess:
		case directoryapi.Verification, directoryapi.ExistingAccount:
			if !d.verifying[directoryapi.Ref{Tenant: in.Tenant, ID: a.DirectoryID}] {
				return directoryapi.Mail{}, apierr.NotFound
			}
		default:
			return directoryapi.Mail{}, apierr.NotFound
		}
		return directoryapi.Mail{Account: a.Account, Directory: directory, Template: directoryapi.EmailTemplate{
			TenantID: in.Tenant, DirectoryID: directory.ID, Workflow: in.Workflow, Subject: "A mail",
			MimeType: "text/plain", TextBody: "$!{url}", HTMLBody: "<p>$!{url}</p>",
		}}, nil
	})
}

// Tenant returns a tenant.
func (d *Service) Tenant(_ context.Context, in directoryapi.Ref) (directoryapi.Tenant, error) {
	return call(d, "Tenant", func() (directoryapi.Tenant, error) {
		if tenant, ok := d.tenants[in.ID]; ok && in.Tenant == in.ID {
			return tenant, nil
		}
		return directoryapi.Tenant{}, apierr.NotFound
	})
}

// AuthenticateAgent refuses every key: there are no agents.
func (d *Service) AuthenticateAgent(context.Context, directoryapi.AuthenticateAgent) (directoryapi.AgentKey, error) {
	return call(d, "AuthenticateAgent", func() (directoryapi.AgentKey, error) {
		return directoryapi.AgentKey{}, apierr.Unauthorized
	})
}

// Owner returns the account of a tenant's owner.
func (d *Service) Owner(_ context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	return call(d, "Owner", func() (directoryapi.Account, error) {
		for _, a := range d.accounts {
			if a.Owner && a.TenantID == in.Tenant && a.TenantID == in.ID {
				return a.Account, nil
			}
		}
		return directoryapi.Account{}, apierr.NotFound
	})
}
