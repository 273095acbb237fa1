package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/oauthapi"
)

// The digest scheme SAuthc1 (docs/interface/authentication.md#sauthc1). What was signed is
// rebuilt here, from the request as it was received; the OAuth service, which
// has the secret, compares.
const (
	signatureSuffix = "sauthc1_request" // ends the id of a request
	// maxSignature bounds the header, maxSigned the headers that it names.
	maxSignature, maxSigned = 4 << 10, 64
)

// signature is what an Authorization header of the scheme says.
type signature struct {
	key, date, nonce, signature string

	signed string   // names of the headers that were signed, as they were sent
	names  []string // the same, one by one
}

// parseSignature reads what follows the scheme: three parts in any order, with or
// without blanks around their commas.
func parseSignature(text []byte) (d signature, ok bool) {
	if len(text) > maxSignature {
		return d, false
	}
	id := ""
	parts := map[string]*string{"sauthc1Id": &id, "sauthc1SignedHeaders": &d.signed, "sauthc1Signature": &d.signature}
	for part := range strings.SplitSeq(string(text), ",") {
		name, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		into := parts[name]
		if into == nil || value == "" || strings.ContainsFunc(value, notVisible) {
			return d, false
		}
		delete(parts, name) // no part comes twice
		*into = value
	}
	steps := strings.Split(id, "/")
	if len(parts) > 0 || len(steps) != 4 || steps[3] != signatureSuffix {
		return d, false
	}
	d.key, d.date, d.nonce = steps[0], steps[1], steps[2]
	d.names = strings.Split(strings.ToLower(d.signed), ";")
	return d, d.key != "" && d.nonce != "" && len(d.names) <= maxSigned
}

func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f }

// dateHeaders are the names, in lower case, of the header with the time of a
// signed request: with the deployment's own word and with the neutral one
// (docs/interface/conventions.md#the-alias).
func dateHeaders(word alias.Alias) []string {
	return []string{word.Spell("x-service-date"), "x-service-date"}
}

// question asks whether the request was signed as d says. It reports false for
// a signature that leaves out what must be signed: the host, the time, and nothing
// that is not there.
func (d signature) question(request *fasthttp.Request, dates []string) (in oauthapi.VerifySignature, ok bool) {
	lines := make([]string, len(d.names))
	host := false
	for i, name := range d.names {
		value, found := header(request.Header.RawHeaders(), name)
		if !found {
			return in, false
		}
		lines[i] = name + ":" + value + "\n"
		host = host || name == "host"
		if in.Timestamp == "" && slices.Contains(dates, name) {
			in.Timestamp = value
		}
	}
	if !host || d.date == "" || !strings.HasPrefix(in.Timestamp, d.date+"T") {
		return in, false
	}
	target, ok := origin(request.Header.RequestURI())
	if !ok {
		return in, false
	}
	path, query, _ := bytes.Cut(target, []byte{'?'})
	body := sha256.Sum256(request.Body())
	canonical := sha256.Sum256([]byte(strings.Join([]string{
		string(request.Header.Method()), canonicalPath(path), canonicalQuery(query), strings.Join(lines, ""), d.signed,
		hex.EncodeToString(body[:]),
	}, "\n")))
	in.ID, in.Nonce, in.Signature, in.Request = d.key, d.nonce, d.signature, hex.EncodeToString(canonical[:])
	return in, true
}

// canonicalPath spells the decoded path in the one way that is signed: nothing
// is cleaned, doubled and last slashes stay.
func canonicalPath(path []byte) string {
	if len(path) == 0 {
		return "/"
	}
	return string(appendEscaped(nil, decoded(path, false), '/'))
}

// canonicalQuery spells the decoded query in the one way that is signed, its
// pairs in the order of name and value. A name alone has an empty value; what
// is between two ampersands without a character is no pair.
func canonicalQuery(query []byte) string {
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

// decoded resolves the escapes of a path or, as of a form, of a query. Text
// with a broken escape stands for itself.
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

// appendEscaped escapes all but the unreserved characters (RFC 3986, section
// 2.3) and one more.
func appendEscaped(dst []byte, text string, also byte) []byte {
	const hexadecimal = "0123456789ABCDEF"
	for i := range len(text) {
		switch b := text[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '_', b == '.', b == '~', b == also && also != 0:
			dst = append(dst, b)
		default:
			dst = append(dst, '%', hexadecimal[b>>4], hexadecimal[b&15])
		}
	}
	return dst
}
