package saml

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1"
	_ "crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/pkg/apierr"
)

const request = `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"
	ID="_a1" Version="2.0" IssueInstant="2026-11-20T20:25:00.5Z" AssertionConsumerServiceURL="https://sp.test/acs"><saml:Issuer> urn:wiki </saml:Issuer></samlp:AuthnRequest>`

func deflated(text string) string {
	var compressed bytes.Buffer
	w, _ := flate.NewWriter(&compressed, flate.BestCompression)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(compressed.Bytes())
}

// flushed is deflated by a compressor that was flushed and not closed.
func flushed(text string) string {
	var compressed bytes.Buffer
	w, _ := flate.NewWriter(&compressed, flate.BestCompression)
	_, _ = w.Write([]byte(text))
	_ = w.Flush()
	return base64.StdEncoding.EncodeToString(compressed.Bytes())
}

func TestRequests(t *testing.T) {
	plain := base64.StdEncoding.EncodeToString([]byte(request))
	without := func(text string) string { return deflated(strings.Replace(request, text, "", 1)) }
	for _, c := range []struct {
		what, encoded string
		refused       bool
	}{
		{"deflated", deflated(request), false},
		{"deflated without a final block", flushed(request), false},
		{"as it is posted", plain, false},
		{"in lines", plain[:40] + "\r\n " + plain[40:], false},
		{"without a consumer", without(` AssertionConsumerServiceURL="https://sp.test/acs"`), false},
		{"no Base64", "!", true},
		{"no XML", deflated("hello"), true},
		{"neither", base64.StdEncoding.EncodeToString([]byte("hello")), true},
		{"another message", deflated(strings.ReplaceAll(request, "AuthnRequest", "LogoutRequest")), true},
		{"cut off", deflated(request[:len(request)-5]), true},
		{"cut off without a final block", flushed(request[:len(request)-5]), true},
		{"no id", without(`ID="_a1"`), true},
		{"an id with markup", deflated(strings.Replace(request, "_a1", "a&lt;b", 1)), true},
		{"another version", deflated(strings.Replace(request, `"2.0"`, `"1.1"`, 1)), true},
		{"no instant", without(` IssueInstant="2026-11-20T20:25:00.5Z"`), true},
		{"no issuer", without(" urn:wiki "), true},
		{"text of a hundred megabytes", deflated("<" + strings.Repeat(" ", 100<<20)), true},
		{"a large text", strings.Repeat("A", MaxRequest+4), true},
	} {
		t.Run(c.what, func(t *testing.T) {
			in, err := ParseRequest(c.encoded)
			if c.refused {
				if !errors.Is(err, apierr.Format) {
					t.Errorf("the refused request is read as %v, %v", in, err)
				}
				return
			}
			at := time.Date(2026, 11, 20, 20, 25, 0, 500_000_000, time.UTC)
			if err != nil || in.ID != "_a1" || in.Issuer != "urn:wiki" || !in.IssuedAt.Equal(at) {
				t.Errorf("the request is read as %+v, %v", in, err)
			}
		})
	}
}

