package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/doorward/doorward/gateway/domaincertificate"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// fakeIDSite is the idsite service with certificates by domain.
type fakeIDSite struct {
	idsiteapi.API // of which the gateway calls no other method

	ring  *secure.Keyring
	pairs map[string][2]string
	calls int
}

func (d *fakeIDSite) Certificate(_ context.Context, in idsiteapi.Domain) (idsiteapi.Certificate, error) {
	d.calls++
	pair, ok := d.pairs[in.Name]
	if !ok {
		return idsiteapi.Certificate{}, apierr.NotFound
	}
	return idsiteapi.Certificate{Chain: pair[0], KeySealed: d.ring.Seal(secure.Secret(pair[1]), idsiteapi.KeyPurpose(in.Name))}, nil
}

func TestACustomDomainHasItsOwnCertificate(t *testing.T) {
	t.Parallel()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	chain, key := pemOf(t, certificate)
	pair := [2]string{chain, key}
	idsite := &fakeIDSite{ring: ring, pairs: map[string][2]string{"login.example.test": pair, "id.example.test": pair, "x.apps.example.test": pair}}
	g := &Gateway{hostname: "id.example.test", cfg: Config{ClientSuffix: "apps.example.test"}}
	c := domaincertificate.New(idsite, secure.Keyrings{ring}, g.isDeploymentHost)
	for range 3 {
		found := c.ForHandshake(&tls.ClientHelloInfo{ServerName: "Login.Example.test"})
		if found == nil || string(found.Certificate[0]) != string(certificate.Certificate[0]) {
			t.Fatalf("the certificate is %v", found)
		}
	}
	if idsite.calls != 1 {
		t.Errorf("the idsite service was asked %d times", idsite.calls)
	}
	for _, name := range []string{"other.example.test", "", "localhost", "calm-otter.id.localhost",
		"id.example.test", "ID.example.test", "x.apps.example.test", "apps.example.test"} {
		if found := c.ForHandshake(&tls.ClientHelloInfo{ServerName: name}); found != nil {
			t.Errorf("%q has %v", name, found)
		}
	}
	if idsite.calls != 2 {
		t.Errorf("the idsite service was asked %d times", idsite.calls)
	}
}

func pemOf(t *testing.T, pair tls.Certificate) (chain, key string) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}
