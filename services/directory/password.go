package directory

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory/store"
)

// maxPassword bounds every password, in characters, whatever a directory's
// policy allows.
const maxPassword = 255

// formerPasswords is how many former hashes are kept where a policy forbids
// reuse: with the present one, as many as the highest preventReuse. Raising
// preventReuse later finds them; where it is 0, none is kept.
const formerPasswords = 24

// firstPassword returns the stored form of the password that an account is made
// with: a hash in the modular crypt format is stored as it is, without regard
// to the policy (docs/interface/accounts.md#password-hashes); any other password is checked as
// changePassword does, except that nothing was used before.
func (s *Service) firstPassword(ctx context.Context, in directoryapi.CreateAccount) (hash string, err error) {
	if in.HashedPassword {
		if err := given(in.Account.Password); err != nil {
			return "", err
		}
		if hash, err = pwhash.ParseImported(in.Account.Password.Value, s.Alias()); err != nil {
			return "", apierr.Format.Because("password is in an invalid format; it is no hash that can be imported: %s", err).
				Saying("The imported password is in an invalid format.")
		}
		return hash, nil
	}
	if _, err := s.checkPassword(ctx, in.Tenant, in.Directory, in.Account.Password); err != nil {
		return "", err
	}
	return s.passwords.Hash(ctx, in.Tenant, secure.Secret(in.Account.Password.Value))
}

// changePassword checks another password of an account against the policy of
// its directory, and lets set write it in a transaction. It returns
// apierr.Required, the refusals of checkStrength, apierr.PasswordReused,
// apierr.Unavailable when too many passwords are being checked, or what set
// returns.
//
// The passwords are compared while no transaction is open. Where reuse is
// forbidden, another change that came in between undoes the transaction, and the
// password is compared with that one too: of two changes at once to the same
// password one is reuse.
func (s *Service) changePassword(ctx context.Context, account directoryapi.Account, in field.Text,
	set func(*store.Tx, store.NewPassword) error) error {
	policy, err := s.checkPassword(ctx, account.TenantID, account.DirectoryID, in)
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
		password.Former = formerPasswords
	}
	for { // once more only where another change was made
		if len(compared) > 0 {
			password.Follows = compared[0]
		}
		err := s.store.Tx(ctx, func(tx *store.Tx) error { return set(tx, password) })
		if !errors.Is(err, store.ErrPasswordMoved) {
			return err
		}
		if compared, err = s.checkReuse(ctx, account, policy.PreventReuse, compared, in.Value); err != nil {
			return err
		}
	}
}

// checkReuse refuses a password that is one of the last entries of the
// account's password history, of which the present password is the first. It returns the
// hashes of these entries, in that order; those that were compared before are
// passed over.
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