func TestLogoutResponses(t *testing.T) {
	answer := func(status string) string {
		return `<p:LogoutResponse xmlns:p="` + protocol + `" ID="_a" Version="2.0">` + status + `</p:LogoutResponse>`
	}
	status := func(codes string) string { return "<p:Status>" + codes + "</p:Status>" }
	success := status(`<p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>`)
	partial := status(`<p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder">` +
		`<p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:PartialLogout"/></p:StatusCode>`)
	for _, c := range []struct {
		what, encoded string
		want          error
	}{
		{"deflated", deflated(answer(success)), nil},
		{"as it is posted", encode(answer(success)), nil},
		{"a partial logout", encode(answer(partial)), apierr.SAMLFailed},
		{"no status", encode(answer("")), apierr.SAMLMalformed},
		{"no status code", encode(answer(status(""))), apierr.SAMLMalformed},
		{"another message", deflated(request), apierr.SAMLMalformed},
		{"no XML", encode("hello"), apierr.SAMLMalformed},
		{"a document type", encode("<!DOCTYPE x>" + answer(success)), apierr.SAMLMalformed},
		{"text of a hundred megabytes", deflated("<" + strings.Repeat(" ", 100<<20)), apierr.SAMLMalformed},
	} {
		if err := ReadLogoutResponse(c.encoded); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestSignaturesOfQueryStrings(t *testing.T) {
	pair, key := newPair(t)
	other, _ := newPair(t)
	encoded := deflated(request)
	unsigned := "SAMLRequest=" + url.QueryEscape(encoded) + "&RelayState=a%20b&SigAlg="
	sign := func(text string, hash crypto.Hash) string {
		h := hash.New()
		h.Write([]byte(text))
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		return text + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	}
	sha256Query := sign(unsigned+url.QueryEscape(dsig.RSASHA256SignatureMethod), crypto.SHA256)
	sha1Query := sign(unsigned+url.QueryEscape(dsig.RSASHA1SignatureMethod), crypto.SHA1)
	for _, c := range []struct {
		what, query, request, relayState, certificate string
		want                                          bool
	}{
		{"SHA-256", sha256Query, encoded, "a b", pair.Certificate, true},
		{"SHA-1 where it is not configured", sha1Query, encoded, "a b", pair.Certificate, false},
		{"a question mark and another parameter", "?" + sha256Query + "&x=1", encoded, "a b", pair.Certificate, true},
		{"an indented certificate", sha256Query, encoded, "a b", " " + strings.ReplaceAll(pair.Certificate, "\n", "\n  "), true},
		{"another key", sha256Query, encoded, "a b", other.Certificate, false},
		{"no certificate", sha256Query, encoded, "a b", "", false},
		{"another request", sha256Query, deflated(request + " "), "a b", pair.Certificate, false},
		{"another relay state", sha256Query, encoded, "b", pair.Certificate, false},
		{"no relay state", sha256Query, encoded, "", pair.Certificate, false},
		{"a relay state that is not signed", strings.Replace(sha256Query, "a%20b", "b", 1), encoded, "b", pair.Certificate, false},
		{"another encoding than was signed", strings.Replace(sha256Query, "%20", "+", 1), encoded, "a b", pair.Certificate, false},
		{"another algorithm", strings.Replace(sha256Query, "rsa-sha256", "rsa-sha512", 1), encoded, "a b", pair.Certificate, false},
		{"an unknown algorithm", sign(unsigned+"x", crypto.SHA256), encoded, "a b", pair.Certificate, false},
		{"an empty signature", unsigned + url.QueryEscape(dsig.RSASHA256SignatureMethod) + "&Signature=", encoded, "a b", pair.Certificate, false},
		{"a signature alone", "SigAlg=" + url.QueryEscape(dsig.RSASHA256SignatureMethod) + "&Signature=AA", encoded, "a b", pair.Certificate, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			query, err := ParseQuery(c.query)
			if err != nil || !query.IsSigned() {
				t.Fatalf("the query string is read as %v, %v", query, err)
			}
			if err := query.Verify(c.request, c.relayState, c.certificate, false); (err == nil) != c.want || !c.want && !errors.Is(err, apierr.Format) {
				t.Errorf("the signature of the query string returned %v", err)
			}
		})
	}
	if query, err := ParseQuery(sha1Query); err != nil || query.Verify(encoded, "a b", pair.Certificate, true) != nil {
		t.Errorf("SHA-1 where it is configured: %v", err)
	}
	for _, malformed := range []string{"Signature=x", "SigAlg=x", sha256Query + "&SAMLRequest=x", sha256Query + "&Signature=x",
		sha256Query + "&%53AMLRequest=x", "%53ignature=x&SigAlg=x", "Relay%53tate=x", "%zz=x"} {
		if _, err := ParseQuery(malformed); !errors.Is(err, apierr.Format) {
			t.Errorf("%q returns %v", malformed, err)
		}
	}
	if query, err := ParseQuery(""); err != nil || query.IsSigned() {
		t.Errorf("no query string is %v, %v", query, err)
	}
}

func newPair(t *testing.T) (KeyPair, *rsa.PrivateKey) {
	t.Helper()
	pair, err := NewKeyPair("shop", now)
	if err != nil {
		t.Fatal(err)
	}
	return pair, pair.Key
}

// Both signatures hold after the response was written and read again, whatever
// the attributes hold, and break with any change.
func TestResponsesAreSigned(t *testing.T) {
	pair, _ := newPair(t)
	certificate, err := x509.ParseCertificate(der(pair.Certificate))
	if err != nil {
		t.Fatal(err)
	}
	validator := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{certificate}})
	validator.Clock = dsig.NewFakeClockAt(now)
	for algorithm, method := range map[string]string{SHA256: dsig.RSASHA256SignatureMethod, SHA1: dsig.RSASHA1SignatureMethod} {
		t.Run(algorithm, func(t *testing.T) {
			response := Response{
				Issuer: "urn:idp", Audience: "urn:wiki", ConsumerURL: "https://sp.test/acs?a&b", InResponseTo: "_a1",
				NameID: "jo&<é>@example.test", NameIDFormat: EmailNameID, Now: now,
				Attributes: []Attribute{{Name: "line\"s", NameFormat: "urn:x", Values: []string{"a\r\nb\tc\x00\uFFFE ]]>", ""}}},
			}
			written, err := response.Sign(pair, algorithm)
			if err != nil {
				t.Fatal(err)
			}
			read := func(text []byte) (root *etree.Element, whole, assertion error) {
				document := etree.NewDocument()
				if err := document.ReadFromBytes(text); err != nil {
					t.Fatal(err)
				}
				root = document.Root()
				_, whole = validator.Validate(root)
				_, assertion = validator.Validate(root.SelectElement("Assertion"))
				return root, whole, assertion
			}
			root, whole, assertion := read(written)
			if whole != nil || assertion != nil {
				t.Fatalf("the signatures are refused: %v, %v in %s", whole, assertion, written)
			}
			if got := root.FindElement("./Assertion/AttributeStatement/Attribute/AttributeValue").Text(); got != "a\r\nb\tc ]]>" {
				t.Errorf("the attribute is %q", got)
			}
			for _, signature := range root.FindElements("//SignatureMethod") {
				if signature.SelectAttrValue("Algorithm", "") != method {
					t.Errorf("the response is signed with %v", signature.Attr)
				}
			}
			if _, whole, assertion := read(bytes.Replace(written, []byte("jo&amp;"), []byte("mo&amp;"), 1)); whole == nil || assertion == nil {
				t.Error("another name is accepted")
			}
			if _, whole, _ := read(bytes.Replace(written, []byte("status:Success"), []byte("status:Requester"), 1)); whole == nil {
				t.Error("another status is accepted")
			}
		})
	}
}
