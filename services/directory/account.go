package directory

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// Account returns an account, or apierr.NotFound.
func (s *Service) Account(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	a, err := s.store.Account(ctx, in.Tenant, in.ID)
	if err != nil {
		return a, err
	}
	return s.unsealed(a)
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

func (s *Service) allUnsealed(page list.Page[directoryapi.Account], err error) (list.Page[directoryapi.Account], error) {
	for i := 0; i < len(page.Items) && err == nil; i++ {
		page.Items[i], err = s.unsealed(page.Items[i])
	}
	return page, err
}

// ListAccounts returns a page of the accounts of the stores, each once. A group
// whose directory is a store too adds nothing to it.
func (s *Service) ListAccounts(ctx context.Context, in directoryapi.ListAccounts) (list.Page[directoryapi.Account], error) {
	directories, groups := split(in.Stores)
	groups, err := s.store.GroupsOutside(ctx, in.Tenant, groups, directories)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.allUnsealed(s.store.ListAccounts(ctx, in.Tenant, directories, groups, in.Query))
}

// split parts stores by their kind, and takes each once.
func split(stores []directoryapi.Store) (directories, groups []id.ID) {
	directories, groups = []id.ID{}, []id.ID{}
	for i, store := range stores {
		switch {
		case slices.Contains(stores[:i], store):
		case store.Kind == directoryapi.Directories:
			directories = append(directories, store.ID)
		case store.Kind == directoryapi.Groups:
			groups = append(groups, store.ID)
		}
	}
	return directories, groups
}

// TenantAccounts returns a page of all the accounts of a tenant.
func (s *Service) TenantAccounts(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	return s.allUnsealed(list.PageOf(ctx, s.Tenant, s.store.TenantAccounts, tenant, query))
}

// DirectoryAccounts returns a page of the accounts of a directory.
func (s *Service) DirectoryAccounts(ctx context.Context, in id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	owner, err := s.Directory(ctx, in)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.allUnsealed(s.store.ListAccounts(ctx, in.Tenant, []id.ID{in.ID}, nil, query.Of(owner.CreatedAt, owner.ModifiedAt)))
}

// GroupAccounts returns a page of the members of a group.
func (s *Service) GroupAccounts(ctx context.Context, in id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	owner, err := s.Group(ctx, in)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.allUnsealed(s.store.ListAccounts(ctx, in.Tenant, nil, []id.ID{in.ID}, query.Of(owner.CreatedAt, owner.ModifiedAt)))
}

// NewAccount makes an account in a directory from a client's body.
func (s *Service) NewAccount(ctx context.Context, directory id.Ref, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	in.Tenant, in.Directory, in.ID = directory.Tenant, directory.ID, id.New(s.now())
	return s.CreateAccount(ctx, in)
}

// CreateAccount makes an account in a directory, and a member of a group where one is named,
// and requests its mails (docs/interface/accounts.md#status).
func (s *Service) CreateAccount(ctx context.Context, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	to, err := s.registrar(ctx, in)
	if err != nil {
		return directoryapi.Account{}, err
	}
	now := s.now()
	a := directoryapi.Account{
		TenantID: in.Tenant, ID: in.ID, DirectoryID: in.Directory, Status: directoryapi.Enabled,
		EmailVerificationStatus: directoryapi.Unverified, PasswordModifiedAt: beforeCreation(now), CreatedAt: now, ModifiedAt: now,
	}
	refusal := apply(&a, in.Account, to, true)
	if refusal = field.First(refusal, checkRequired(a, to.GivenNameRequired, to.SurnameRequired), given(in.Account.Password)); refusal != nil {
		return directoryapi.Account{}, refusal
	}
	if err := checkDomain(to.CreationPolicy, a.Email); err != nil {
		return directoryapi.Account{}, apierr.From(err).Saying("Cannot create the Account because your email's domain is not allowed.")
	}
	hash, err := s.firstPassword(ctx, in)
	if err != nil {
		return directoryapi.Account{}, err
	}
	event, verification := s.register(&a, in, to.CreationPolicy)
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.InsertAccount(ctx, a, hash, verification); err != nil {
			return err
		}
		if !in.Group.IsZero() {
			if err := tx.InsertMembership(ctx, store.Membership{TenantID: a.TenantID, ID: id.New(now), DirectoryID: a.DirectoryID,
				GroupID: in.Group, AccountID: a.ID, CreatedAt: now}); err != nil {
				return err
			}
		}
		if err := tx.MergeAccountData(ctx, a.TenantID, a.ID, in.Account.CustomData.Value, now); err != nil || event == nil {
			return err
		}
		return tx.Emit(ctx, *event)
	})
	return s.created(ctx, a, err)
}

