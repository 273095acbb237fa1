package directory

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory/store"
)

// maxPassword bounds every password, in characters, whatever the password policy allows.
const maxPassword = 255

// formerPasswords is how many hashes of former passwords an account keeps (password history) where
// its policy forbids reuse: together with the present one, as many as the highest preventReuse, so
// that raising preventReuse applies to passwords of before. Where preventReuse is 0, none is kept.
const formerPasswords = 24

// firstPassword returns what is stored of the password of a new account. An imported hash in the
// modular crypt format is stored as it is, and the password policy does not apply to it
// (docs/interface/accounts.md#password-hashes). Any other password is validated as changePassword
// does, without the password history, and hashed.
func (s *Service) firstPassword(ctx context.Context, in directoryapi.CreateAccount) (hash string, err error) {
	if in.HashedPassword {
		if err := requirePassword(in.Account.Password); err != nil {
			return "", err
		}
		if hash, err = pwhash.ParseImported(in.Account.Password.Value, s.Alias()); err != nil {
			return "", apierr.Format.Because("password is in an invalid format; it is no hash that can be imported: %s",
				err).
				Saying("The imported password is in an invalid format.")
		}
		return hash, nil
	}
	if _, err := s.checkNewPassword(ctx, in.Tenant, in.Directory, in.Account.Password); err != nil {
		return "", err
	}
	return s.passwords.Hash(ctx, in.Tenant, secure.Secret(in.Account.Password.Value))
}

// changePassword validates a new password of an account against the policy of its directory
// (strength.go) and the password history, and calls set in a transaction to store it. It returns
// apierr.Required, the errors of checkStrength, apierr.PasswordReused, apierr.Unavailable when too
// many passwords are being hashed, or the error of set.
//
// No transaction is open while hashes are computed. Where the policy forbids reuse and another
// password was set in between, the transaction is rolled back and the password is compared with
// that one too: of two concurrent changes to the same password, one is refused as reuse.
func (s *Service) changePassword(ctx context.Context, account directoryapi.Account, in field.Text,
	set func(*store.Tx, store.NewPassword) error) error {
	policy, err := s.checkNewPassword(ctx, account.TenantID, account.DirectoryID, in)
	if err != nil {
		return err
	}
	compared, err := s.checkReuse(ctx, account, policy.PreventReuse, nil, in.Value)
	if err != nil {
		return err
	}
	var password store.NewPassword
	if password.Hash, err = s.passwords.Hash(ctx, account.TenantID, secure.Secret(in.Value)); err != nil {
		return err
	}
	if policy.PreventReuse > 0 {
		password.KeepFormer = formerPasswords
	}
	for { // repeats only where another password was set in between
		if len(compared) > 0 {
			password.Replaces = compared[0]
		}
		err := s.store.Tx(ctx, func(tx *store.Tx) error { return set(tx, password) })
		if !errors.Is(err, store.ErrPasswordChanged) {
			return err
		}
		if compared, err = s.checkReuse(ctx, account, policy.PreventReuse, compared, in.Value); err != nil {
			return err
		}
	}
}

// checkReuse returns apierr.PasswordReused if a new password is one of the last entries of the
// password history of the account; its present password is the first entry. It returns the hashes
// of these entries in that order. Hashes in compared are known to differ and are not compared
// again.
func (s *Service) checkReuse(ctx context.Context, account directoryapi.Account, entries int, compared []string,
	password string) ([]string, error) {
	if entries == 0 {
		return nil, nil
	}
	hashes, err := s.store.PasswordHashes(ctx, account.TenantID, account.ID, entries)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(hashes), func(hash string) bool { return slices.Contains(compared, hash) })
	used, err := s.passwords.MatchesAny(ctx, account.TenantID, others, secure.Secret(password))
	if err != nil {
		return nil, err
	}
	if used {
		return nil, apierr.PasswordReused.Because("the password is one of the last %d of the account", entries)
	}
	return hashes, nil
}

// checkNewPassword returns an error for a password that is missing or that the password policy of
// the directory does not allow (checkStrength). It also returns that policy.
func (s *Service) checkNewPassword(ctx context.Context, tenant, directory id.ID,
	in field.Text) (store.PasswordPolicy, error) {
	if err := requirePassword(in); err != nil {
		return store.PasswordPolicy{}, err
	}
	policy, err := s.store.PasswordPolicy(ctx, tenant, directory)
	if err != nil {
		return policy, err
	}
	return policy, checkStrength(policy, in.Value)
}

// requirePassword returns apierr.Required for a password that is missing, null, empty or blank.
func requirePassword(password field.Text) error {
	if strings.TrimSpace(password.Or("")) == "" {
		return explainRequired(apierr.Required.Because("password is required; it cannot be null, empty or blank"),
			"password")
	}
	return nil
}
