package saml

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"strconv"
	"strings"
	"testing"

	validator "github.com/mattermost/xml-roundtrip-validator"

	"github.com/doorward/doorward/pkg/apierr"
)

// fixedPair returns a key pair that is the same in each process of a fuzzing run, so
// that one verifies what another has signed. Its primes follow from the name.
func fixedPair(f *testing.F, name string) KeyPair {
	f.Helper()
	prime := func(half string) *big.Int {
		var octets []byte
		for i := range 4 {
			sum := sha256.Sum256([]byte(name + half + strconv.Itoa(i)))
			octets = append(octets, sum[:]...)
		}
		octets[0] |= 0xC0
		p := new(big.Int).SetBit(new(big.Int).SetBytes(octets), 0, 1)
		exponent, one := big.NewInt(65537), big.NewInt(1)
		for !p.ProbablyPrime(20) || new(big.Int).GCD(nil, nil, new(big.Int).Sub(p, one), exponent).Cmp(one) != 0 {
			p.Add(p, big.NewInt(2))
		}
		return p
	}
	p, q, one := prime("p"), prime("q"), big.NewInt(1)
	order := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537}, D: new(big.Int).ModInverse(big.NewInt(65537), order),
		Primes: []*big.Int{p, q},
	}
	key.Precompute()
	pair, err := newKeyPair(key, name, now)
	if err != nil {
		f.Fatal(err)
	}
	return pair
}

// FuzzResponse: whatever an identity provider sends is refused with a code of the
// interface, unless it is what was signed.
func FuzzResponse(f *testing.F) {
	pair, own := fixedPair(f, "identity provider"), fixedPair(f, "service provider")
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
		login, err := expected.VerifyResponse(base64.StdEncoding.EncodeToString([]byte(text)))
		if err == nil && login.NameID != "jo@example.test" {
			t.Fatalf("%s logs %+v in", text, login)
		}
		if err != nil && apierr.From(err).Status != 400 {
			t.Fatalf("%s returns %v", text, err)
		}
	})
}

// FuzzDocument: no document is read that changes when it is written and read again.
func FuzzDocument(f *testing.F) {
	f.Add(`<a:b xmlns:a="u" a:c="1" c="2" ID="x">text &amp; <![CDATA[more]]></a:b>`)
	f.Add(`<b xmlns:a="u" a:a="u" b:c="v"/>`)
	f.Add(`<b xmlns:a="u"><c:b xml:lang="en"/></b>`)
	for _, name := range []string{":a", "a:", "a::b", "a:b:c", "xmlns:a", "xmlns:", "a:xmlns", "a:-b", "a:.b", "a:1", "a:\u00b7", "a:\u0640"} {
		f.Add(`<` + name + ` xmlns:a="u"/>`)
		f.Add(`<b xmlns:a="u" ` + name + `="v"/>`)
		f.Add(`<b xmlns:a="u"><` + name + `>x</` + name + `></b>`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseDocument([]byte(text)); err != nil {
			return
		}
		err := validator.Validate(strings.NewReader(text))
		if err != nil && strings.HasSuffix(err.Error(), "EOF") && strings.Contains(text, "<![CDATA[]]>") {
			return // an empty text that is written is nothing to read, which the validator takes for an error
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
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
			_, err = in.Verify("", false)
		}
		read, failed := ParseQuery(query)
		if failed == nil && read.IsSigned() {
			failed = read.Verify(encoded, "", "", false)
		}
		for _, err := range []error{err, failed} {
			if err != nil && apierr.From(err).Status != 400 {
				t.Fatalf("%q returns %v", encoded, err)
			}
		}
	})
}
