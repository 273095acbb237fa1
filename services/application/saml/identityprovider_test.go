package saml_test

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
	messages "github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/app"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/saml"
	"github.com/doorward/doorward/services/application/store"
)

// policy makes an application and names its SAML policy.
func policy(t *testing.T, d *applicationtest.Deployment) (at, shop id.Ref) {
	t.Helper()
	tenant, _ := d.Tenant(t)
	body := application.NewApplication{Name: field.Some("Shop " + d.NewID().String())}
	a, err := d.Service.CreateApplication(t.Context(), tenant, body, application.DirectoryToCreate{})
	if err != nil {
		t.Fatal(err)
	}
	return id.Ref{Tenant: tenant, ID: a.SAMLPolicyID}, id.Ref{Tenant: tenant, ID: a.ID}
}

// Two processes that are asked for the first time at once keep one key pair.
func TestReplicasKeepOneKeyPair(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	at, _ := policy(t, d)
	other := app.New(store.New(d.DB, d.Clock.Now), d.Directories, d.Ring, applicationtest.Base, d.Clock.Now,
		applicationtest.Config)
	var group sync.WaitGroup
	var mu sync.Mutex
	certificates := map[string]bool{}
	for _, replica := range []*app.Service{d.Service, other, d.Service, other} {
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
		in := saml.NewServiceProvider{
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
		messages.CertificateExpired:     d.Clock.Now().AddDate(-11, 0, 0),
		messages.CertificateNotYetValid: d.Clock.Now().AddDate(1, 0, 0),
		messages.CertificateExpiresSoon: d.Clock.Now().AddDate(-10, 0, 20), messages.CertificateValid: d.Clock.Now(),
	} {
		pair, err := messages.NewKeyPair("sp", made)
		if err != nil {
			t.Fatal(err)
		}
		register("urn:"+state, pair.Certificate)
	}
	counts, err := saml.CheckSAMLCertificates(t.Context(), d.Service.SAML)
	want := map[string]int64{
		messages.CertificateExpired: 1, messages.CertificateNotYetValid: 1, messages.CertificateExpiresSoon: 1, messages.CertificateValid: 1,
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
		t.Errorf("the read returns %v", err)
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
	if _, err := d.Service.CreateDefaultRelayState(t.Context(), at, saml.NewRelayState{}); err != nil {
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
	stop := worktest.Start(t, reseal.Worker(d.DB, ring(next+","+d.Master), saml.Sealed...))
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
