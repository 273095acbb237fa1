// Package macro expands the macros (placeholders) of mail templates (docs/interface/mail.md#macros):
// ${account.email} and its quiet form $!{account.email}. The same grammar is used to validate a
// template and to render a mail. There is no logic: a macro only names a value.
package macro

import (
	"fmt"
	"slices"
	"strings"
)

// maxMacro is the longest macro in bytes, so that a template with many "$" is parsed in linear time.
const maxMacro = 300

// Expand replaces the macros of a template by their values, escaped by escape. Without a value,
// ${account.email} stays unchanged and $!{account.email} becomes empty. Macros in values are not
// expanded.
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

// Names returns the names of the macros of a template, in their order. It returns an error for an
// invalid macro: one that is not closed, or whose name is not a letter followed by letters, digits
// and ". _ -".
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

// Keys returns the rest of the names of macros with a prefix, in their order, without duplicates: the
// keys of customData for the prefix "account.customData.".
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

// parseMacro parses the macro at the beginning of a text. The length is 0 if there is no macro.
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
