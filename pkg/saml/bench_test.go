package saml

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"testing"
)

// BenchmarkLogin is what a login costs at both ends, beside the signatures and
// checks of signatures of BenchmarkSignatures.
func BenchmarkLogin(b *testing.B) {
	pair, err := NewKeyPair("idp", now)
	if err != nil {
		b.Fatal(err)
	}
	response, err := Response{
		Issuer: otherEntity, Audience: ownEntity, ConsumerURL: ownConsumer, InResponseTo: "_request", NameID: "jo@example.test",
		Attributes: []Attribute{{Name: "mail", Values: []string{"jo@example.test"}}}, Now: now,
	}.Sign(pair, SHA256)
	if err != nil {
		b.Fatal(err)
	}
	encoded := encode(string(response))
	expected := ServiceProvider{
		EntityID: ownEntity, ConsumerURL: ownConsumer, RequestID: "_request", Certificates: []string{pair.Certificate}, Now: now,
	}
	b.Run("request", func(b *testing.B) {
		for b.Loop() {
			if _, err := (LoginRequest{ID: "_r", Issuer: ownEntity, Destination: "https://idp.test", ConsumerURL: ownConsumer, Now: now}).Redirect(pair, SHA256, "relay"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("response with two signatures", func(b *testing.B) {
		for b.Loop() {
			if _, err := expected.Read(encoded); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSignatures is one signature of RSA, and one check.
func BenchmarkSignatures(b *testing.B) {
	pair, err := NewKeyPair("idp", now)
	if err != nil {
		b.Fatal(err)
	}
	private, err := x509.ParsePKCS8PrivateKey([]byte(pair.PrivateKey.Reveal()))
	if err != nil {
		b.Fatal(err)
	}
	key := private.(*rsa.PrivateKey)
	sum := sha256.Sum256([]byte("x"))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			if _, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
				b.Fatal(err)
			}
		}
	})
}
