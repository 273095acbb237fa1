package field

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
)

// Email validates the format of an email address: a local part, one @, and a domain with a dot inside,
// without white space and invisible characters (see Visible). It returns apierr.Format (2006) for
// another text. It is not stricter, because some providers assign addresses that RFC 5322 does not
// allow, such as jo..doe@example.com.
func Email(name, value string) error {
	local, domain, _ := strings.Cut(value, "@")
	hasDot := strings.Contains(domain, ".") && strings.Trim(domain, ".") == domain
	if local == "" || !hasDot || strings.Contains(domain, "@") || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsSpace) ||
		strings.ContainsFunc(value, isLookalike) || Visible(name, value) != nil {
		return apierr.Format.Because("%s %q is not an email address such as jo@example.com", name, value).
			Saying("That is not an email address. Please enter one such as jo@example.com.")
	}
	return nil
}

// SameMailbox reports whether two emails are certainly those of one mailbox: they differ at most in
// the case of ASCII letters. Equality by Fold does not prove that, because Fold also makes texts
// equal that are different domains and mailboxes, such as ß and ss.
func SameMailbox(a, b string) bool {
	lower := func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}
	return strings.Map(lower, norm.NFC.String(a)) == strings.Map(lower, norm.NFC.String(b))
}

// isLookalike reports whether a character looks like a dot or an @ (homoglyph): the dots of other
// scripts (RFC 3490, section 3.1), and characters that NFKC maps to a dot or an @.
func isLookalike(r rune) bool {
	return r > unicode.MaxASCII && (r == '\u3002' || r == '\uff61' || strings.ContainsAny(norm.NFKC.String(string(r)), ".@"))
}
