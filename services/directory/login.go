package directory

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/directory/store"
)

// The types of provider whose accounts an agent copies (LDAP, Active Directory).
const (
	LDAP = "ldap"
	AD   = "ad"
)

// unansweredFor is how long after a check without a result anonymous logins are refused that might
// need the agent.
const unansweredFor = time.Minute

// Authenticate checks the password of a login (user name or email). The first of the account
// stores that contains an account of that login with a password decides. One hash is computed
// whether or not an account was found, and the status of an account shows only with the right
// password: neither the error nor the time allows user enumeration. Passwords of LDAP and Active
// Directory accounts are checked there, by an agent (agent/check.go). Failed logins are counted in
// services/application/throttle/throttle.go.
func (s *Service) Authenticate(ctx context.Context, in directoryapi.Authenticate) (directoryapi.Authenticated, error) {
	ctx, span := telemetry.Span(ctx, "directory.Authenticate")
	defer span.End()
	found, err := s.store.FindLogin(ctx, in.Tenant, in.Stores, in.Login)
	absent := errors.Is(err, apierr.NotFound)
	if err != nil && !absent {
		return directoryapi.Authenticated{}, err
	}
	if in.Anonymous {
		if err := s.refuseUnsettled(ctx, in, found); err != nil {
			return directoryapi.Authenticated{}, err
		}
	}
	var match, stale bool
	if isCheckedByAgent(found) {
		err = s.cfg.CheckByAgent(ctx, found, in.Password)
		match = err == nil
	} else {
		match, stale, err = s.verifyPassword(ctx, in, found)
	}
	switch {
	case err != nil:
		return directoryapi.Authenticated{}, err
	case absent:
		return directoryapi.Authenticated{}, apierr.NoSuchAccount
	case !match:
		return directoryapi.Authenticated{}, apierr.WrongPassword
	}
	if err := s.checkPasswordLogin(ctx, found); err != nil {
		return directoryapi.Authenticated{}, err
	}
	if stale {
		if err := s.rehash(ctx, found, in.Password); err != nil { // the next login tries again
			slog.WarnContext(ctx, "rehash of a password failed, keeping its former hash", "error", err.Error())
		}
	}
	account, err := s.WithVerificationToken(found.Account)
	return directoryapi.Authenticated{
		Account: account, Store: directoryapi.Store{Kind: found.StoreKind, ID: found.StoreID},
	}, err
}

// verifyPassword compares the password with the hash: a wait for a worker and the hash, which are a span.
func (s *Service) verifyPassword(ctx context.Context, in directoryapi.Authenticate,
	found store.Candidate) (match, stale bool, err error) {
	ctx, span := telemetry.Span(ctx, "password.verify")
	defer span.End()
	return s.passwords.Verify(ctx, in.Tenant, found.PasswordHash, in.Password)
}

// checkPasswordLogin returns the error of a login with the right password: that of
// CheckLoginAllowed, or apierr.OutsideDomains in a mirror directory.
func (s *Service) checkPasswordLogin(ctx context.Context, found store.Candidate) error {
	if err := CheckLoginAllowed(found); err != nil || found.ProviderID == directoryapi.Native {
		return err
	}
	return s.CheckAccountDomain(ctx, found.Account)
}

// CheckLoginAllowed returns the error for an account that may not log in because of its own status
// or that of its directory or group, and nil for one that may.
func CheckLoginAllowed(found store.Candidate) error {
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

// rehash stores the password by argon2id with the configured cost, in place of an imported hash or
// one of another cost.
func (s *Service) rehash(ctx context.Context, found store.Candidate, password secure.Secret) error {
	hash, err := s.passwords.Hash(ctx, found.TenantID, password)
	if err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.ReplaceHash(ctx, found.TenantID, found.ID, found.PasswordHash, hash)
	})
}

// isCheckedByAgent reports whether the password of an account is checked at its LDAP or Active
// Directory server: no hash of it is stored here.
func isCheckedByAgent(found store.Candidate) bool {
	return found.PasswordHash == "" && (found.ProviderID == LDAP || found.ProviderID == AD)
}

// refuseUnsettled refuses an anonymous login while the agent of an account store does not answer,
// unless a store before that one has the login: neither the error nor the time may tell whether the
// directory has it (user enumeration).
func (s *Service) refuseUnsettled(ctx context.Context, in directoryapi.Authenticate, found store.Candidate) error {
	first, err := s.store.FirstUnanswered(ctx, in.Tenant, in.Stores, s.now().Add(-unansweredFor))
	if err != nil || first == 0 {
		return err
	}
	settled := slices.ContainsFunc(in.Stores[:first-1], func(before directoryapi.Store) bool {
		return before.Kind == found.StoreKind && before.ID == found.StoreID
	})
	if settled {
		return nil
	}
	return apierr.Unavailable.Because("the agent of a directory does not answer; repeat the request later").
		WithRetryAfter(unansweredFor)
}
