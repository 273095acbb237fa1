package notification

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"

	"github.com/doorward/doorward/pkg/field"
)

// The functions of this file sanitize values that a tenant or a user has chosen, before a mail
// shows them: against header injection, spoofing and links of spammers.

// sanitizeLine returns a value without line breaks (header injection), other control
// characters, and characters that change the direction of writing.
func sanitizeLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// sanitizeLines does what sanitizeLine does with each line of a value that the tenant has
// written.
func sanitizeLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = sanitizeLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// linkPattern matches what a mail program turns into a link because of its beginning:
// a scheme such as https:, or www.
var linkPattern = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*:[^\s]|www[.。．｡])\S*`)

// innerDot matches a dot between two characters, as in a host name, in any script.
var innerDot = regexp.MustCompile(`([.。．｡])([^\s.。．｡])`)

// sanitizeName returns the name of a person without links. A spammer may register the email
// address of somebody else under a name that is an advertisement, and the mail would carry
// that name to the stranger. So what looks like a link is removed, and a dot gets a space
// after it: no mail program makes a link of "evil. example", and "J. R. Smith" stays readable.
func sanitizeName(text string) string {
	text = linkPattern.ReplaceAllString(sanitizeLine(text), "")
	text = innerDot.ReplaceAllString(text, "$1 $2")
	return strings.Join(strings.Fields(text), " ")
}

// sanitizeUsername returns a user name without links. It is the user name unchanged, as its
// owner types it at a login, if it is the account's email or a single word without a link;
// otherwise it is sanitized as the name of a person is.
func sanitizeUsername(username, email string) string {
	if field.LoginName(username) == field.LoginName(email) {
		return sanitizeLine(username)
	}
	return sanitizeCustomData(username)
}

// sanitizeCustomData returns a value of an account's custom data, which the owner of the account
// may have written, without links: unchanged if it is a single word without a link, otherwise
// sanitized as the name of a person is.
func sanitizeCustomData(value string) string {
	text := sanitizeLine(value)
	if strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsAny(text, ":/\\") ||
		linkPattern.MatchString(text) ||
		containsHost(text) {
		return sanitizeName(text)
	}
	return text
}

// hostNamePattern matches the parts of a word that have the form of a host name.
var hostNamePattern = regexp.MustCompile(`[\pL\pN_-]+(?:[.。．｡][\pL\pN_-]+)+`)

// containsHost reports whether a word contains the name of a host that may be on the
// internet, and of which a mail program makes a link: "evil.com", but neither "jo.doe" nor
// "1.2.3". An email address such as "jo@evil.com" is no link to a host.
func containsHost(word string) bool {
	if strings.Contains(word, "@") {
		return false
	}
	for _, host := range hostNamePattern.FindAllString(word, -1) {
		host = strings.ToLower(asciiHost(host))
		if suffix, isPublic := publicsuffix.PublicSuffix(host); isPublic && suffix != host {
			return true
		}
	}
	return false
}
