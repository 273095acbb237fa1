package notification

import "strings"

// maxMacro bounds the name of a macro, so that a template full of "$" is read
// in linear time.
const maxMacro = 300

// values are what the macros of a template stand for, by name. A name that is
// absent has no value.
type values map[string]string

// expand replaces the macros of a template (resolutions, section 18.3). Both
// forms name a value: ${account.email} prints itself when there is none, and
// $!{account.email} nothing. Everything else stays as it is. A value is passed
// through escape and never searched for macros itself.
func expand(template string, known values, escape func(string) string) string {
	var out strings.Builder
	for {
		before, _, found := strings.Cut(template, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		template = template[len(before):]
		name, length, quiet := macro(template)
		if length == 0 {
			out.WriteByte('$')
			template = template[1:]
			continue
		}
		value, ok := known[name]
		switch {
		case ok:
			out.WriteString(escape(value))
		case !quiet:
			out.WriteString(template[:length])
		}
		template = template[length:]
	}
}

// macro reads the macro that text begins with. Its length is 0 when there is
// none.
func macro(text string) (name string, length int, quiet bool) {
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
