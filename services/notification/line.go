package notification

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"

	"github.com/doorward/doorward/pkg/field"
)

// line makes a text fit for one line of a mail: no line break, no other control
// character, nothing that turns the direction of what follows it.
func line(text string) string {
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

// paragraph makes a text of the tenant's own fit for a body: lines stay, and
// nothing else that is not seen.
func paragraph(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = line(lines[i])
	}
	return strings.Join(lines, "\n")
}

// addresses are the parts of a text that a mail program would make a link of,
// because they begin as one.
var addresses = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*:[^\s]|www[.。．｡])\S*`)

// domain finds a dot that may stand inside a host name, in any script.
var domain = regexp.MustCompile(`([.。．｡])([^\s.。．｡])`)

// name makes a text fit for a line that who registers an account has written,
// maybe with the address of somebody else: what looks like a link is taken out,
// and "evil.example" becomes "evil. example", which no mail program makes a
// link of and which "J.R. Smith" survives.
func name(text string) string {
	text = addresses.ReplaceAllString(line(text), "")
	text = domain.ReplaceAllString(text, "$1 $2")
	return strings.Join(strings.Fields(text), " ")
}

// login makes a user name fit for a line. It is to stay what its owner types, so
// only one that is no single word, or holds a link, is treated as a name.
func login(username, email string) string {
	if field.Fold(username) == field.Fold(email) {
		return line(username)
	}
	return datum(username)
}

// datum makes a value that may be its owner's own words fit for a line, as login
// does.
func datum(value string) string {
	text := line(value)
	if strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsAny(text, ":/\\") || addresses.MatchString(text) || namesHost(text) {
		return name(text)
	}
	return text
}

// hosts are the parts of a word that have the form of a host name.
var hosts = regexp.MustCompile(`[\pL\pN_-]+(?:[.。．｡][\pL\pN_-]+)+`)

// namesHost tells whether a word holds the name of a host that may be on the
// internet, which a mail program makes a link of: "evil.com", but neither
// "jo.doe" nor "1.2.3". An address such as "jo@evil.com" leads to no host.
func namesHost(word string) bool {
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
