package notification

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"

	"github.com/doorward/doorward/pkg/field"
)

// The functions of this file sanitize what a tenant or a user has written before a mail
// shows it.

// singleLine makes a text fit for one line of a mail: without line breaks, other
// control characters, and characters that change the direction of what follows.
func singleLine(text string) string {
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

// multiLine makes a text of the tenant's own fit for a body: it keeps its lines,
// and has no other invisible characters.
func multiLine(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = singleLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// addresses are the parts of a text of which a mail program makes a link because
// they begin as one.
var addresses = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*:[^\s]|www[.。．｡])\S*`)

// domain finds a dot that may stand inside a host name, in any script.
var domain = regexp.MustCompile(`([.。．｡])([^\s.。．｡])`)

// personName makes a name fit for a line. It may be written to be read
// by a stranger, at whose address an account was registered, so what looks like a link is removed, and
// "evil.example" becomes "evil. example", of which no mail program makes a link and
// which keeps "J.R. Smith" readable.
func personName(text string) string {
	text = addresses.ReplaceAllString(singleLine(text), "")
	text = domain.ReplaceAllString(text, "$1 $2")
	return strings.Join(strings.Fields(text), " ")
}

// userName makes a user name fit for a line. It stays what its owner types, unless
// it is no single word or holds a link: then it is treated as a name.
func userName(username, email string) string {
	if field.Fold(username) == field.Fold(email) {
		return singleLine(username)
	}
	return customValue(username)
}

// customValue makes a value that may be its owner's own words fit for a line, as
// userName does.
func customValue(value string) string {
	text := singleLine(value)
	if strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsAny(text, ":/\\") || addresses.MatchString(text) || containsHost(text) {
		return personName(text)
	}
	return text
}

// hosts are the parts of a word that have the form of a host name.
var hosts = regexp.MustCompile(`[\pL\pN_-]+(?:[.。．｡][\pL\pN_-]+)+`)

// containsHost reports whether a word holds the name of a host that may be on the
// internet, which a mail program makes a link of: "evil.com", but neither
// "jo.doe" nor "1.2.3". An address such as "jo@evil.com" leads to no host.
func containsHost(word string) bool {
	if strings.Contains(word, "@") {
		return false
	}
	for _, host := range hosts.FindAllString(word, -1) {
		host = strings.ToLower(asciiHost(host))
		if suffix, isPublic := publicsuffix.PublicSuffix(host); isPublic && suffix != host {
			return true
		}
	}
	return false
}
