package requestpath

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// The forms of a path and a query that the digest authentication scheme SAuthc1 signs
// (docs/interface/authentication.md#sauthc1).

// Canonical returns the path in the form that is signed: decoded and escaped again, with
// repeated and trailing slashes.
func Canonical(path []byte) string {
	if len(path) == 0 {
		return "/"
	}
	return string(appendEscaped(nil, decoded(path, false), '/'))
}

// CanonicalQuery returns the query in the form that is signed: decoded and escaped again, its
// pairs sorted by name and value. A name without = has an empty value; empty text between two
// ampersands is ignored.
func CanonicalQuery(query []byte) string {
	type pair struct{ name, value string }
	var pairs []pair
	for text := range bytes.SplitSeq(query, []byte{'&'}) {
		if name, value, _ := bytes.Cut(text, []byte{'='}); len(text) > 0 {
			pairs = append(pairs, pair{decoded(name, true), decoded(value, true)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order
		}
		return strings.Compare(a.value, b.value)
	})
	var out []byte
	for i, p := range pairs {
		if i > 0 {
			out = append(out, '&')
		}
		out = appendEscaped(append(appendEscaped(out, p.name, 0), '='), p.value, 0)
	}
	return string(out)
}

// decoded returns a text with its percent escapes decoded, as those of a path or, if form, of a
// query. A text with an invalid escape is returned unchanged.
func decoded(text []byte, form bool) string {
	unescape := url.PathUnescape
	if form {
		unescape = url.QueryUnescape
	}
	if plain, err := unescape(string(text)); err == nil {
		return plain
	}
	return string(text)
}

// appendEscaped appends a text to dst and escapes all characters but the unreserved characters
// (RFC 3986, section 2.3) and the character unescaped, unless it is 0.
func appendEscaped(dst []byte, text string, unescaped byte) []byte {
	const hexadecimal = "0123456789ABCDEF"
	for i := range len(text) {
		switch b := text[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '_', b == '.', b == '~',
			b == unescaped && unescaped != 0:
			dst = append(dst, b)
		default:
			dst = append(dst, '%', hexadecimal[b>>4], hexadecimal[b&15])
		}
	}
	return dst
}
