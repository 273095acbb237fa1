package directory

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// maxResetTokenTTL is the longest life of a password reset token, in hours
// (docs/interface/accounts.md#password-reset).
const maxResetTokenTTL = 168

// PasswordPolicyChange is the body that updates a password policy.
type PasswordPolicyChange struct {
	ResetTokenTTL           field.Int  `json:"resetTokenTtl"`
	ResetEmailStatus        field.Text `json:"resetEmailStatus"`
	ResetSuccessEmailStatus field.Text `json:"resetSuccessEmailStatus"`
}

// PasswordPolicy returns the password policy of a directory, or apierr.NotFound.
func (s *Service) PasswordPolicy(ctx context.Context, directory id.Ref) (store.PasswordPolicy, error) {
	return s.store.PasswordPolicy(ctx, directory.Tenant, directory.ID)
}

// UpdatePasswordPolicy changes what the body names. That of a mirror is
// apierr.MirroredProperty.
func (s *Service) UpdatePasswordPolicy(ctx context.Context, directory id.Ref, in PasswordPolicyChange) (store.PasswordPolicy, error) {
	return s.changePasswordPolicy(ctx, directory, func(p *store.PasswordPolicy) error {
		var refused field.Refusals
		refused.Whole(&p.ResetTokenTTL, in.ResetTokenTTL, "resetTokenTtl", 1, maxResetTokenTTL)
		refused.Enum(&p.ResetEmailStatus, in.ResetEmailStatus, "resetEmailStatus", directoryapi.Enabled, directoryapi.Disabled)
		refused.Enum(
			&p.ResetSuccessEmailStatus, in.ResetSuccessEmailStatus, "resetSuccessEmailStatus", directoryapi.Enabled, directoryapi.Disabled,
		)
		return refused.First()
	})
}

// changePasswordPolicy lets change work on the policy under its lock.
func (s *Service) changePasswordPolicy(ctx context.Context, directory id.Ref,
	change func(*store.PasswordPolicy) error) (store.PasswordPolicy, error) {
	var p store.PasswordPolicy
	if err := s.checkCloudPolicies(ctx, directory.Tenant, directory.ID); err != nil {
		return p, err
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockPasswordPolicy(ctx, directory.Tenant, directory.ID); err != nil {
			return err
		}
		if err := change(&p); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		return tx.UpdatePasswordPolicy(ctx, p)
	})
	return p, err
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
	var missing, sentences []string // for the developer, and for the end user
	for _, class := range []struct {
		name, kind  string
		least, have int
	}{
		{"lower-case letter", "lowercase", p.MinLowerCase, found.Lower},
		{"upper-case letter", "uppercase", p.MinUpperCase, found.Upper},
		{"number", "numeric", p.MinNumeric, found.Numeric},
		{"symbol", "symbol", p.MinSymbol, found.Symbol},
		{"letter with a diacritic", "diacritic", p.MinDiacritic, found.Diacritic},
	} {
		if class.have < class.least {
			missing = append(missing, plural(class.least, class.name))
			sentences = append(sentences, "Password requires at least "+plural(class.least, class.kind+" character")+".")
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
			Saying("%s", strings.Join(sentences, " "))
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
