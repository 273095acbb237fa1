package saml

import (
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)

func TestAKeyPair(t *testing.T) {
	pair, err := NewKeyPair("shop", now)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode([]byte(pair.Certificate))
	if block == nil || len(rest) > 0 {
		t.Fatalf("the certificate is %s", pair.Certificate)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature); err != nil {
		t.Errorf("the certificate is not signed by itself: %v", err)
	}
	if certificate.Subject.CommonName != "shop" || certificate.IsCA || certificate.NotBefore.After(now) || certificate.NotAfter.Before(now.AddDate(9, 0, 0)) {
		t.Errorf("the certificate is of %s, from %s to %s",
			certificate.Subject, certificate.NotBefore, certificate.NotAfter)
	}
	private, err := pair.PrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadKeyPair(pair.Certificate, private)
	if err != nil || !read.Key.Equal(pair.Key) || read.Key.N.BitLen() != 2048 || !read.Key.PublicKey.Equal(certificate.PublicKey) {
		t.Errorf("the key pair is read with %d bits, which do not belong to it, %v", read.Key.N.BitLen(), err)
	}
	if _, err := ReadKeyPair(pair.Certificate, private[1:]); err == nil {
		t.Error("half a key is read")
	}
	sum := sha1.Sum(block.Bytes)
	if got := Fingerprint(pair.Certificate); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the fingerprint of the certificate is %s", got)
	}
	if other, err := NewKeyPair("shop", now); err != nil || other.Certificate == pair.Certificate {
		t.Errorf("the next is the same, %v", err)
	}
}

const certificate = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"

const (
	head       = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="urn:a&amp;b">`
	signingKey = `<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>AQID</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
	tail       = `</md:EntityDescriptor>`

	emailFormat  = `<md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress</md:NameIDFormat>`
	otherFormats = `<md:NameIDFormat>urn:oasis:names:tc:SAML:2.0:nameid-format:persistent</md:NameIDFormat><md:NameIDFormat>urn:oasis:names:tc:SAML:2.0:nameid-format:transient</md:NameIDFormat>`
	identityRole = `<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + signingKey + emailFormat + otherFormats
)

// The elements stand in the order that the schema of the standard asks for.
func TestMetadata(t *testing.T) {
	for _, c := range []struct {
		what string
		make func() ([]byte, error)
		want string
	}{
		{"a service provider", func() ([]byte, error) {
			return ServiceProviderMetadata("urn:a&b", certificate, "https://sp.example.test/acs?a&b", "https://sp.example.test/logout")
		}, head + `<md:SPSSODescriptor AuthnRequestsSigned="true" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + signingKey + strings.Replace(signingKey, "signing", "encryption", 1) +
			`<md:SingleLogoutService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://sp.example.test/logout"></md:SingleLogoutService>` + emailFormat +
			`<md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://sp.example.test/acs?a&amp;b" index="0" isDefault="true"></md:AssertionConsumerService>` +
			`</md:SPSSODescriptor>` + tail},
		{"an identity provider", func() ([]byte, error) {
			return IdentityProviderMetadata("urn:a&b", certificate, "https://shop.example.test/saml/sso")
		}, head + identityRole +
			`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://shop.example.test/saml/sso"></md:SingleSignOnService>` +
			`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://shop.example.test/saml/sso"></md:SingleSignOnService>` +
			`</md:IDPSSODescriptor>` + tail},
		{"an identity provider that nobody can ask", func() ([]byte, error) {
			return IdentityProviderMetadata("urn:a&b", certificate, "")
		}, head + identityRole + `</md:IDPSSODescriptor>` + tail},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := c.make()
			if err != nil || string(got) != c.want {
				t.Errorf("the metadata is %s, %v\nwant %s", got, err, strings.TrimSpace(c.want))
			}
		})
	}
}
