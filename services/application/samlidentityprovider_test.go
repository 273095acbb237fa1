package application_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// policy makes an application and names its SAML policy.
func policy(t *testing.T, d *applicationtest.Deployment) (at, shop id.Ref) {
	t.Helper()
	tenant, _ := d.Tenant(t)
	shop = id.Ref{Tenant: tenant, ID: newApplication(t, d, tenant)}
	a, err := d.Service.Application(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	return id.Ref{Tenant: tenant, ID: a.SAMLPolicyID}, shop
}

// Two processes that are asked for the first time at once keep one key pair.
func TestReplicasKeepOneKeyPair(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	at, _ := policy(t, d)
	other := application.New(store.New(d.DB, d.Clock.Now), d.Directories, d.Ring, applicationtest.Base, d.Clock.Now,
		applicationtest.Config)
	var group sync.WaitGroup
	var mu sync.Mutex
	certificates := map[string]bool{}
	for _, replica := range []*application.Service{d.Service, other, d.Service, other} {
		group.Go(func() {
			p, err := replica.SAMLIdentityProvider(t.Context(), at)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			certificates[p.Certificate] = true
		})
	}
	group.Wait()
	if len(certificates) != 1 {
		t.Errorf("they give %d certificates", len(certificates))
	}
}

func TestCertificatesOfServiceProvidersThatEndAreCounted(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	register := func(entity, certificate string) {
		t.Helper()
		in := application.NewSAMLServiceProvider{
			AssertionConsumerServiceURL: field.Some("https://sp.example.test/acs"), EntityID: field.Some(entity),
		}
		if certificate != "" {
			in.EncodedX509Certificate = field.Some(certificate)
		}
		if _, err := d.Service.CreateSAMLServiceProvider(t.Context(), tenant, in); err != nil {
			t.Fatal(err)
		}
	}
	register("urn:none", "")
	for state, made := range map[string]time.Time{
		saml.CertificateExpired:     d.Clock.Now().AddDate(-11, 0, 0),
		saml.CertificateNotYetValid: d.Clock.Now().AddDate(1, 0, 0),
		saml.CertificateExpiresSoon: d.Clock.Now().AddDate(-10, 0, 20), saml.CertificateValid: d.Clock.Now(),
	} {
		pair, err := saml.NewKeyPair("sp", made)
		if err != nil {
			t.Fatal(err)
		}
		register("urn:"+state, pair.Certificate)
	}
	counts, err := application.CheckSAMLCertificates(t.Context(), d.Service)
	want := map[string]int64{
		saml.CertificateExpired: 1, saml.CertificateNotYetValid: 1, saml.CertificateExpiresSoon: 1, saml.CertificateValid: 1,
	}
	if err != nil || !maps.Equal(counts, want) {
		t.Errorf("the certificates are counted as %v, %v, want %v", counts, err, want)
	}
}

// An application that goes while its identity provider is being made takes it
// along.
func TestAnIdentityProviderOfAnApplicationThatGoes(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	for range 3 {
		at, shop := policy(t, d)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := d.Service.SAMLIdentityProvider(t.Context(), at); err != nil && !errors.Is(err, apierr.NotFound) {
					t.Error(err)
				}
			})
		}
		if err := d.Service.DeleteApplication(t.Context(), shop); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		if _, err := d.Service.SAMLIdentityProvider(t.Context(), at); !errors.Is(err, apierr.NotFound) {
			t.Errorf("afterwards it returns %v", err)
		}
	}
	var left int
	if err := d.DB.QueryRow(t.Context(), "SELECT count(*) FROM saml_identity_providers").Scan(&left); err != nil ||
		left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}

// Key pairs are made one at a time: a caller that waits too long is answered with Retry-After,
// and a caller that asks for a pair that exists does not wait.
func TestOneKeyPairIsMadeAtATime(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	made, _ := policy(t, d)
	if _, err := d.Service.SAMLIdentityProvider(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	waiting, _ := policy(t, d)
	d.Service.OccupyKeyPairSlot()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := d.Service.SAMLIdentityProvider(ctx, made); err != nil {
		t.Errorf("one that is there returns %v", err)
	}
	_, err := d.Service.SAMLIdentityProvider(ctx, waiting)
	if refusal := apierr.From(err); !errors.Is(err, apierr.Unavailable) || refusal.RetryAfter == 0 {
		t.Errorf("it returns %v", err)
	}
}

// After a rotation of the master key the encrypted columns can still be decrypted.
func TestAMasterKeyCanBeReplacedAndThenDropped(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	at, _ := policy(t, d)
	if _, err := d.Service.SAMLIdentityProvider(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Service.CreateDefaultRelayState(t.Context(), at, application.NewRelayState{}); err != nil {
		t.Fatal(err)
	}
	ring := func(text secure.Secret) *secure.Keyring {
		r, err := secure.ParseKeyring(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sealed := map[string]string{
		"application.saml/" + at.ID.String(): `SELECT private_key_sealed FROM saml_identity_providers
			WHERE tenant_id = $1`,
		"application.relay/" + at.Tenant.String(): `SELECT key_sealed FROM saml_relay_keys WHERE tenant_id = $1`,
	}
	read := func(with *secure.Keyring) map[string]secure.Secret {
		opened := map[string]secure.Secret{}
		for purpose, query := range sealed {
			var value []byte
			if err := d.DB.QueryRow(t.Context(), query, at.Tenant).Scan(&value); err != nil {
				t.Fatal(err)
			}
			if secret, err := with.Open(value, purpose); err == nil {
				opened[purpose] = secret
			}
		}
		return opened
	}
	before := read(d.Ring)
	next := secure.NewMasterKey("k2")
	stop := worktest.Start(t, reseal.Worker(d.DB, ring(next+","+d.Master), application.Sealed...))
	deadline, tick := time.NewTimer(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for len(read(ring(next))) < len(sealed) {
		select {
		case <-deadline.C:
			t.Fatal("timeout: waited for the new master key")
		case <-tick.C:
		}
	}
	stop()
	for purpose, secret := range read(ring(next)) {
		if secret == "" || secret != before[purpose] {
			t.Errorf("%s changed", purpose)
		}
	}
}
