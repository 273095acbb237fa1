package field

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the normal form of a text (normalization, case-insensitive comparison): Unicode NFKC,
// case folded. Names, user names and emails are unique by their normal form, and are looked up by it.
// Invalid UTF-8 is folded to U+FFFD.
func Fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text) // same result, faster
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	return norm.NFKC.String(strings.Map(cherokee, cases.Fold().String(norm.NFKC.String(text))))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// FoldOptional is Fold for an optional text; nil is folded to "".
func FoldOptional(text *string) string {
	if text == nil {
		return ""
	}
	return Fold(*text)
}

// cherokee folds the letters of Cherokee, the only script that folds to upper case (Unicode,
// CaseFolding.txt), which the library does not do.
func cherokee(r rune) rune {
	switch {
	case 0xab70 <= r && r <= 0xabbf:
		return r - 0xab70 + 0x13a0
	case 0x13f8 <= r && r <= 0x13fd:
		return r - 8
	}
	return r
}
