package saml

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rsa"
	_ "crypto/sha1" // SigAlg may name it
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/pkg/apierr"
)

// MaxRequest is the largest request in bytes, encoded and also decompressed.
const MaxRequest = 64 << 10

// maxMessageID is the longest id of a request in bytes; a response repeats it.
const maxMessageID = 1000

// Request is an AuthnRequest that the identity provider has received from a service provider (SAML 2.0
// core, section 3.4.1).
type Request struct {
	ID          string
	Issuer      string // entity id of the service provider
	ConsumerURL string // requested assertion consumer URL; empty: the registered URL
	IssuedAt    time.Time
	Destination string // empty: not stated
	ForceAuthn  bool   // the user must log in now
	IsPassive   bool   // the user must not see a page

	element *etree.Element
}

// ParseRequest parses a SAMLRequest: Base64 of the XML, which is deflated if it came by HTTP-Redirect
// and not if it came by HTTP-POST. It returns apierr.Format for anything else. It verifies no
// signature.
func ParseRequest(encoded string) (Request, error) {
	malformed := func(reason string) (Request, error) {
		return Request{}, apierr.Format.Because("samlRequest %s", reason)
	}
	message, err := decodeMessage(encoded)
	if err != nil {
		return malformed(err.Error())
	}
	root, err := parseDocument(message)
	if err != nil {
		return malformed("is not an AuthnRequest in XML: " + err.Error())
	}
	if !hasName(root, protocol, "AuthnRequest") {
		return malformed("is not an AuthnRequest in XML")
	}
	return readRequest(root)
}

// decodeMessage decodes Base64 and inflates the XML, if it is deflated.
func decodeMessage(encoded string) ([]byte, error) {
	if len(encoded) > MaxRequest {
		return nil, errors.New("is too large")
	}
	message, err := decodeBase64(encoded)
	if err != nil {
		return nil, errors.New("is not Base64")
	}
	if bytes.HasPrefix(bytes.TrimSpace(message), []byte("<")) {
		return message, nil
	}
	message, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(message)), MaxRequest+1))
	// Some programs flush the compressor and do not close it: then the final block is missing.
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("is neither XML nor deflated XML")
	}
	if len(message) > MaxRequest {
		return nil, errors.New("is too large when it is decompressed")
	}
	return message, nil
}

func readRequest(root *etree.Element) (Request, error) {
	malformed := func(reason string) (Request, error) {
		return Request{}, apierr.Format.Because("samlRequest %s", reason)
	}
	issued, err := parseTime(root, "IssueInstant")
	request := Request{
		ID: root.SelectAttrValue("ID", ""), Issuer: textOf(childOf(root, assertionNamespace, "Issuer")),
		ConsumerURL: root.SelectAttrValue("AssertionConsumerServiceURL", ""),
		Destination: root.SelectAttrValue("Destination", ""),
		ForceAuthn:  isTrue(root, "ForceAuthn"), IsPassive: isTrue(root, "IsPassive"), element: root,
	}
	switch {
	case root.SelectAttrValue("Version", "") != "2.0":
		return malformed("must have the Version 2.0")
	case request.Issuer == "":
		return malformed("has no Issuer")
	case err != nil || issued == nil:
		return malformed("has no IssueInstant")
	}
	request.IssuedAt = *issued
	return request, CheckMessageID("the ID of samlRequest", request.ID)
}

// isTrue reports whether a boolean attribute (XML Schema) is true; it is false if it is absent.
func isTrue(element *etree.Element, name string) bool {
	value := strings.TrimSpace(element.SelectAttrValue(name, ""))
	return value == "true" || value == "1"
}

// IsSigned reports whether the request has an XML signature, as a request by HTTP-POST may have.
func (r Request) IsSigned() bool { return hasSignature(r.element) }

// Verify verifies the XML signature of a request with a certificate in PEM, and returns the request as
// the signature covers it. It returns apierr.Format if the signature is not valid.
func (r Request) Verify(certificate string, allowSHA1 bool) (Request, error) {
	signed, err := verifier{[]string{certificate}, allowSHA1}.verify(r.element)
	if err != nil {
		return r, apierr.Format.Because("samlRequest is not signed as the service provider is registered: %s",
			err.Error())
	}
	return readRequest(signed)
}

// CheckMessageID returns apierr.Format if the id of a message is not an NCName of XML, or is too long.
func CheckMessageID(name, value string) error {
	for i, r := range value {
		isLetter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= 0x80
		isOther := r == '-' || r == '.' || r >= '0' && r <= '9'
		if !isLetter && (i == 0 || !isOther) {
			value = ""
			break
		}
	}
	if value == "" || len(value) > maxMessageID {
		return apierr.Format.Because(
			"%s must begin with a letter or _ and have at most %d letters, digits and the characters . - _", name,
			maxMessageID)
	}
	return nil
}

// Query is the query string of a request that came by HTTP-Redirect. Its parameters stay encoded as
// they were sent, because the signature covers the encoded text. Some frameworks hand out the string
// decoded only: Verify encodes that again.
type Query struct{ request, relayState, algorithm, signature *string }

