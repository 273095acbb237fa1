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
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/services/directory/maildomain"
	"github.com/doorward/doorward/services/directory/store"
)

// Account returns an account, or apierr.NotFound.
func (s *Service) Account(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	a, err := s.store.Account(ctx, in.Tenant, in.ID)
	if err != nil {
		return a, err
	}
	return s.WithVerificationToken(a)
}

// WithVerificationToken fills in the email verification token, which the account's representation
// shows.
func (s *Service) WithVerificationToken(a directoryapi.Account) (directoryapi.Account, error) {
	if a.VerificationSealed == nil {
		return a, nil
	}
	token, err := s.ring.Open(a.VerificationSealed, events.MailTokenPurpose(a.ID))
	a.VerificationToken = token
	return a, err
}

// WithVerificationTokens is WithVerificationToken for a page of accounts. It returns an error as it is.
func (s *Service) WithVerificationTokens(page list.Page[directoryapi.Account],
	err error) (list.Page[directoryapi.Account], error) {
	for i := 0; i < len(page.Items) && err == nil; i++ {
		page.Items[i], err = s.WithVerificationToken(page.Items[i])
	}
	return page, err
}

// ListAccounts returns a page of the accounts of the account stores, each account once. A group is
// left out where its directory is one of the stores, which contains its members already.
func (s *Service) ListAccounts(ctx context.Context,
	in directoryapi.ListAccounts) (list.Page[directoryapi.Account], error) {
	directories, groups := splitStores(in.Stores)
	groups, err := s.store.GroupsOutside(ctx, in.Tenant, groups, directories)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.WithVerificationTokens(s.store.ListAccounts(ctx, in.Tenant, directories, groups, in.Query))
}

// splitStores returns the ids of the directories and of the groups among account stores, each
// once.
func splitStores(stores []directoryapi.Store) (directories, groups []id.ID) {
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
func (s *Service) TenantAccounts(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[directoryapi.Account], error) {
	return s.WithVerificationTokens(list.PageOf(ctx, s.Tenant, s.store.TenantAccounts, tenant, query))
}

// DirectoryAccounts returns a page of the accounts of a directory.
func (s *Service) DirectoryAccounts(ctx context.Context, in id.Ref,
	query list.Query) (list.Page[directoryapi.Account], error) {
	parent, err := s.Directory(ctx, in)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	query = query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt)
	return s.WithVerificationTokens(s.store.ListAccounts(ctx, in.Tenant, []id.ID{in.ID}, nil, query))
}

// GroupAccounts returns a page of the members of a group.
func (s *Service) GroupAccounts(ctx context.Context, in id.Ref,
	query list.Query) (list.Page[directoryapi.Account], error) {
	parent, err := s.Group(ctx, in)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	query = query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt)
	return s.WithVerificationTokens(s.store.ListAccounts(ctx, in.Tenant, nil, []id.ID{in.ID}, query))
}

// CreateAccountIn creates an account in a directory from the body of a client.
func (s *Service) CreateAccountIn(ctx context.Context, directory id.Ref,
	in directoryapi.CreateAccount) (directoryapi.Account, error) {
	in.Tenant, in.Directory, in.ID = directory.Tenant, directory.ID, id.New(s.now())
	return s.CreateAccount(ctx, in)
}