// beforeCreation is the time of the password of an account that is created at
// now (docs/interface/accounts.md#fields).
func beforeCreation(now time.Time) *time.Time {
	processed := now.Add(-time.Millisecond)
	return &processed
}

// created returns the account that was to be made. A user name or email that is
// there already may be that of this very account: then the call was repeated.
func (s *Service) created(ctx context.Context, a directoryapi.Account, err error) (directoryapi.Account, error) {
	if errors.Is(err, apierr.Exists) {
		if own, mine := s.store.Account(ctx, a.TenantID, a.ID); mine == nil {
			return s.unsealed(own)
		}
		err = s.taken(ctx, a)
	}
	return a, err
}

// taken is the refusal of an email or a user name that another account of the directory has:
// it tells which (docs/interface/errors.md#texts-that-clients-compare).
func (s *Service) taken(ctx context.Context, a directoryapi.Account) error {
	member, name := "email", a.Email
	directory := []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}
	switch owner, err := s.store.FindAddressee(ctx, a.TenantID, directory, a.Email); {
	case errors.Is(err, apierr.NotFound), err == nil && owner.ID == a.ID:
		member, name = "username", a.Username
	case err != nil:
		return err
	}
	return apierr.Exists.Because("another account of the directory has the email or user name %q", name).
		Saying("Account with that %[1]s already exists.  Please choose another %[1]s.", member)
}

// apply writes the members of a body into an account and checks them. A new
// account needs an email; its user name is the email unless it has one.
func apply(a *directoryapi.Account, in directoryapi.NewAccount, by store.Registrar, isNew bool) (err error) {
	var refused field.Refusals
	if in.Email.Present || isNew {
		if a.Email, err = field.Required(in.Email, "email", 255); err == nil {
			err = field.Email("email", a.Email)
		}
		refused.Add(required(err, "email address"))
	}
	switch {
	case in.Username.Given():
		a.Username, err = field.Name(in.Username, "username", 255)
		refused.Add(err)
	case in.Username.Null || isNew:
		a.Username = a.Email
	}
	for _, part := range []struct {
		in       field.Text
		name     string
		to       **string
		required bool
	}{
		{in.GivenName, store.GivenName, &a.GivenName, by.GivenNameRequired},
		{in.MiddleName, "middleName", &a.MiddleName, false},
		{in.Surname, store.Surname, &a.Surname, by.SurnameRequired},
	} {
		if part.required && part.in.Given() && strings.TrimSpace(part.in.Value) == "" {
			refused.Add(nameRequired(part.name))
		}
		if part.in.Present {
			*part.to, err = field.Nonempty(part.in, part.name, 255)
			refused.Add(err)
		}
	}
	refused.Enum(&a.Status, in.Status, "status", store.AccountStatuses...)
	a.EmailVerificationStatus, err = verificationStatus(in.EmailVerificationStatus, a.EmailVerificationStatus)
	refused.Add(err)
	return refused.First()
}

// required gives the refusal of a member that is missing its text
// (docs/interface/errors.md#texts-that-clients-compare).
func required(err error, member string) error {
	if !errors.Is(err, apierr.Required) {
		return err
	}
	return apierr.From(err).Saying("Account %s is required; it cannot be null, empty, or blank.", member)
}

// isCustomDataAlone reports whether a body names custom data and nothing else,
// which does not change the account (docs/interface/custom-data.md#endpoints).
func isCustomDataAlone(in directoryapi.NewAccount) bool {
	return in.CustomData.Present && in == directoryapi.NewAccount{CustomData: in.CustomData}
}

