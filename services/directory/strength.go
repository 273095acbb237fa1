package directory

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// maxPreventReuse is the largest preventReuse: how many of the last passwords of an account may
// not be used again (password history, password.go).
const maxPreventReuse = 25

// StrengthChange is the body that updates the strength (complexity) that a password policy
// requires.
type StrengthChange struct {
	MinLength    field.Int `json:"minLength"`
	MaxLength    field.Int `json:"maxLength"`
	MinLowerCase field.Int `json:"minLowerCase"`
	MinUpperCase field.Int `json:"minUpperCase"`
	MinNumeric   field.Int `json:"minNumeric"`
	MinSymbol    field.Int `json:"minSymbol"`
	MinDiacritic field.Int `json:"minDiacritic"`
	PreventReuse field.Int `json:"preventReuse"`
}

// UpdateStrength changes the members of a policy's strength that the body names. It returns
// apierr.StrengthContradicts where no password could meet the result, and apierr.MirroredProperty
// for a mirror directory. checkStrength enforces the strength.
func (s *Service) UpdateStrength(ctx context.Context, directory id.Ref,
	in StrengthChange) (store.PasswordPolicy, error) {
	return s.changePasswordPolicy(ctx, directory, func(p *store.PasswordPolicy) error {
		var errs field.Errors
		errs.Int(&p.MinLength, in.MinLength, "minLength", 1, maxPassword)
		errs.Int(&p.MaxLength, in.MaxLength, "maxLength", 1, maxPassword)
		errs.Int(&p.MinLowerCase, in.MinLowerCase, "minLowerCase", 0, maxPassword)
		errs.Int(&p.MinUpperCase, in.MinUpperCase, "minUpperCase", 0, maxPassword)
		errs.Int(&p.MinNumeric, in.MinNumeric, "minNumeric", 0, maxPassword)
		errs.Int(&p.MinSymbol, in.MinSymbol, "minSymbol", 0, maxPassword)
		errs.Int(&p.MinDiacritic, in.MinDiacritic, "minDiacritic", 0, maxPassword)
		errs.Int(&p.PreventReuse, in.PreventReuse, "preventReuse", 0, maxPreventReuse)
		if err := errs.First(); err != nil {
			return err
		}
		return checkContradiction(*p)
	})
}

// checkContradiction refuses a strength whose lower bounds exceed maxLength
// (docs/interface/limits.md#field-limits).
func checkContradiction(p store.PasswordPolicy) error {
	if p.MinLength > p.MaxLength {
		return apierr.StrengthContradicts.Because("minLength would be %d and maxLength %d", p.MinLength, p.MaxLength)
	}
	if sum := p.MinLowerCase + p.MinUpperCase + p.MinNumeric + p.MinSymbol + p.MinDiacritic; sum > p.MaxLength {
		return apierr.StrengthContradicts.Because(
			"the minimums of the character classes would add up to %d and maxLength be %d", sum,
			p.MaxLength)
	}
	return nil
}

// tooShort is a text that clients compare (docs/interface/errors.md#texts-that-clients-compare).
const tooShort = "Account password minimum length not satisfied."

// checkStrength validates a new password against the strength of the password policy (length,
// complexity). Its error says all that the password lacks: 2007 if it is too short, else 2008 if
// it is too long, else 400 if it lacks characters of a class
// (docs/interface/accounts.md#password-policy). Characters are counted in Unicode's normal form C,
// as they are hashed: the length does not depend on the keyboard.
func checkStrength(p store.PasswordPolicy, password string) error {
	if strings.ContainsRune(password, 0) {
		return apierr.Format.Because("password must not contain the character NUL")
	}
	maxLength := min(p.MaxLength, maxPassword)
	if len(password) > secure.MaxPassword { // too long in every normal form: counting exactly would only cost time
		return passwordTooLong(utf8.RuneCountInString(password), maxLength, nil)
	}
	length, found := utf8.RuneCountInString(norm.NFC.String(password)), secure.CountCharacters(password)
	var missing, sentences []string // for the developer, and for the end user
	for _, class := range []struct {
		name        string
		least, have int
	}{
		{"lowercase", p.MinLowerCase, found.Lower},
		{"uppercase", p.MinUpperCase, found.Upper},
		{"numeric", p.MinNumeric, found.Numeric},
		{"symbol", p.MinSymbol, found.Symbol},
		{"diacritic", p.MinDiacritic, found.Diacritic},
	} {
		if class.have < class.least {
			missing = append(missing, countOfCharacters(class.least, class.name+" "))
			sentences = append(sentences, "Password requires at least "+missing[len(missing)-1]+".")
		}
	}
	switch {
	case length < p.MinLength:
		return apierr.TooShort.Because(tooShort+" password has %s and needs at least %s",
			countOfCharacters(length, ""), field.And(append([]string{countOfCharacters(p.MinLength, "")}, missing...))).
			Saying(tooShort)
	case length > maxLength:
		return passwordTooLong(length, maxLength, missing)
	case len(missing) > 0:
		return apierr.BadRequest.Because("password requires at least %s", field.And(missing)).
			Saying("%s", strings.Join(sentences, " "))
	}
	return nil
}

// passwordTooLong returns apierr.TooLong for a password of that length. missing are the classes of
// characters that it lacks besides.
func passwordTooLong(length, maxLength int, missing []string) error {
	rule := "may have at most " + countOfCharacters(maxLength, "")
	if len(missing) > 0 {
		rule += " and needs at least " + field.And(missing)
	}
	return apierr.TooLong.Because("password has %s; it %s", countOfCharacters(length, ""), rule).
		Saying("The password %s.", rule)
}

// countOfCharacters is a count in words: "1 numeric character", "2 characters".
func countOfCharacters(n int, kind string) string {
	if n == 1 {
		return "1 " + kind + "character"
	}
	return fmt.Sprintf("%d %scharacters", n, kind)
}
