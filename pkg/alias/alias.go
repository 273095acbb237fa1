// Package alias has the alias of a deployment: the product name in headers, grant types and other names
// of the interface (docs/interface/conventions.md#the-alias). The code has all such names with the
// word "service"; Spell replaces that word by the alias, and Neutral the alias by that word.
package alias

import (
	"errors"
	"strings"
)

// Alias is the word of a deployment, in lower case.
type Alias string

// Neutral is the alias of a deployment that sets none.
const Neutral Alias = "service"

// Parse reads the value of DOORWARD_ALIAS.
func Parse(text string) (Alias, error) {
	alias := strings.ToLower(text)
	if alias == "" || strings.Trim(alias, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", errors.New("DOORWARD_ALIAS must be a word of the letters a to z")
	}
	return Alias(alias), nil
}

// Spell returns a name that is written with the neutral word, such as
// "x-service-date", with the alias.
func (a Alias) Spell(name string) string {
	return strings.Replace(name, string(Neutral), string(a), 1)
}

// Neutral returns a text that begins with the alias's spelling of a prefix, such
// as "service_", with the neutral one. Other texts it returns as they are.
func (a Alias) Neutral(text, prefix string) string {
	if rest, ok := strings.CutPrefix(text, a.Spell(prefix)); ok {
		return prefix + rest
	}
	return text
}

// WWWAuthenticate is the challenge of the header WWW-Authenticate where an API key is needed
// (RFC 9110, section 11.6.1).
func (a Alias) WWWAuthenticate() string { return `Basic realm="` + string(a) + `", SAuthc1` }

// Title is the alias as a name: "Service".
func (a Alias) Title() string { return strings.ToUpper(string(a[:1])) + string(a[1:]) }

// Product is the name that people read: the alias as a name where one is set.
func (a Alias) Product() string {
	if a == Neutral {
		return "Doorward"
	}
	return a.Title()
}
