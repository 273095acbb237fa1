package secure

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Characters has the number of characters of each class in a password (password complexity).
type Characters struct{ Lower, Upper, Numeric, Symbol, Diacritic int }

// CountCharacters counts the characters of a password by class, by their Unicode categories, for
// the password policy (services/directory/passwordpolicy.go). A letter is lower case (Ll) or upper
// case (Lu and Lt, such as ǅ), or has no case, such as 漢, and is in neither class. Numeric are the
// numbers of all scripts (Nd, Nl, No). Symbols are punctuation and symbols (P, S), but not spaces. A
// letter followed by marks in the canonical decomposition (NFD), such as é, й or が, counts as a
// diacritic too. ø and ł do not decompose, and are no diacritics.
func CountCharacters(password string) (c Characters) {
	bare := false // the last character was a letter, without a mark so far
	for _, r := range norm.NFD.String(password) {
		if bare && unicode.Is(unicode.Mn, r) {
			c.Diacritic++
		}
		bare = unicode.IsLetter(r)
		switch {
		case unicode.Is(unicode.Ll, r):
			c.Lower++
		case unicode.In(r, unicode.Lu, unicode.Lt):
			c.Upper++
		case unicode.IsNumber(r):
			c.Numeric++
		case unicode.IsPunct(r) || unicode.IsSymbol(r):
			c.Symbol++
		}
	}
	return c
}
