package directory

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// Literals that old clients compare (docs/interface/errors.md#body).
const (
	noAccount = "Login attempt failed because there is no Account in the Application's associated Account Stores " +
		"with the specified username or email."
	wrongPassword = "Login attempt failed because the specified password is incorrect."
)

// Refusals of an unknown login and of a wrong password.
var (
	errNoAccount     = apierr.NoSuchAccount.Because(noAccount)
	errWrongPassword = apierr.WrongPassword.Because(wrongPassword)
)

// Authenticate checks a password. The first of the stores that holds an account
// of that login with a password decides. One hash is computed whether or not an
// account was found, and the state of an account shows only with the right password:
// neither answer nor timing allows user enumeration. Passwords of LDAP and Active
// Directory are compared there, by an agent.
func (s *Service) Authenticate(ctx context.Context, in directoryapi.Authenticate) (directoryapi.Authenticated, error) {
	found, err := s.store.FindLogin(ctx, in.Tenant, in.Stores, in.Login)
	absent := errors.Is(err, apierr.NotFound)
	if err != nil && !absent {
		return directoryapi.Authenticated{}, err
	}
	var match, stale bool
	if delegated(found) {
		err = s.delegate(ctx, found, in.Password)
		match = err == nil
	} else {
		match, stale, err = s.passwords.Verify(ctx, in.Tenant, found.PasswordHash, in.Password)
	}
	switch {
	case err != nil:
		return directoryapi.Authenticated{}, err
	case absent:
		return directoryapi.Authenticated{}, errNoAccount
	case !match:
		return directoryapi.Authenticated{}, errWrongPassword
	}
	if err := checkAdmission(found); err != nil {
		return directoryapi.Authenticated{}, err
	}
	if stale {
		s.rehash(ctx, found, in.Password)
	}
	account, err := s.unsealed(found.Account)
	return directoryapi.Authenticated{Account: account, Store: directoryapi.Store{Kind: found.StoreKind, ID: found.StoreID}}, err
}

// checkAdmission returns the refusal of an account that may not log in, because of its own
// state or that of its account store, and nil where it may.
func checkAdmission(found store.Candidate) error {
	switch {
	case found.DirectoryStatus != directoryapi.Enabled:
		return apierr.DirectoryDisabled.Because("the directory of the account is disabled")
	case found.StoreStatus != directoryapi.Enabled:
		return apierr.GroupDisabled.Because("the group through which the account is reached is disabled")
	case found.Status == directoryapi.Disabled:
		return apierr.AccountDisabled.Because("the account is disabled")
	case found.Status == directoryapi.Locked:
		return apierr.AccountLocked.Because("the account is locked")
	case found.Status == directoryapi.Unverified:
		return apierr.AccountUnverified.Because("the email of the account is not verified yet")
	}
	return nil
}

// rehash stores the password under the configured cost. A login does not fail
// because of it: the next one tries again.
func (s *Service) rehash(ctx context.Context, found store.Candidate, password secure.Secret) {
	hash, err := s.passwords.Hash(ctx, found.TenantID, password)
	if err == nil {
		err = s.store.Tx(ctx, func(tx *store.Tx) error {
			return tx.ReplacePassword(ctx, found.TenantID, found.ID, found.PasswordHash, hash)
		})
	}
	if err != nil {
		slog.WarnContext(ctx, "rehash of a password failed, keeping its former hash", "error", err.Error())
	}
}

// CheckAccess reports whether an account may act through one of the stores now.
func (s *Service) CheckAccess(ctx context.Context, in directoryapi.CheckAccess) (directoryapi.Access, error) {
	found, err := s.access(ctx, in)
	switch {
	case errors.Is(err, apierr.NotFound):
		return directoryapi.Access{}, apierr.TokenAccountDisabled.Because("the account was deleted")
	case err != nil:
		return directoryapi.Access{}, err
	case found.Status != directoryapi.Enabled:
		return directoryapi.Access{Account: found.Account}, apierr.TokenAccountDisabled.Because("the account has the status %s", found.Status)
	}
	at, err := s.reached(ctx, found.Account, in.Stores)
	access := directoryapi.Access{Account: found.Account, Direct: at.direct}
	switch {
	case err != nil:
		return access, err
	case !at.reached:
		return access, apierr.TokenAccountUnreachable.Because("the account is in no account store of the application")
	case !at.open || found.DirectoryStatus != directoryapi.Enabled:
		return access, apierr.TokenStoreDisabled.Because(
			"the directory of the account, or each group through which it is reached, is disabled")
	}
	access.Account, err = s.unsealed(found.Account)
	return access, err
}

// AccessChanges returns the accounts and directories whose access has changed.
func (s *Service) AccessChanges(_ context.Context, after changefeed.Position) (changefeed.Page, error) {
	return s.store.AccessChanges(after), nil
}

// access reads as much of an account as CheckAccess returns, or apierr.NotFound.
func (s *Service) access(ctx context.Context, in directoryapi.CheckAccess) (store.Held, error) {
	var a store.Access
	var err error
	switch {
	case !in.Brief:
		return s.store.Held(ctx, in.Tenant, in.Account)
	case in.Recent:
		a, err = s.store.RecentAccess(ctx, in.Tenant, in.Account)
	default:
		a, err = s.store.Access(ctx, in.Tenant, in.Account)
	}
	account := directoryapi.Account{TenantID: in.Tenant, ID: in.Account, DirectoryID: a.DirectoryID, Status: a.Status,
		PasswordModifiedAt: a.PasswordModifiedAt, CreatedAt: a.CreatedAt}
	return store.Held{Account: account, DirectoryStatus: a.DirectoryStatus}, err
}

// reach is how stores hold an account.
type reach struct {
	reached bool // a store holds it
	open    bool // one does that is not a disabled group
	direct  bool // its directory is one
}

// reached returns how stores hold an account. The groups matter where its directory is
// not a store.
func (s *Service) reached(ctx context.Context, a directoryapi.Account, stores []directoryapi.Store) (reach, error) {
	directories, groups := split(stores)
	if slices.Contains(directories, a.DirectoryID) {
		return reach{true, true, true}, nil
	}
	if len(groups) == 0 {
		return reach{}, nil
	}
	through, err := s.store.Through(ctx, a.TenantID, a.ID, groups)
	return reach{reached: through.Groups > 0, open: through.Enabled > 0}, err
}
