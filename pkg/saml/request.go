package saml

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rsa"
	_ "crypto/sha1" // SigAlg may name it
	_ "crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// MaxRequest bounds a request, in bytes, encoded and decompressed.
const MaxRequest = 64 << 10

// maxMessageID bounds the id of a request, in bytes. A response repeats it.
const maxMessageID = 1000

// Request is an authentication request of a service provider (SAML 2.0 core,
// section 3.4.1).
type Request struct {
	ID          string
	Issuer      string // entity id of the service provider
	ConsumerURL string // where it wants the response; empty: as registered
	IssuedAt    time.Time
}

// authnRequest is what is read of a request.
type authnRequest struct {
	XMLName     xml.Name         `xml:"urn:oasis:names:tc:SAML:2.0:protocol AuthnRequest"`
	ID          string           `xml:"ID,attr"`
	Version     string           `xml:"Version,attr"`
	IssuedAt    saml.RelaxedTime `xml:"IssueInstant,attr"`
	ConsumerURL string           `xml:"AssertionConsumerServiceURL,attr"`
	Issuer      string           `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
}

// ParseRequest reads a SAMLRequest: Base64 of the XML, which is deflated when it
// came by HTTP-Redirect and is not when it came by HTTP-POST. Anything else is
// apierr.Format. It checks no signature.
func ParseRequest(encoded string) (Request, error) {
	malformed := func(reason string) (Request, error) {
		return Request{}, apierr.Format.Because("samlRequest %s", reason)
	}
	if len(encoded) > MaxRequest {
		return malformed("is too large")
	}
	message, err := decodeBase64(encoded)
	if err != nil {
		return malformed("is not Base64")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(message), []byte("<")) {
		message, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(message)), MaxRequest+1))
		if err != nil {
			return malformed("is neither XML nor deflated XML")
		}
		if len(message) > MaxRequest {
			return malformed("is too large when it is decompressed")
		}
	}
	var in authnRequest
	document := xml.NewDecoder(bytes.NewReader(message))
	if err := document.Decode(&in); err != nil {
		return malformed("is not an AuthnRequest in XML")
	}
	request := Request{ID: in.ID, Issuer: strings.TrimSpace(in.Issuer), ConsumerURL: in.ConsumerURL, IssuedAt: time.Time(in.IssuedAt)}
	switch {
	case in.Version != "2.0":
		return malformed("must have the Version 2.0")
	case request.Issuer == "":
		return malformed("has no Issuer")
	case request.IssuedAt.IsZero():
		return malformed("has no IssueInstant")
	}
	return request, MessageID("the ID of samlRequest", request.ID)
}

// MessageID checks the id of a message, which is an NCName of XML: it is
// apierr.Format otherwise.
func MessageID(name, value string) error {
	for i, r := range value {
		isLetter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= 0x80
		isOther := r == '-' || r == '.' || r >= '0' && r <= '9'
		if !isLetter && (i == 0 || !isOther) {
			value = ""
			break
		}
	}
	if value == "" || len(value) > maxMessageID {
		return apierr.Format.Because("%s must begin with a letter or _ and have at most %d letters, digits and the characters . - _", name,
			maxMessageID)
	}
	return nil
}

// Query is the query string of a request that came by HTTP-Redirect, with its
// parameters as they were encoded: the signature is of these.
type Query struct{ request, relayState, algorithm, signature *string }

// ParseQuery reads a query string. Other parameters are left alone; one of SAML
// that comes twice is apierr.Format, as is a signature without its algorithm.
func ParseQuery(query string) (q Query, err error) {
	parameters := map[string]**string{"SAMLRequest": &q.request, "RelayState": &q.relayState, "SigAlg": &q.algorithm,
		"Signature": &q.signature}
	for part := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		name, value, _ := strings.Cut(part, "=")
		parameter, ok := parameters[name]
		if !ok {
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

// signatureHashes are the hashes of the algorithms that sign query strings.
var signatureHashes = map[string]crypto.Hash{
	dsig.RSASHA1SignatureMethod: crypto.SHA1, dsig.RSASHA256SignatureMethod: crypto.SHA256,
	dsig.RSASHA384SignatureMethod: crypto.SHA384, dsig.RSASHA512SignatureMethod: crypto.SHA512,
}

// Verify checks the signature of a query string (SAML 2.0 bindings, section
// 3.4.4.1) against the key of a certificate in PEM, and that what is signed is
// the request and the relay state. Otherwise it returns apierr.Format.
func (q Query) Verify(request, relayState, certificate string) error {
	refused := func(reason string) error { return apierr.Format.Because("queryString: %s", reason) }
	if q.request == nil || !isSame(q.request, request) || !isSame(q.relayState, relayState) {
		return refused("it must have the SAMLRequest and the RelayState that samlRequest and relayState have")
	}
	algorithm, err := url.QueryUnescape(*q.algorithm)
	hash, ok := signatureHashes[algorithm]
	if err != nil || !ok {
		return refused("SigAlg must be RSA with SHA-1, SHA-256, SHA-384 or SHA-512")
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

// isSame reports whether a parameter holds the value, which is empty where the
// parameter is absent.
func isSame(parameter *string, value string) bool {
	if parameter == nil {
		return value == ""
	}
	decoded, err := url.QueryUnescape(*parameter)
	return err == nil && decoded == value
}

func publicKey(certificate string) (*rsa.PublicKey, error) {
	parsed, err := x509.ParseCertificate(der(field.TrimPEM(certificate)))
	if err != nil {
		return nil, err
	}
	key, ok := parsed.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the key is not RSA")
	}
	return key, nil
}

// decodeBase64 reads Base64 that may be broken into lines.
func decodeBase64(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}
