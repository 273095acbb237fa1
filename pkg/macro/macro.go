// Package macro reads the macros of mail templates (docs/interface/mail.md#macros):
// ${account.email} and its quiet form $!{account.email}. One grammar serves the
// check of a template that is saved and the mail that is made of it. There is
// no logic: a macro names a value, and nothing else.
package macro

import (
	"fmt"
	"slices"
	"strings"
)

// longest bounds a macro, in bytes, so that a template full of "$" is read in
// linear time.
const maxMacro = 300

// Expand replaces the macros of a template by their values. Both forms name a
// value: ${account.email} prints itself when there is none, and
// $!{account.email} nothing. Everything else stays as it is. A value is passed
// through escape and never searched for macros itself.
func Expand(template string, values map[string]string, escape func(string) string) string {
	var out strings.Builder
	for {
		before, _, found := strings.Cut(template, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		template = template[len(before):]
		name, length, quiet := parseMacro(template)
		if length == 0 {
			out.WriteByte('$')
			template = template[1:]
			continue
		}
		value, ok := values[name]
		switch {
		case ok:
			out.WriteString(escape(value))
		case !quiet:
			out.WriteString(template[:length])
		}
		template = template[length:]
	}
}

// Names returns the names that the macros of a template use, in their order. It
// is an error when "${" or "$!{" begins no macro: it is not closed, or what it
// holds is no name, which is a letter and then letters, digits and ". _ -".
func Names(template string) (names []string, err error) {
	for {
		at := strings.IndexByte(template, '$')
		if at < 0 {
			return names, nil
		}
		template = template[at:]
		name, length, _ := parseMacro(template)
		switch {
		case length > 0:
			names = append(names, name)
			template = template[length:]
		case strings.HasPrefix(template, "${"), strings.HasPrefix(template, "$!{"):
			return nil, fmt.Errorf("a macro must have the form ${name} or $!{name}; this has not: %.40q", template)
		default:
			template = template[1:]
		}
	}
}

// Keys returns what follows a prefix in the names of a template's macros, in their
// order and each once: the keys of customData for "account.customData.".
func Keys(template, prefix string) (keys []string) {
	for {
		at := strings.IndexByte(template, '$')
		if at < 0 {
			return keys
		}
		template = template[at:]
		name, length, _ := parseMacro(template)
		if key, ok := strings.CutPrefix(name, prefix); ok && key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		template = template[max(length, 1):]
	}
}

// first reads the macro that text begins with. Its length is 0 when there is
// none.
func parseMacro(text string) (name string, length int, quiet bool) {
	start := len("${")
	if strings.HasPrefix(text, "$!{") {
		start, quiet = len("$!{"), true
	} else if !strings.HasPrefix(text, "${") {
		return "", 0, false
	}
	for i := start; i < len(text) && i < start+maxMacro; i++ {
		switch c := text[i]; {
		case c == '}' && i > start:
			return text[start:i], i + 1, quiet
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > start && ('0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'):
		default:
			return "", 0, false
		}
	}
	return "", 0, false
}
