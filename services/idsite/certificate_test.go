package idsite_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/idsite"
)

// certify makes a certificate of a host with its key, both in PEM.
func certify(t *testing.T, host string, from, until time.Time) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", raw)
}

func TestTheStatusOfADomainsCertificate(t *testing.T) {
	l := newLogin(t)
	l.ownDomain(t)
	now := l.clock.Now()
	good, key := certify(t, "login.example.test", now.Add(-time.Hour), now.Add(time.Hour))
	other, otherKey := certify(t, "other.example.test", now.Add(-time.Hour), now.Add(time.Hour))
	for _, c := range []struct {
		what, certificate, key, want string
	}{
		{"a pair", good, key, idsite.TLSValid}, {"another host", other, otherKey, idsite.TLSInvalid},
		{"another key", good, otherKey, idsite.TLSInvalid}, {"text", "any text", "and more", idsite.TLSInvalid},
	} {
		l.change(t, idsite.SiteChange{TLSPublicCert: field.Some(c.certificate), TLSPrivateKey: field.Some(c.key)})
		wantTLS(t, l, c.what, c.want)
	}
	l.change(t, idsite.SiteChange{TLSPublicCert: field.Some(good), TLSPrivateKey: field.Some(key)})
	l.clock.Move(2 * time.Hour)
	wantTLS(t, l, "after its time", idsite.TLSExpired)
	null := field.Text{Present: true, Null: true}
	l.change(t, idsite.SiteChange{TLSPublicCert: null, TLSPrivateKey: null})
	wantTLS(t, l, "without a certificate", idsite.TLSNone)
}

// wantTLS checks the status of the certificate, and that the domain and those below
// it are served with a valid one alone.
func wantTLS(t *testing.T, l *login, what, want string) {
	t.Helper()
	site, err := l.SiteOfHost(t.Context(), l.tenant.Key+".id.localhost")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.TLSStatus(site); got != want {
		t.Errorf("%s the status is %s, want %s", what, got, want)
	}
	for _, host := range []string{"login.example.test", "acme.login.example.test"} {
		if _, err := l.SiteOfHost(t.Context(), host); (err == nil) != (want == idsite.TLSValid) {
			t.Errorf("%s the host %s is answered with %v", what, host, err)
		}
	}
}
