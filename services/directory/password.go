package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
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
			return "", apierr.Format.Because("password is in an invalid format; it is no hash that can be imported: %s", err)
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

// checkPassword refuses a password that is missing or too weak, and returns the
// policy that it kept.
func (s *Service) checkPassword(ctx context.Context, tenant, directory id.ID, in field.Text) (store.PasswordPolicy, error) {
	if err := given(in); err != nil {
		return store.PasswordPolicy{}, err
	}
	policy, err := s.store.PasswordPolicy(ctx, tenant, directory)
	if err != nil {
		return policy, err
	}
	return policy, checkStrength(policy, in.Value)
}

func given(password field.Text) error {
	if strings.TrimSpace(password.Or("")) == "" {
		return apierr.Required.Because("password is required; it cannot be null, empty or blank")
	}
	return nil
}

// checkStrength applies the password policy: it refuses a password whose strength
// (complexity) is below it, and says all that it lacks: too short is 2007, else too long 2008, else a missing class of
// characters 400 (docs/interface/accounts.md#password-policy). Characters are
// counted in Unicode's normal form C, as they are hashed: a password is as long
// whatever keyboard it was typed on.
func checkStrength(p store.PasswordPolicy, password string) error {
	if strings.ContainsRune(password, 0) {
		return apierr.Format.Because("password must not contain the character NUL")
	}
	most := min(p.MaxLength, maxPassword)
	if len(password) > secure.MaxPassword { // it is too long in every form, and not worth the work
		return tooLong(utf8.RuneCountInString(password), most, nil)
	}
	length, found := utf8.RuneCountInString(norm.NFC.String(password)), secure.CountCharacters(password)
	var missing []string
	for _, class := range []struct {
		name        string
		least, have int
	}{
		{"lower-case letter", p.MinLowerCase, found.Lower},
		{"upper-case letter", p.MinUpperCase, found.Upper},
		{"number", p.MinNumeric, found.Numeric},
		{"symbol", p.MinSymbol, found.Symbol},
		{"letter with a diacritic", p.MinDiacritic, found.Diacritic},
	} {
		if class.have < class.least {
			missing = append(missing, plural(class.least, class.name))
		}
	}
	switch {
	case length < p.MinLength:
		return apierr.TooShort.Because("password has %s and needs at least %s",
			plural(length, "character"), field.And(append([]string{plural(p.MinLength, "character")}, missing...))).
			Saying("Account password minimum length not satisfied.")
	case length > most:
		return tooLong(length, most, missing)
	case len(missing) > 0:
		return apierr.BadRequest.Because("password needs at least %s", field.And(missing)).
			Saying("The password needs at least %s.", field.And(missing))
	}
	return nil
}

func tooLong(length, most int, missing []string) error {
	rule := "may have at most " + plural(most, "character")
	if len(missing) > 0 {
		rule += " and needs at least " + field.And(missing)
	}
	return apierr.TooLong.Because("password has %s; it %s", plural(length, "character"), rule).Saying("The password %s.", rule)
}

// plural is a number with its noun: "1 letter", "2 letters with a diacritic".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	first, rest, _ := strings.Cut(noun, " ")
	if first == "letter" && rest != "" {
		return fmt.Sprintf("%d letters %s", n, rest)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