// UpdateAccount changes what the body names. The status of the tenant's owner is fixed:
// apierr.OwnerStatus. Only the status and the custom data of an account in a mirror directory
// can change: apierr.MirroredProperty.
func (s *Service) UpdateAccount(ctx context.Context, at id.Ref, in directoryapi.NewAccount) (directoryapi.Account, error) {
	before, err := s.store.Account(ctx, at.Tenant, at.ID)
	if err != nil {
		return before, err
	}
	by, err := s.store.Registrar(ctx, at.Tenant, before.DirectoryID)
	if err != nil {
		return before, err
	}
	mirror := by.ProviderID != directoryapi.Native
	if mirror && in.Password.Present {
		return before, mirrored("password")
	}
	var a directoryapi.Account
	update := func(tx *store.Tx, password store.NewPassword) (err error) {
		if before, err = tx.LockAccount(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		a = before
		if err := change(&a, in, by); err != nil {
			return err
		}
		if mirror {
			if name := differs(before, a); name != "" {
				return mirrored(name)
			}
			if in.Status.Present {
				if err := recordStatus(ctx, tx, &a); err != nil {
					return err
				}
			}
		}
		if err := tx.MergeAccountData(ctx, at.Tenant, at.ID, in.CustomData.Value, s.now()); err != nil || isCustomDataAlone(in) {
			return err
		}
		a.ModifiedAt = s.now()
		if in.Password.Present {
			a.PasswordModifiedAt = &a.ModifiedAt
			if err := tx.SetPassword(ctx, at.Tenant, at.ID, password); err != nil {
				return err
			}
			if err := tx.Emit(ctx, events.PasswordChanged{Tenant: at.Tenant, Account: at.ID, By: events.PasswordByAdministrator}); err != nil {
				return err
			}
		}
		if before.Status == directoryapi.Enabled && a.Status != directoryapi.Enabled {
			if err := tx.Emit(ctx, events.AccountDisabled{Tenant: at.Tenant, Account: at.ID}); err != nil {
				return err
			}
		}
		if in.Password.Present || field.Fold(a.Email) != field.Fold(before.Email) {
			if err := tx.DropResets(ctx, at.Tenant, at.ID); err != nil {
				return err
			}
		}
		return tx.UpdateAccount(ctx, before, a)
	}
	if in.Password.Present {
		err = s.changePassword(ctx, before, in.Password, update)
	} else {
		err = s.store.Tx(ctx, func(tx *store.Tx) error { return update(tx, store.NewPassword{}) })
	}
	if errors.Is(err, apierr.Exists) {
		err = s.taken(ctx, a)
	}
	if err != nil {
		return a, err
	}
	return s.unsealed(a)
}

// change writes the body of an update into an account and checks it.
func change(a *directoryapi.Account, in directoryapi.NewAccount, by store.Registrar) error {
	before := *a
	refusal := apply(a, in, by, false)
	// An account that is older than the schema's demand may go on without.
	required := checkRequired(*a, by.GivenNameRequired && before.GivenName != nil, by.SurnameRequired && before.Surname != nil)
	if in.Password.Present {
		required = field.First(required, given(in.Password))
	}
	if refusal = field.First(refusal, required); refusal != nil {
		return refusal
	}
	if a.Owner && a.Status != before.Status {
		return apierr.OwnerStatus.Because("the status of the tenant's owner cannot be changed")
	}
	if field.Fold(a.Email) != field.Fold(before.Email) {
		if err := checkDomain(by.CreationPolicy, a.Email); err != nil {
			return err
		}
		// A status that is sent back as it was read says nothing of the new email.
		if a.EmailVerificationStatus == before.EmailVerificationStatus {
			a.EmailVerificationStatus = directoryapi.Unverified
		}
		a.VerificationSealed = nil // its token proves the former email
	}
	if a.EmailVerificationStatus == directoryapi.Verified {
		a.VerificationSealed = nil
	}
	return nil
}

// verificationStatus reads a new status. UNKNOWN, which only accounts have that
// are older than the field, may be sent back as it was read.
func verificationStatus(in field.Text, fallback string) (string, error) {
	if fallback == directoryapi.Unknown && strings.EqualFold(in.Or(""), directoryapi.Unknown) {
		return fallback, nil
	}
	return field.Enum(in, "emailVerificationStatus", fallback, directoryapi.Verified, directoryapi.Unverified)
}

// mirrored is the refusal of a change to what a mirror directory copies.
func mirrored(name string) error {
	return apierr.MirroredProperty.Because("%s is copied from the directory that this one mirrors; change it there", name)
}

// differs names a property, beside the status, in which two states of an account
// differ; empty when there is none.
func differs(before, after directoryapi.Account) string {
	for _, property := range []struct{ name, before, after string }{
		{"username", before.Username, after.Username}, {"email", before.Email, after.Email},
		{"givenName", text(before.GivenName), text(after.GivenName)}, {"middleName", text(before.MiddleName), text(after.MiddleName)},
		{"surname", text(before.Surname), text(after.Surname)},
		{"emailVerificationStatus", before.EmailVerificationStatus, after.EmailVerificationStatus},
		{"emailVerificationStatus", strconv.FormatBool(before.EmailAssumed), strconv.FormatBool(after.EmailAssumed)},
	} {
		if property.before != property.after {
			return property.name
		}
	}
	return ""
}

// text is an optional text, empty for none.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// DeleteAccount removes an account (erasure, GDPR), and lets the other services drop what they
// hold of it. The tenant's owner is refused: apierr.OwnerKept.
func (s *Service) DeleteAccount(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		a, err := tx.LockAccount(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		if a.Owner {
			return apierr.OwnerKept.Because("the owner of the tenant cannot be deleted")
		}
		if err := tx.DeleteAccount(ctx, a); err != nil {
			return err
		}
		if err := tx.RemoveData(ctx, a.TenantID, a.ID); err != nil {
			return err
		}
		return tx.Emit(ctx, events.AccountDeleted{Tenant: at.Tenant, Account: at.ID})
	})
}