// CreateAccount creates an account in a directory (registration, user provisioning), makes it a
// member of a group where one is named, and requests its mails
// (docs/interface/accounts.md#status). Email and user name must be unique in the directory:
// apierr.Exists. A repeated call with the same id returns the account that the first created.
func (s *Service) CreateAccount(ctx context.Context, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	policy, err := s.registrationPolicy(ctx, in)
	if err != nil {
		return directoryapi.Account{}, err
	}
	now := s.now()
	account := directoryapi.Account{
		TenantID: in.Tenant, ID: in.ID, DirectoryID: in.Directory, Status: directoryapi.Enabled,
		EmailVerificationStatus: directoryapi.Unverified, PasswordModifiedAt: initialPasswordModifiedAt(now),
		CreatedAt:  now,
		ModifiedAt: now,
	}
	refusal := ApplyAccount(&account, in.Account, policy, true)
	refusal = field.First(refusal, CheckRequired(account, policy.GivenNameRequired, policy.SurnameRequired),
		requirePassword(in.Account.Password))
	if refusal != nil {
		return directoryapi.Account{}, refusal
	}
	if err := maildomain.Check(policy.CreationPolicy, account.Email); err != nil {
		return directoryapi.Account{}, apierr.From(err).
			Saying("Cannot create the Account because your email's domain is not allowed.")
	}
	if in.SelfService {
		if err := checkRegistrationData(policy.CreationPolicy, in.Account.CustomData.Value); err != nil {
			return directoryapi.Account{}, err
		}
	}
	hash, err := s.firstPassword(ctx, in)
	if err != nil {
		return directoryapi.Account{}, err
	}
	event, verification := s.ApplyRegistrationWorkflow(&account, in, policy.CreationPolicy)
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.InsertAccount(ctx, account, hash, verification); err != nil {
			return err
		}
		if !in.Group.IsZero() {
			if err := tx.InsertMembership(ctx,
				store.Membership{TenantID: account.TenantID, ID: id.New(now), DirectoryID: account.DirectoryID,
					GroupID: in.Group, AccountID: account.ID, CreatedAt: now}); err != nil {
				return err
			}
		}
		if err := tx.MergeAccountCustomData(ctx, account.TenantID, account.ID, in.Account.CustomData.Value,
			now); err != nil || event == nil {
			return err
		}
		return tx.Emit(ctx, *event)
	})
	return s.createdOrExisting(ctx, account, err)
}

// initialPasswordModifiedAt returns the passwordModifiedAt of an account that is created now with
// a password: one millisecond before, as clients expect it to be before createdAt
// (docs/interface/accounts.md#fields).
func initialPasswordModifiedAt(now time.Time) *time.Time {
	modifiedAt := now.Add(-time.Millisecond)
	return &modifiedAt
}

// createdOrExisting returns the account that was to be created. Where its user name or email
// exists already, that may be this very account, created by an earlier call with the same id: then
// the call is idempotent and returns it.
func (s *Service) createdOrExisting(ctx context.Context, a directoryapi.Account,
	err error) (directoryapi.Account, error) {
	if errors.Is(err, apierr.Exists) {
		if existing, lookupErr := s.store.Account(ctx, a.TenantID, a.ID); lookupErr == nil {
			return s.WithVerificationToken(existing)
		}
		err = s.duplicateError(ctx, a)
	}
	return a, err
}

// duplicateError is the error for an email or user name that is not unique: another account of the
// directory has it already (table login_names). It says which of the two
// (docs/interface/errors.md#texts-that-clients-compare).
func (s *Service) duplicateError(ctx context.Context, a directoryapi.Account) error {
	directory := []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}
	found, err := s.store.FindAccountByLogin(ctx, a.TenantID, directory, a.Email)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return err
	}
	member, name := "email", a.Email
	if found.ID.IsZero() || found.ID == a.ID {
		member, name = "username", a.Username
	}
	return apierr.Exists.Because("another account of the directory has the email or user name %q", name).
		Saying("Account with that %[1]s already exists.  Please choose another %[1]s.", member)
}

// ApplyAccount writes the members of a body into an account and validates them. A new account
// needs an email; without a user name, the email is its user name, and follows it: a user name that is
// only the copy of the email changes with it, so that the former email leads nobody to the account. A
// blank user name or name of a person is absent in a new account, and null in an update. The format of
// an email is validated by field.Email (pkg/field/email.go).
func ApplyAccount(a *directoryapi.Account, in directoryapi.NewAccount, policy store.RegistrationPolicy,
	isNew bool) (err error) {
	var errs field.Errors
	before := *a
	errs.Set(&a.Email, in.Email, isNew, readEmail)
	username := blankAsNull(in.Username)
	isCopy := !isNew && field.LoginName(before.Username) == field.LoginName(before.Email)
	switch {
	case username.Given() && !(isCopy && field.Unchanged(username, before.Username)):
		errs.Set(&a.Username, username, isNew,
			func(in field.Text) (string, error) { return field.Username(in, "username", 255) })
	case username.Null || isNew || isCopy && a.Email != before.Email:
		a.Username = a.Email
	}
	for _, part := range []struct {
		in       field.Text
		name     string
		to       **string
		required bool
	}{
		{in.GivenName, store.GivenName, &a.GivenName, policy.GivenNameRequired},
		{in.MiddleName, "middleName", &a.MiddleName, false},
		{in.Surname, store.Surname, &a.Surname, policy.SurnameRequired},
	} {
		value := blankAsNull(part.in)
		if part.required && part.in.Given() && value.Null {
			errs.Add(nameRequired(part.name))
		}
		errs.Optional(part.to, value, part.name, 255)
	}
	if in.Locale.Present {
		a.Locale, err = readLocale(in.Locale)
		errs.Add(err)
	}
	errs.Enum(&a.Status, in.Status.NullIsAbsent(isNew), "status", store.AccountStatuses...)
	a.EmailVerificationStatus, err = verificationStatus(in.EmailVerificationStatus.NullIsAbsent(isNew),
		a.EmailVerificationStatus)
	errs.Add(err)
	return errs.First()
}

