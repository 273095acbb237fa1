package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/oauthapi"
)

// The digest authentication scheme SAuthc1 (docs/interface/authentication.md#sauthc1): the
// request signature is an HMAC. The text that was signed is rebuilt here from the request as it was
// received; the OAuth service, which has the secret, verifies the signature and prevents replay
// (services/oauth/signature.go).
const (
	signatureSuffix = "sauthc1_request" // the last part of the id of a request
	// maxSignatureHeader bounds the header Authorization, maxSignedHeaders the headers that it names.
	maxSignatureHeader, maxSignedHeaders = 4 << 10, 64
)

// signature is the parsed header Authorization of the scheme SAuthc1.
type signature struct {
	keyID, date, nonce, signature string

	signedHeaders string   // names of the signed headers, separated by semicolons, as they were sent
	headerNames   []string // the same names in lower case, as a list
}

// parseSignature parses the text behind the scheme: three parts in any order, with or
// without blanks around their commas.
func parseSignature(text []byte) (s signature, ok bool) {
	if len(text) > maxSignatureHeader {
		return s, false
	}
	id := ""
	parts := map[string]*string{"sauthc1Id": &id, "sauthc1SignedHeaders": &s.signedHeaders,
		"sauthc1Signature": &s.signature}
	for part := range strings.SplitSeq(string(text), ",") {
		name, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		into := parts[name]
		if into == nil || value == "" || strings.ContainsFunc(value, notVisible) {
			return s, false
		}
		delete(parts, name) // no part comes twice
		*into = value
	}
	steps := strings.Split(id, "/")
	if len(parts) > 0 || len(steps) != 4 || steps[3] != signatureSuffix {
		return s, false
	}
	s.keyID, s.date, s.nonce = steps[0], steps[1], steps[2]
	s.headerNames = strings.Split(strings.ToLower(s.signedHeaders), ";")
	return s, s.keyID != "" && s.nonce != "" && len(s.headerNames) <= maxSignedHeaders
}

func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f }

// dateHeaders are the names, in lower case, of the header with the time of a
// signed request: with the alias of the deployment and with the word service
// (docs/interface/conventions.md#the-alias).
func dateHeaders(word alias.Alias) []string {
	return []string{word.Spell("x-service-date"), "x-service-date"}
}

// verificationRequest returns the request to the OAuth service to verify the signature. ok is
// false where the host or the time is not signed, or a signed header is missing.
func (s signature) verificationRequest(request *fasthttp.Request,
	dates []string) (in oauthapi.VerifySignature, ok bool) {
	lines := make([]string, len(s.headerNames))
	host := false
	for i, name := range s.headerNames {
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
	if !host || s.date == "" || !strings.HasPrefix(in.Timestamp, s.date+"T") {
		return in, false
	}
	target, ok := requestpath.OriginForm(request.Header.RequestURI())
	if !ok {
		return in, false
	}
	path, query, _ := bytes.Cut(target, []byte{'?'})
	body := sha256.Sum256(request.Body())
	canonical := sha256.Sum256([]byte(strings.Join([]string{
		string(request.Header.Method()), requestpath.Canonical(path), requestpath.CanonicalQuery(query),
		strings.Join(lines, ""), s.signedHeaders,
		hex.EncodeToString(body[:]),
	}, "\n")))
	in.ID, in.Nonce, in.Signature, in.Request = s.keyID, s.nonce, s.signature, hex.EncodeToString(canonical[:])
	return in, true
}
