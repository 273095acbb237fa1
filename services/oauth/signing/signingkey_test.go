package signing_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// published returns the ids of the keys of a key set.
func published(t *testing.T, s *signing.Signer, tenant id.ID) map[string]bool {
	t.Helper()
	set, err := s.KeySet(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, key := range set.Keys {
		var jwk struct{ Kid, D string }
		if err := json.Unmarshal(key, &jwk); err != nil || jwk.D != "" {
			t.Fatalf("the key %s is read with %v", key, err)
		}
		found[jwk.Kid] = true
	}
	return found
}

func keys(t *testing.T, d *oauthtest.Deployment) []store.SigningKey {
	t.Helper()
	page, err := d.Service.OpenID.ListSigningKeys(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
		list.Query{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// newKey makes a key that is NEXT.
func newKey(t *testing.T, d *oauthtest.Deployment, algorithm string) id.Ref {
	t.Helper()
	k, err := d.Service.OpenID.CreateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
		signing.NewSigningKey{Algorithm: field.Some(algorithm)})
	if err != nil || k.Status != store.KeyNext {
		t.Fatalf("a new key is %s, %v", k.Status, err)
	}
	v, err := id.Parse(k.ID)
	if err != nil {
		t.Fatal(err)
	}
	return id.Ref{Tenant: d.Tenant, ID: v}
}

func setStatus(d *oauthtest.Deployment, t *testing.T, key id.Ref, status string, force bool) error {
	_, err := d.Service.OpenID.UpdateSigningKey(t.Context(), key, signing.KeyChange{Status: field.Some(status)},
		force)
	return err
}

func TestFirstUsesAtOnceMakeOneKey(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	processes := []*signing.Signer{d.Service.Signer, d.Replica(t).Signer, d.Replica(t).Signer}
	var wait sync.WaitGroup
	for n := range 50 {
		wait.Go(func() {
			set, err := processes[n%len(processes)].KeySet(t.Context(), d.Tenant)
			if err != nil || len(set.Keys) != 2 {
				t.Errorf("a key set of a first use has %d keys, %v; want 2", len(set.Keys), err)
			}
		})
	}
	wait.Wait()
	found := keys(t, d)
	if len(found) != 2 || found[0].Status != store.KeyActive || found[1].Status != store.KeyActive ||
		found[0].Algorithm == found[1].Algorithm {
		t.Errorf("the keys are %+v, want one of RS256 and one of ES256", found)
	}
}

func TestASigningKeyIsPublishedBeforeItSigns(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	first := keys(t, d)
	next := newKey(t, d, secure.ES256)
	if !published(t, d.Service.Signer, d.Tenant)[next.ID.String()] {
		t.Error("a key that is NEXT is not published")
	}
	if _, err := d.Service.OpenID.CreateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
		signing.NewSigningKey{Algorithm: field.Some("ES256")}); !errors.Is(err, apierr.Exists) {
		t.Errorf("a second key that is NEXT returns %v, want %v", err, apierr.Exists)
	}
	d.Clock.Move(signing.KeySetMaxAge - time.Second)
	if err := setStatus(d, t, next, store.KeyActive, false); !errors.Is(err, apierr.Conflict) {
		t.Errorf("ACTIVE before the caching time returns %v, want %v", err, apierr.Conflict)
	}
	d.Clock.Move(time.Second)
	if err := setStatus(d, t, next, store.KeyActive, false); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys(t, d) {
		switch {
		case k.ID == next.ID.String() && (k.Status != store.KeyActive || k.ActiveAt == nil):
			t.Errorf("the new key is %s", k.Status)
		case k.ID != next.ID.String() && k.Algorithm == secure.ES256 && (k.Status != store.KeyRetired || k.RetiredAt == nil):
			t.Errorf("the former key is %s", k.Status)
		case k.Algorithm == secure.RS256 && k.Status != store.KeyActive:
			t.Errorf("the key of another algorithm is %s", k.Status)
		}
	}
	for _, k := range first {
		if k.Algorithm != secure.ES256 {
			continue
		}
		v, err := id.Parse(k.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := setStatus(d, t, id.Ref{Tenant: d.Tenant, ID: v}, store.KeyActive, true); !errors.Is(err, apierr.Conflict) {
			t.Errorf("a RETIRED key that becomes ACTIVE returns %v, want %v", err, apierr.Conflict)
		}
	}
	if err := setStatus(d, t, next, store.KeyRetired, true); !errors.Is(err, apierr.Conflict) {
		t.Errorf("an ACTIVE key without a successor that is RETIRED returns %v, want %v", err, apierr.Conflict)
	}
	other := d.NewSite(t)
	if err := setStatus(d, t, id.Ref{Tenant: other.Tenant, ID: next.ID}, store.KeyRetired, true); !errors.Is(err,
		apierr.NotFound) {
		t.Errorf("the key of another tenant returns %v, want %v", err, apierr.NotFound)
	}
}

func TestSigningKeysRotateByThemselves(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	replica := d.Replica(t)
	first := keys(t, d)
	rotate := func() {
		t.Helper()
		var wait sync.WaitGroup
		for _, s := range []*signing.Signer{d.Service.Signer, replica.Signer} {
			wait.Go(func() {
				if err := s.RotateKeys(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	count := func(status string) (n int) {
		for _, k := range keys(t, d) {
			if k.Status == status {
				n++
			}
		}
		return n
	}
	d.Clock.Move(90*24*time.Hour - signing.KeySetMaxAge - time.Second)
	rotate()
	if n := len(keys(t, d)); n != len(first) {
		t.Fatalf("before the time there are %d keys", n)
	}
	d.Clock.Move(time.Second)
	rotate()
	rotate()
	if next, active := count(store.KeyNext), count(store.KeyActive); next != 2 || active != 2 {
		t.Fatalf("when they are due, %d keys are NEXT and %d ACTIVE; want 2 and 2", next, active)
	}
	d.Clock.Move(signing.KeySetMaxAge)
	rotate()
	rotate()
	if next, active, retired := count(store.KeyNext), count(store.KeyActive), count(store.KeyRetired); next != 0 ||
		active != 2 || retired != 2 {
		t.Fatalf("at the time, %d keys are NEXT, %d ACTIVE, %d RETIRED; want 0, 2, 2", next, active, retired)
	}
	settings := id.Ref{Tenant: d.Tenant, ID: d.Tenant}
	if _, err := d.Service.OpenID.UpdateSettings(t.Context(), settings,
		signing.SettingsChange{SigningKeyRotation: field.Text{Present: true, Null: true}}); err != nil {
		t.Fatal(err)
	}
	d.Clock.Move(91 * 24 * time.Hour)
	rotate()
	if n := count(store.KeyNext); n != 0 {
		t.Errorf("without rotation %d keys are NEXT", n)
	}
	if _, err := d.Service.OpenID.UpdateSettings(t.Context(), settings,
		signing.SettingsChange{SigningKeyRotation: field.Some("PT10M")}); err != nil {
		t.Fatal(err)
	}
	rotate()
	if n := count(store.KeyNext); n != 2 {
		t.Errorf("with a rotation that has passed %d keys are NEXT, want 2", n)
	}
}