// readLocale reads the locale of an account (docs/interface/accounts.md#fields), which is kept in its
// canonical form; nil for null.
func readLocale(in field.Text) (*string, error) {
	if in.Null {
		return nil, nil
	}
	tag, err := locale.Canonical("locale", in.Value)
	return &tag, err
}

// readEmail reads the email of an account.
func readEmail(in field.Text) (string, error) {
	email, err := field.Required(in, "email", 255)
	if err != nil {
		return email, explainRequired(err, "email address")
	}
	return email, field.Email("email", email)
}

// blankAsNull returns null for a text of white space alone: some clients send every field of their form.
func blankAsNull(in field.Text) field.Text {
	if in.Given() && strings.TrimSpace(in.Value) == "" {
		return field.Text{Present: true, Null: true}
	}
	return in
}

// explainRequired gives the error for a missing member the text for the end user
// (docs/interface/errors.md#texts-that-clients-compare).
func explainRequired(err error, member string) error {
	if !errors.Is(err, apierr.Required) {
		return err
	}
	return apierr.From(err).Saying("Account %s is required; it cannot be null, empty, or blank.", member)
}

// isCustomDataAlone reports whether a body has custom data and nothing else, which does not change
// modifiedAt of the account (docs/interface/custom-data.md#endpoints). An empty body has none.
func isCustomDataAlone(in directoryapi.NewAccount) bool {
	return in.CustomData.Present && in == directoryapi.NewAccount{CustomData: in.CustomData}
}

