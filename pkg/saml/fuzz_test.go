package saml

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

// FuzzResponse: whatever an identity provider sends is refused with a code of the
// interface, unless it is what was signed.
func FuzzResponse(f *testing.F) {
	pair, err := NewKeyPair("fuzz", now)
	if err != nil {
		f.Fatal(err)
	}
	own, err := NewKeyPair("own", now)
	if err != nil {
		f.Fatal(err)
	}
	signed, err := Response{
		Issuer: otherEntity, Audience: ownEntity, ConsumerURL: ownConsumer, InResponseTo: "_request", NameID: "jo@example.test", Now: now,
	}.Sign(pair, SHA256)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(signed))
	f.Add(strings.Replace(string(signed), "<saml:Assertion", "<saml:EncryptedAssertion", 1))
	f.Add(`<samlp:Response xmlns:samlp="` + protocol + `" ID="_a" Version="2.0"><samlp:Status/></samlp:Response>`)
	f.Add(`<a:EncryptedAssertion xmlns:a="` + assertionNamespace + `"/>`)
	expected := ServiceProvider{
		EntityID: ownEntity, ConsumerURL: ownConsumer, RequestID: "_request", Certificates: []string{pair.Certificate}, Now: now,
		KeyPair: func() (KeyPair, error) { return own, nil },
	}
	f.Fuzz(func(t *testing.T, text string) {
		login, err := expected.Read(base64.StdEncoding.EncodeToString([]byte(text)))
		if err == nil && login.NameID != "jo@example.test" {
			t.Fatalf("%s logs %+v in", text, login)
		}
		if err != nil && apierr.From(err).Status != 400 {
			t.Fatalf("%s returns %v", text, err)
		}
	})
}

// FuzzRequest: whatever a service provider sends is refused with an error of the
// interface, or has an id that a response can repeat.
func FuzzRequest(f *testing.F) {
	f.Add(deflated(request), "SAMLRequest=a&RelayState=b&SigAlg=c&Signature=d")
	f.Add(base64.StdEncoding.EncodeToString([]byte(request)), "")
	f.Fuzz(func(t *testing.T, encoded, query string) {
		in, err := ParseRequest(encoded)
		if err != nil && apierr.From(err).Status != 400 || err == nil && (in.ID == "" || in.Issuer == "" || in.IssuedAt.IsZero()) {
			t.Fatalf("%q returns %+v, %v", encoded, in, err)
		}
		if err == nil && in.IsSigned() {
			_, err = in.Verify("", false, now)
		}
		read, failed := ParseQuery(query)
		if failed == nil && read.IsSigned() {
			failed = read.Verify(encoded, "", "")
		}
		for _, err := range []error{err, failed} {
			if err != nil && apierr.From(err).Status != 400 {
				t.Fatalf("%q returns %v", encoded, err)
			}
		}
	})
}
