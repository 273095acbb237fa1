package field

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the normal form under which names, user names and emails are
// unique and are looked up: Unicode NFKC, case folded. What is no UTF-8 folds
// to U+FFFD: it has no normal form.
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

// FoldOptional is Fold for a text that may be absent, which folds to nothing.
func FoldOptional(text *string) string {
	if text == nil {
		return ""
	}
	return Fold(*text)
}

// cherokee folds the one script whose letters fold to upper case (Unicode,
// CaseFolding.txt), where the library swaps the two cases.
func cherokee(r rune) rune {
	switch {
	case 0xab70 <= r && r <= 0xabbf:
		return r - 0xab70 + 0x13a0
	case 0x13f8 <= r && r <= 0x13fd:
		return r - 8
	}
	return r
}
