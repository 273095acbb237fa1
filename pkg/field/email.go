package field

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
)

// Email takes an address: a local part, one @, and a domain with a dot inside, all
// without white space and characters that cannot be seen (see Visible). Else 2006.
// It is no stricter: carriers give out addresses that RFC 5322 has not, such as
// jo..doe@example.com, and whether mail reaches one is for mail servers to say.
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

// SameMailbox reports whether two emails are surely those of one mailbox: they differ at
// most in the case of ASCII letters. Fold, by which emails are unique and looked up, also
// joins what mail servers and domains keep apart, such as ß and ss: it proves nothing of
// who reads the mail.
func SameMailbox(a, b string) bool {
	lower := func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}
	return strings.Map(lower, norm.NFC.String(a)) == strings.Map(lower, norm.NFC.String(b))
}

// isLookalike recognises the dots of other scripts (RFC 3490, section 3.1) and
// what Unicode takes for a dot or an @: addresses that differ by one look the same.
func isLookalike(r rune) bool {
	return r > unicode.MaxASCII && (r == '\u3002' || r == '\uff61' || strings.ContainsAny(norm.NFKC.String(string(r)), ".@"))
}
