package field

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the normal form of a text (normalization, case-insensitive comparison): Unicode NFKC,
// case folded, without joiners. Names are unique by their normal form, and are looked up by it; login
// names, emails among them, have LoginName. Invalid UTF-8 is folded to U+FFFD.
func Fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text) // same result, faster
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	return norm.NFKC.String(strings.Map(foldRune, cases.Fold().String(norm.NFKC.String(text))))
}

// LoginName returns the normal form of a login name, which is a user name or an email: Fold, without
// the white space around it, and with the domain of an email in one spelling. A domain and its A-label
// form (RFC 5890, punycode) are one domain: jo@xn--mnchen-3ya.example is jo@münchen.example. It is the
// one comparison of login names, at every door that reads one.
func LoginName(text string) string {
	return FoldLogin(strings.TrimSpace(text))
}

// FoldLogin is LoginName for a part of a login name, whose white space counts.
func FoldLogin(text string) string {
	text = Fold(text)
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	return text[:at+1] + decodeDomain(text[at+1:])
}

// Domain returns the normal form of a domain name: Fold, with its A-labels decoded.
func Domain(text string) string { return decodeDomain(Fold(text)) }

// decodeDomain decodes the A-labels of a folded domain name.
func decodeDomain(domain string) string {
	if !strings.Contains(domain, acePrefix) {
		return domain
	}
	labels := strings.Split(domain, ".")
	for i, label := range labels {
		if !strings.HasPrefix(label, acePrefix) {
			continue
		}
		// A label that is no valid A-label has one spelling alone.
		decoded, err := idna.Lookup.ToUnicode(label)
		if ascii, back := idna.Lookup.ToASCII(decoded); err == nil && back == nil && ascii == label {
			labels[i] = Fold(decoded)
		}
	}
	return strings.Join(labels, ".")
}

// acePrefix begins an A-label (RFC 5890, section 2.3.2.1).
const acePrefix = "xn--"

// FoldForSearch is Fold without accents: the search q finds Zoë by zoe, and the reverse. Letters that are
// no letter with an accent, such as ø and ł, keep their form, and so do the vowels and signs of scripts
// that write them as marks.
func FoldForSearch(text string) string {
	text = Fold(text)
	if isASCII(text) {
		return text
	}
	bare := strings.Map(func(r rune) rune {
		if unicode.Is(accents, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return norm.NFKC.String(bare)
}

// accents are the marks of Latin, Greek and Cyrillic letters (Unicode, Combining Diacritical Marks).
var accents = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0300, Hi: 0x036f, Stride: 1},
	{Lo: 0x1ab0, Hi: 0x1aff, Stride: 1},
	{Lo: 0x1dc0, Hi: 0x1dff, Stride: 1},
	{Lo: 0x20d0, Hi: 0x20ff, Stride: 1},
}}

// SearchText returns the text of a search column: the texts, each once and in the form in which the search q looks for
// them.
func SearchText(texts ...string) string {
	var parts []string
	for _, text := range texts {
		if part := FoldForSearch(text); part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n")
}

// OrEmpty returns an optional text, and "" where there is none.
func OrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
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

// foldRune folds what the library does not: the letters of Cherokee, the only script that folds to upper
// case (Unicode, CaseFolding.txt), and the invisible characters that a name may have (Name), so that no
// two names differ by them alone.
func foldRune(r rune) rune {
	switch {
	case 0xab70 <= r && r <= 0xabbf:
		return r - 0xab70 + 0x13a0
	case 0x13f8 <= r && r <= 0x13fd:
		return r - 8
	case isJoiner(r), r == emojiStyle:
		return -1
	}
	return r
}
