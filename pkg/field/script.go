package field

import (
	"strings"
	"unicode"
)

// confusableScripts are the scripts whose letters look like those of each other (homoglyphs), such as
// a, Cyrillic а and Greek α.
var confusableScripts = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek}

// MixesScripts reports whether a word of a login name, in its normal form, has letters of several of the
// confusable scripts (mixed-script detection, Unicode UTS #39, section 5.1): such a name may imitate
// another's. A word ends at what is no letter, mark or digit. A look-alike in one script, such as a
// Cyrillic о alone in its word, is not found.
func MixesScripts(login string) bool {
	login = LoginName(login)
	if isASCII(login) {
		return false
	}
	isSeparator := func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }
	for word := range strings.FieldsFuncSeq(login, isSeparator) {
		found := 0
		for _, script := range confusableScripts {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(script, r) }) {
				found++
			}
		}
		if found > 1 {
			return true
		}
	}
	return false
}
