package field

import (
	"net/mail"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
)

// Name is Required for the name of a user, a group or a directory: other people
// tell these apart by reading them. A character that cannot be seen is 2006 (see
// Visible).
func Name(f Text, name string, most int) (string, error) {
	text, err := Required(f, name, most)
	if err != nil {
		return "", err
	}
	return text, Visible(name, text)
}

// Visible refuses a text with a control, format, bidirectional, private-use or
// unassigned character, or with another that has no shape of its own, with 2006.
func Visible(name, text string) error {
	for _, r := range text {
		if isInvisible(r) {
			return apierr.Format.Because("%s holds the invisible character U+%04X; remove it", name, r).
				Saying("A name or an address has a character that cannot be seen. Please enter it again.")
		}
	}
	return nil
}

// brailleBlank is a symbol to Unicode and an empty cell to a reader.
const brailleBlank = '\u2800'

func isInvisible(r rune) bool {
	return !unicode.IsGraphic(r) || r == brailleBlank ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// The parts of an address that mail can go to, in octets (RFC 5321, section
// 4.5.3.1).
const (
	maxLocalPart = 64
	maxDomain    = 253
)

// domainLabel is a part of a domain between its dots. Letters outside of ASCII
// are those of an internationalised domain (RFC 5890).
var domainLabel = regexp.MustCompile(`^[\p{L}\p{Nd}]([\p{L}\p{Nd}\p{M}-]{0,61}[\p{L}\p{Nd}\p{M}])?$`)

// Email takes an address that mail can go to: a plain local part, one @, and a
// domain of at least two labels. Else 2006.
func Email(name, value string) error {
	local, domain, _ := strings.Cut(value, "@")
	parsed, err := mail.ParseAddress(value)
	if err != nil || parsed.Address != value || parsed.Name != "" || strings.HasPrefix(local, `"`) ||
		len(local) > maxLocalPart || !isDomain(domain) || Visible(name, value) != nil || strings.ContainsFunc(value, isLookalike) {
		return apierr.Format.Because("%s %q is not an email address such as jo@example.com", name, value).
			Saying("That is not an email address. Please enter one such as jo@example.com.")
	}
	return nil
}

// isLookalike recognises the dots of other scripts (RFC 3490, section 3.1) and
// what Unicode takes for a dot or an @: addresses that differ by one look the same.
func isLookalike(r rune) bool {
	return r > unicode.MaxASCII && (r == '\u3002' || r == '\uff61' || strings.ContainsAny(norm.NFKC.String(string(r)), ".@"))
}

func isDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		if utf8.RuneCountInString(label) > 63 || !domainLabel.MatchString(label) {
			return false
		}
	}
	top := labels[len(labels)-1]
	return len(labels) > 1 && len(domain) <= maxDomain && strings.Trim(top, "0123456789") != ""
}
