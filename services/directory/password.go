package directory

import (
	"context"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// maxPassword bounds every password, in characters, whatever a directory's
// policy allows.
const maxPassword = 255

// newPassword checks a password against the directory's policy and hashes it.
func (s *Service) newPassword(ctx context.Context, tenant, directory id.ID, in field.Text) (hash string, err error) {
	if in.Or("") == "" {
		return "", apierr.Required.Because("password is required; it cannot be null or empty")
	}
	policy, err := s.store.PasswordPolicy(ctx, tenant, directory)
	if err != nil {
		return "", err
	}
	if err := checkStrength(policy, in.Value); err != nil {
		return "", err
	}
	return s.passwords.Hash(ctx, secure.Secret(in.Value))
}

// checkStrength refuses a password that the policy finds too weak: too short
// is 2007, too long 2008, a missing class of characters 400 (resolutions,
// section 12.3).
func checkStrength(p store.PasswordPolicy, password string) error {
	length := utf8.RuneCountInString(password)
	switch {
	case length < p.MinLength:
		return apierr.TooShort.Because("password has %d characters; at least %d are required", length, p.MinLength).
			Saying("The password must have at least %d characters.", p.MinLength)
	case length > min(p.MaxLength, maxPassword):
		return apierr.TooLong.Because("password has %d characters; at most %d are allowed", length, min(p.MaxLength, maxPassword)).
			Saying("The password must have at most %d characters.", min(p.MaxLength, maxPassword))
	}
	found := count(password)
	for _, class := range []struct {
		name        string
		least, have int
	}{
		{"lower-case letter", p.MinLowerCase, found.lower},
		{"upper-case letter", p.MinUpperCase, found.upper},
		{"digit", p.MinNumeric, found.digit},
		{"symbol", p.MinSymbol, found.symbol},
		{"letter with a diacritic", p.MinDiacritic, found.diacritic},
	} {
		if class.have < class.least {
			return apierr.BadRequest.Because("password requires at least %d %s", class.least, class.name).
				Saying("The password requires at least %d %s.", class.least, class.name)
		}
	}
	return nil
}

type classes struct{ lower, upper, digit, symbol, diacritic int }

// count sorts the characters of a password into classes. A letter carries a
// diacritic when its canonical decomposition (Unicode NFD) holds a combining
// mark; it counts as a letter of its case too. A symbol is what is neither
// letter, digit, mark, space nor control character.
func count(password string) (c classes) {
	for _, r := range norm.NFC.String(password) {
		switch {
		case unicode.IsDigit(r):
			c.digit++
		case unicode.IsLower(r):
			c.lower++
		case unicode.IsUpper(r):
			c.upper++
		case unicode.IsPunct(r) || unicode.IsSymbol(r):
			c.symbol++
		}
		if unicode.IsLetter(r) {
			for _, part := range norm.NFD.String(string(r)) {
				if unicode.Is(unicode.Mn, part) {
					c.diacritic++
					break
				}
			}
		}
	}
	return c
}
