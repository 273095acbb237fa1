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

	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/idsite"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// publicAuthority is an authority that the service trusts.
var publicAuthority = newAuthority()

func newAuthority() authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: clocktest.Start.AddDate(-1, 0, 0), NotAfter: clocktest.Start.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return authority{certificate, key}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// certify makes a certificate of a host with its key, both in PEM.
func (a authority) certify(t *testing.T, host string, from, until time.Time) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
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

// certify makes a certificate of an authority that nobody trusts.
func certify(t *testing.T, host string, from, until time.Time) (certificate, key string) {
	t.Helper()
	return newAuthority().certify(t, host, from, until)
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
