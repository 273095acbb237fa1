package directory

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// Account gives an account, or apierr.NotFound.
func (s *Service) Account(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	a, err := s.store.Account(ctx, in.Tenant, in.ID)
	if err != nil {
		return a, err
	}
	return s.unsealed(a)
}

// ListAccounts gives a page of the accounts of the stores, each once.
func (s *Service) ListAccounts(ctx context.Context, in directoryapi.ListAccounts) (list.Page[directoryapi.Account], error) {
	return s.listAccounts(ctx, in.Tenant, storeIDs(in.Stores), in.Query)
}

// TenantAccounts gives a page of all the accounts of a tenant.
func (s *Service) TenantAccounts(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	if _, err := s.Tenant(ctx, tenant); err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.listAccounts(ctx, tenant.Tenant, nil, query)
}

// DirectoryAccounts gives a page of the accounts of a directory.
func (s *Service) DirectoryAccounts(ctx context.Context, in id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	if _, err := s.Directory(ctx, in); err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.listAccounts(ctx, in.Tenant, []id.ID{in.ID}, query)
}

func (s *Service) listAccounts(ctx context.Context, tenant id.ID, directories []id.ID, query list.Query) (list.Page[directoryapi.Account], error) {
	page, err := s.store.ListAccounts(ctx, tenant, directories, query)
	for i := range page.Items {
		if page.Items[i], err = s.unsealed(page.Items[i]); err != nil {
			return page, err
		}
	}
	return page, err
}

func storeIDs(stores []directoryapi.Store) []id.ID {
	ids := make([]id.ID, len(stores))
	for i, store := range stores {
		ids[i] = store.ID
	}
	return ids
}

// unsealed fills in the verification token, which the account shows.
func (s *Service) unsealed(a directoryapi.Account) (directoryapi.Account, error) {
	if a.VerificationSealed == nil {
		return a, nil
	}
	token, err := s.ring.Open(a.VerificationSealed, events.MailTokenPurpose(a.ID))
	a.VerificationToken = token
	return a, err
}

// CreateAccount makes an account in a directory and lets its mails go out
// (resolutions, sections 3.3 and 3.4).
func (s *Service) CreateAccount(ctx context.Context, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	d, err := s.store.Directory(ctx, in.Tenant, in.Directory)
	if err != nil {
		return directoryapi.Account{}, err
	}
	if d.Status != directoryapi.Enabled && !in.Application.IsZero() {
		return directoryapi.Account{}, apierr.AccountStoreDisabled.Because("the directory %q is disabled", d.Name)
	}
	policy, err := s.store.CreationPolicy(ctx, in.Tenant, in.Directory)
	if err != nil {
		return directoryapi.Account{}, err
	}
	now := s.now()
	a := directoryapi.Account{
		TenantID: in.Tenant, ID: in.ID, DirectoryID: in.Directory, Status: directoryapi.Enabled,
		EmailVerificationStatus: directoryapi.Unverified, PasswordModifiedAt: &now, CreatedAt: now, ModifiedAt: now,
	}
	if err := apply(&a, in.Account, true); err != nil {
		return directoryapi.Account{}, err
	}
	if err := checkDomain(policy, a.Email); err != nil {
		return directoryapi.Account{}, err
	}
	hash, err := s.firstPassword(ctx, in)
	if err != nil {
		return directoryapi.Account{}, err
	}

	var verification *store.Verification
	if in.Workflow && policy.VerificationEmailStatus == directoryapi.Enabled && a.Status != directoryapi.Disabled {
		a.Status = directoryapi.Unverified
		token := secure.Token(22)
		expires := now.Add(s.cfg.VerificationTTL)
		verification = &store.Verification{Digest: secure.Digest(token), Sealed: s.ring.Seal(token, events.MailTokenPurpose(a.ID)), ExpiresAt: &expires}
		a.VerificationToken, a.VerificationSealed = token, verification.Sealed
	}
	err = s.tx(ctx, func(tx *store.Tx) error {
		if err := tx.InsertAccount(ctx, a, hash, verification); err != nil {
			return err
		}
		if !in.Workflow || a.Status == directoryapi.Disabled {
			return nil
		}
		return tx.Emit(ctx, events.AccountRegistered{
			Tenant: a.TenantID, Account: a.ID, Directory: a.DirectoryID, Application: in.Application, Token: a.VerificationSealed,
		})
	})
	if errors.Is(err, apierr.Exists) {
		if own, mine := s.store.Account(ctx, in.Tenant, in.ID); mine == nil {
			return s.unsealed(own) // the call was repeated
		}
		err = taken(a)
	}
	return a, err
}

// taken is the refusal of a user name or email that the directory has.
func taken(a directoryapi.Account) error {
	return apierr.Exists.Because("the directory has an account with the email %q or the user name %q", a.Email, a.Username).
		Saying("An account with that email or user name exists.")
}

