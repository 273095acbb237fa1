package idsite_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/idsite"
)

// publicAuthority is an authority that the service trusts.
var publicAuthority = newAuthority()

func newAuthority() certtest.Pair {
	return certtest.SelfSigned(clocktest.Start.AddDate(-1, 0, 0), clocktest.Start.AddDate(1, 0, 0))
}

// certify makes a certificate of a host with its key, both in PEM.
func certify(authority certtest.Pair, host string, from, until time.Time) (certificate, key string) {
	made := authority.Issue(from, until, host)
	return made.Chain(), made.PrivateKey()
}

func TestTheStatusOfADomainsCertificate(t *testing.T) {
	l := newLogin(t)
	l.ownDomain(t)
	now := l.clock.Now()
	good, key := certify(newAuthority(), "login.example.test", now.Add(-time.Hour), now.Add(time.Hour))
	other, otherKey := certify(newAuthority(), "other.example.test", now.Add(-time.Hour), now.Add(time.Hour))
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