// ParseQuery parses a query string, and ignores parameters other than those of SAML. It returns
// apierr.Format for a parameter of SAML that is repeated or whose name is encoded, and for a signature
// without its algorithm.
func ParseQuery(query string) (q Query, err error) {
	parameters := map[string]**string{"SAMLRequest": &q.request, "RelayState": &q.relayState, "SigAlg": &q.algorithm,
		"Signature": &q.signature}
	for part := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		name, value, _ := strings.Cut(part, "=")
		parameter, ok := parameters[name]
		if !ok {
			if plain, err := url.QueryUnescape(name); err != nil || parameters[plain] != nil {
				return q, apierr.Format.Because(
					"queryString must have the names of its parameters as they are, without escapes")
			}
			continue
		}
		if *parameter != nil {
			return q, apierr.Format.Because("queryString has %s twice", name)
		}
		*parameter = &value
	}
	if (q.algorithm == nil) != (q.signature == nil) {
		return q, apierr.Format.Because("queryString must have both SigAlg and Signature, or neither")
	}
	return q, nil
}

// IsSigned reports whether the query string has a signature.
func (q Query) IsSigned() bool { return q.signature != nil }

// signatureHashes are the hash functions of the signature algorithms of query strings.
var signatureHashes = map[string]crypto.Hash{
	dsig.RSASHA1SignatureMethod: crypto.SHA1, dsig.RSASHA256SignatureMethod: crypto.SHA256,
	dsig.RSASHA384SignatureMethod: crypto.SHA384, dsig.RSASHA512SignatureMethod: crypto.SHA512,
}

// Verify verifies the signature of a query string (SAML 2.0 bindings, section 3.4.4.1) with the key of
// a certificate in PEM, and that it covers the request and the relay state. The string may be encoded, as
// the browser sent it, or decoded. It returns apierr.Format if the signature is not valid.
func (q Query) Verify(request, relayState, certificate string, allowSHA1 bool) error {
	err := q.verify(request, relayState, certificate, allowSHA1)
	if err == nil || q.algorithm == nil || !strings.Contains(*q.algorithm, "/") { // an encoded one has %2F
		return err
	}
	for _, encode := range []func(string) string{url.QueryEscape, lowerQueryEscape} {
		if q.encoded(request, relayState, encode).verify(request, relayState, certificate, allowSHA1) == nil {
			return nil
		}
	}
	return err
}

// encoded returns a decoded query string as the sender has encoded it.
func (q Query) encoded(request, relayState string, encode func(string) string) Query {
	text := func(value string) *string { value = encode(value); return &value }
	out := Query{request: text(request), algorithm: text(*q.algorithm), signature: text(*q.signature)}
	if q.relayState != nil {
		out.relayState = text(relayState) // the parameter ends at the first &
	}
	return out
}

var percentEncoded = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerQueryEscape is url.QueryEscape with hexadecimal digits in lower case, as .NET writes them.
func lowerQueryEscape(text string) string {
	return percentEncoded.ReplaceAllStringFunc(url.QueryEscape(text), strings.ToLower)
}

// verify is Verify for a query string as the browser sent it.
func (q Query) verify(request, relayState, certificate string, allowSHA1 bool) error {
	refused := func(reason string) error { return apierr.Format.Because("queryString: %s", reason) }
	if q.request == nil || !isSame(q.request, request) || !isSame(q.relayState, relayState) {
		return refused("it must have the SAMLRequest and the RelayState that samlRequest and relayState have")
	}
	algorithm, err := url.QueryUnescape(*q.algorithm)
	hash, ok := signatureHashes[algorithm]
	if err != nil || !ok || hash == crypto.SHA1 && !allowSHA1 {
		return refused("SigAlg must be RSA with SHA-256, SHA-384 or SHA-512, or with SHA-1 where that is the " +
			"signatureAlgorithm of the identity provider")
	}
	signature, err := url.QueryUnescape(*q.signature)
	if err != nil {
		return refused("Signature is not encoded as a parameter")
	}
	octets, err := decodeBase64(signature)
	if err != nil {
		return refused("Signature is not Base64")
	}
	key, err := publicKey(certificate)
	if err != nil {
		return refused("the certificate of the service provider has no RSA key")
	}
	signed := "SAMLRequest=" + *q.request
	if q.relayState != nil {
		signed += "&RelayState=" + *q.relayState
	}
	h := hash.New()
	h.Write([]byte(signed + "&SigAlg=" + *q.algorithm))
	if rsa.VerifyPKCS1v15(key, hash, h.Sum(nil), octets) != nil {
		return refused("Signature does not match the certificate of the service provider")
	}
	return nil
}

// isSame reports whether an encoded parameter has a value; an absent parameter has the value "".
func isSame(parameter *string, value string) bool {
	if parameter == nil {
		return value == ""
	}
	decoded, err := url.QueryUnescape(*parameter)
	return err == nil && decoded == value
}
