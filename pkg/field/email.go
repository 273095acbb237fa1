package field

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
)

// maxMailbox is the longest email address, in octets, that fits into a command of SMTP with its angle
// brackets and two quotes (RFC 5321, section 4.5.3.1.4).
const maxMailbox = 512 - len("RCPT TO:<\"\">\r\n")

// Email validates the format of an email address: a local part, one @, and a domain with a dot inside,
// without white space and invisible characters (see Visible). It returns apierr.Format (2006) for
// another text, and for all that the product's own mailer cannot send to: specials of RFC 5322 such as
// angle brackets and quotes, an address literal, an encoded line feed. It is not stricter, because some
// providers assign addresses that RFC 5322 does not allow, such as jo..doe@example.com.
func Email(name, value string) error {
	local, domain, _ := strings.Cut(value, "@")
	hasDot := strings.Contains(domain, ".")
	if local == "" || !hasDot || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsSpace) ||
		strings.ContainsFunc(value, isLookalike) || Visible(name, value) != nil ||
		strings.ContainsAny(local, specials) || encodedLine.MatchString(local) || !isMailDomain(domain) ||
		len(local)+len("@")+len(asciiDomain(domain)) > maxMailbox {
		return apierr.Format.Because("%s %q is not an email address such as jo@example.com", name, value).
			Saying("That is not an email address. Please enter one such as jo@example.com.")
	}
	return nil
}

// specials are the characters that have a meaning of their own in an address (RFC 5322, section 3.2.3),
// but for the dot and the @.
const specials = `()<>[]:;,\"`

// encodedLine matches a line feed that a careless program decodes: %0a of a mailto URL, and an encoded
// word (RFC 2047).
var encodedLine = regexp.MustCompile(`(?i)%0[ad]|=\?`)

// isMailDomain reports whether the labels of a domain are those of a host name, in any script.
func isMailDomain(domain string) bool {
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && !unicode.In(r, unicode.L, unicode.M, unicode.N)
		}) {
			return false
		}
	}
	return true
}

// asciiDomain returns a domain in its A-label form, which SMTP carries, or the domain itself where it
// has none.
func asciiDomain(domain string) string {
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		return ascii
	}
	return domain
}

// SameMailbox reports whether two emails are certainly those of one mailbox: they differ at most in
// the case of ASCII letters, and in the A-label form of the domain. Equality by LoginName does not
// prove that, because Fold also makes texts equal that are different domains and mailboxes, such as ß
// and ss.
func SameMailbox(a, b string) bool { return mailbox(a) == mailbox(b) }

func mailbox(email string) string {
	lower := func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}
	email = strings.Map(lower, norm.NFC.String(strings.TrimSpace(email)))
	at := strings.LastIndexByte(email, '@')
	if domain, err := idna.Punycode.ToASCII(email[at+1:]); err == nil {
		return email[:at+1] + domain
	}
	return email
}

// isLookalike reports whether a character looks like a dot or an @ (homoglyph): the dots of other
// scripts (RFC 3490, section 3.1), and characters that NFKC maps to a dot or an @.
func isLookalike(r rune) bool {
	return r > unicode.MaxASCII && (r == '\u3002' || r == '\uff61' ||
		strings.ContainsAny(norm.NFKC.String(string(r)), ".@"))
}