// apply writes the members of a body into an account and checks them. A new
// account needs an email; its user name is the email unless it has one.
func apply(a *directoryapi.Account, in directoryapi.NewAccount, isNew bool) (err error) {
	if in.Email.Present || isNew {
		if a.Email, err = field.Required(in.Email, "email", 255); err != nil {
			return err
		}
		if !isEmail(a.Email) {
			return apierr.Format.Because("email %q is not an email address", a.Email)
		}
	}
	if in.Username.Given() || (in.Username.Present && !isNew) {
		if a.Username, err = field.Required(in.Username, "username", 255); err != nil {
			return err
		}
	} else if isNew {
		a.Username = a.Email
	}
	for _, part := range []struct {
		in   field.Text
		name string
		to   **string
	}{{in.GivenName, "givenName", &a.GivenName}, {in.MiddleName, "middleName", &a.MiddleName}, {in.Surname, "surname", &a.Surname}} {
		if part.in.Present {
			if *part.to, err = field.Optional(part.in, part.name, 255); err != nil {
				return err
			}
		}
	}
	a.Status, err = field.Enum(in.Status, "status", a.Status, directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified)
	return err
}

// isEmail checks the form of an address (resolutions, section 3.1): one @, no
// white space or control character, a dot inside the domain.
func isEmail(email string) bool {
	local, domain, ok := strings.Cut(email, "@")
	return ok && local != "" && !strings.Contains(domain, "@") &&
		strings.Contains(strings.Trim(domain, "."), ".") && strings.Trim(domain, ".") == domain && !strings.Contains(domain, "..") &&
		!strings.ContainsFunc(email, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// Change is the body that updates an account.
type Change struct {
	directoryapi.NewAccount
	EmailVerificationStatus field.Text `json:"emailVerificationStatus"`
}

// UpdateAccount changes what the body names. The status of the tenant's owner
// is fixed: apierr.OwnerStatus.
func (s *Service) UpdateAccount(ctx context.Context, at id.Ref, in Change) (directoryapi.Account, error) {
	before, err := s.store.Account(ctx, at.Tenant, at.ID)
	if err != nil {
		return before, err
	}
	policy, err := s.store.CreationPolicy(ctx, at.Tenant, before.DirectoryID)
	if err != nil {
		return before, err
	}
	var password store.NewPassword
	if in.Password.Present {
		if password, err = s.newPassword(ctx, before, in.Password); err != nil {
			return before, err
		}
	}
	var a directoryapi.Account
	err = s.tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockAccount(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		former := a
		if err := apply(&a, in.NewAccount, false); err != nil {
			return err
		}
		if a.Owner && in.Status.Present && a.Status != former.Status {
			return apierr.OwnerStatus.Because("the status of the tenant's owner cannot be changed")
		}
		if field.Fold(a.Email) != field.Fold(former.Email) {
			if err := checkDomain(policy, a.Email); err != nil {
				return err
			}
			a.EmailVerificationStatus = directoryapi.Unverified
			a.VerificationSealed = nil // its token proves the former email
		}
		if a.EmailVerificationStatus, err = field.Enum(in.EmailVerificationStatus, "emailVerificationStatus", a.EmailVerificationStatus,
			directoryapi.Verified, directoryapi.Unverified); err != nil {
			return err
		}
		a.ModifiedAt = s.now()
		if in.Password.Present {
			a.PasswordModifiedAt = &a.ModifiedAt
			if err := tx.SetPassword(ctx, at.Tenant, at.ID, password); err != nil {
				return err
			}
		}
		if a.EmailVerificationStatus == directoryapi.Verified {
			a.VerificationSealed = nil
		}
		return tx.UpdateAccount(ctx, a)
	})
	if errors.Is(err, apierr.Exists) {
		err = taken(a)
	}
	if err != nil {
		return a, err
	}
	return s.unsealed(a)
}

// DeleteAccount removes an account, and lets the other services drop what they
// hold of it. The tenant's owner is refused: apierr.OwnerKept.
func (s *Service) DeleteAccount(ctx context.Context, at id.Ref) error {
	return s.tx(ctx, func(tx *store.Tx) error {
		a, err := tx.LockAccount(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		if a.Owner {
			return apierr.OwnerKept.Because("the owner of the tenant cannot be deleted")
		}
		if err := tx.DeleteAccount(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		return tx.Emit(ctx, events.AccountDeleted{Tenant: at.Tenant, Account: at.ID})
	})
}

// NewAccount makes an account from a client's body.
func (s *Service) NewAccount(ctx context.Context, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	in.ID = id.New(s.now())
	return s.CreateAccount(ctx, in)
}
