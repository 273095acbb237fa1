package secure

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Characters are the numbers of a password's characters of each class.
type Characters struct{ Lower, Upper, Numeric, Symbol, Diacritic int }

// CountCharacters sorts the characters of a password into classes, by their Unicode
// categories. A letter is lower case (Ll) or upper case (Lu and Lt, such as ǅ),
// or has no case, such as 漢, and is in neither class. Numeric are the numbers
// of all scripts (Nd, Nl, No). Symbols are punctuation and symbols (P, S), but
// not spaces. A letter followed by marks in the canonical decomposition (NFD),
// such as é, й or が, counts as a diacritic, besides its case; ø and ł are
// letters of their own there, and have none.
func CountCharacters(password string) (c Characters) {
	bare := false // whether the last character was a letter without a mark so far
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