// UpdateAccount changes what the body names. A change of the email sets emailVerificationStatus to
// UNVERIFIED and invalidates the verification token and the reset tokens; it sends no mail
// (RequestVerification in verification.go sends one). The status of the tenant's owner cannot be
// changed: apierr.OwnerStatus. Of an account in a mirror directory only the status and the custom
// data can be changed: apierr.MirroredProperty. A disabled account keeps its tokens; they are
// refused at their next use (access.go).
func (s *Service) UpdateAccount(ctx context.Context, at id.Ref,
	in directoryapi.NewAccount) (directoryapi.Account, error) {
	before, err := s.store.Account(ctx, at.Tenant, at.ID)
	if err != nil {
		return before, err
	}
	policy, err := s.store.RegistrationPolicy(ctx, at.Tenant, before.DirectoryID)
	if err != nil {
		return before, err
	}
	mirror := policy.ProviderID != directoryapi.Native
	if mirror && in.Password.Present {
		return before, mirroredPropertyError("password")
	}
	var a directoryapi.Account
	update := func(tx *store.Tx, password store.NewPassword) (err error) {
		if before, err = tx.LockAccount(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		a = before
		if err := applyUpdate(&a, in, policy); err != nil {
			return err
		}
		if mirror {
			if name := ChangedProperty(before, a); name != "" {
				return mirroredPropertyError(name)
			}
			if in.Status.Present {
				if err := recordAssignedStatus(ctx, tx, &a); err != nil {
					return err
				}
			}
		}
		if err := tx.MergeAccountCustomData(ctx, at.Tenant, at.ID, in.CustomData.Value, s.now()); err != nil ||
			isCustomDataAlone(in) {
			return err
		}
		a.ModifiedAt = s.now()
		if in.Password.Present {
			a.PasswordModifiedAt = &a.ModifiedAt
			if err := tx.SetPassword(ctx, at.Tenant, at.ID, password); err != nil {
				return err
			}
			if err := tx.Emit(ctx,
				events.PasswordChanged{Tenant: at.Tenant, Account: at.ID, By: events.PasswordByAdministrator,
					ModifiedAt: a.ModifiedAt}); err != nil {
				return err
			}
		}
		if before.Status == directoryapi.Enabled && a.Status != directoryapi.Enabled {
			if err := tx.Emit(ctx, events.AccountDisabled{Tenant: at.Tenant, Account: at.ID}); err != nil {
				return err
			}
		}
		if in.Password.Present || field.LoginName(a.Email) != field.LoginName(before.Email) {
			if err := tx.EndResets(ctx, at.Tenant, at.ID, s.now()); err != nil {
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
		err = s.duplicateError(ctx, a)
	}
	if err != nil {
		return a, err
	}
	return s.WithVerificationToken(a)
}

// applyUpdate writes the body of an update into an account and validates it.
func applyUpdate(a *directoryapi.Account, in directoryapi.NewAccount, policy store.RegistrationPolicy) error {
	before := *a
	refusal := ApplyAccount(a, in, policy, false)
	// An account from before the schema required a name can be updated without that name.
	missing := CheckRequired(*a, policy.GivenNameRequired && before.GivenName != nil,
		policy.SurnameRequired && before.Surname != nil)
	if in.Password.Present {
		missing = field.First(missing, requirePassword(in.Password))
	}
	if refusal = field.First(refusal, missing); refusal != nil {
		return refusal
	}
	if a.Owner && a.Status != before.Status {
		return apierr.OwnerStatus.Because("the status of the tenant's owner cannot be changed")
	}
	if field.LoginName(a.Email) != field.LoginName(before.Email) {
		if err := maildomain.Check(policy.CreationPolicy, a.Email); err != nil {
			return err
		}
		// Clients send back the whole account that they have read: an unchanged status in the body
		// is that of the former email, and does not verify the new one.
		if a.EmailVerificationStatus == before.EmailVerificationStatus {
			a.EmailVerificationStatus = directoryapi.Unverified
		}
		a.VerificationSealed = nil // the token was mailed to the former email
	}
	if a.EmailVerificationStatus == directoryapi.Verified {
		a.VerificationSealed = nil
	}
	return nil
}

// verificationStatus reads a new emailVerificationStatus. UNKNOWN, which only accounts from before
// that field have, is accepted where the account has it.
func verificationStatus(in field.Text, fallback string) (string, error) {
	if fallback == directoryapi.Unknown && strings.EqualFold(in.Or(""), directoryapi.Unknown) {
		return fallback, nil
	}
	return field.Enum(in, "emailVerificationStatus", fallback, directoryapi.Verified, directoryapi.Unverified)
}

// ChangedProperty returns the name of a property, other than the status, in which two versions of
// an account differ; empty if none does.
func ChangedProperty(before, after directoryapi.Account) string {
	for _, property := range []struct{ name, before, after string }{
		{"username", before.Username, after.Username}, {"email", before.Email, after.Email},
		{"givenName", orEmpty(before.GivenName), orEmpty(after.GivenName)},
		{"middleName", orEmpty(before.MiddleName), orEmpty(after.MiddleName)},
		{"surname", orEmpty(before.Surname), orEmpty(after.Surname)},
		{"locale", orEmpty(before.Locale), orEmpty(after.Locale)},
		{"emailVerificationStatus", before.EmailVerificationStatus, after.EmailVerificationStatus},
		{"emailVerificationStatus", strconv.FormatBool(before.EmailAssumed), strconv.FormatBool(after.EmailAssumed)},
	} {
		if property.before != property.after {
			return property.name
		}
	}
	return ""
}

// orEmpty returns an optional text, empty for nil.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// DeleteAccount deletes an account (erasure of a user, GDPR); by its event the other services
// delete what they store of the account. The tenant's owner cannot be deleted: apierr.OwnerKept.
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
		return tx.Emit(ctx, events.AccountDeleted{Tenant: at.Tenant, Account: at.ID})
	})
}
