package oauth_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/oauthapi/signaturetest"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// The worked example of docs/interface/authentication.md#sauthc1.
func TestTheWorkedVectorIsGood(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	d.Clock.Move(time.Date(2024, 2, 15, 8, 30, 0, 0, time.UTC).Sub(d.Clock.Now()))
	if _, err := d.Service.EnsureKey(t.Context(), oauthapi.EnsureKey{Tenant: d.Tenant, Account: d.Administrator, ID: "MyKeyId",
		Secret: "MyKeySecret"}); err != nil {
		t.Fatal(err)
	}
	in := oauthapi.VerifySignature{
		ID: "MyKeyId", Timestamp: "20240215T083000Z", Nonce: "7b2c0f4e-7c0d-4d0e-9f0a-1d6a5b9e2c11",
		Request:   "ff77531d24764b0591f7c804b72081a09097a468d1bea0d835bc18747580cb7f",
		Signature: "56374c25dad5d1e3eebece25f53e62a2cbaa941a8dae9e8077a07d3606ce349c",
	}
	if _, err := d.Service.VerifySignature(t.Context(), in); err != nil {
		t.Error(err)
	}
}

// signedRequest returns a request that is signed with the API key of the site's administrator.
func signedRequest(d *oauthtest.Deployment) oauthapi.VerifySignature {
	return signaturetest.Sign(oauthapi.VerifySignature{
		ID: d.Key, Timestamp: d.Clock.Now().Format("20060102T150405Z"), Nonce: rand.Text(), Request: "of no matter",
	}, d.Secret)
}

func TestAReplicaKnowsTheNoncesOfAnother(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	other := d.WithMasterKey(t, d.Master)
	in := signedRequest(d)
	if _, err := d.Service.VerifySignature(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := other.VerifySignature(t.Context(), in); !errors.Is(err, apierr.Unauthorized) {
			t.Errorf("another replica returns %v", err)
		}
		other = d.WithMasterKey(t, d.Master) // as after a restart
	}
}

// Of any number of concurrent requests with the same nonce, on any replica, one is accepted. All
// requests with other nonces, which are stored by the same statements, are accepted.
func TestANonceIsAcceptedOnceOfManyAtATime(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	replicas := []*oauth.Service{d.Service, d.WithMasterKey(t, d.Master)}
	replayed := signedRequest(d)
	var accepted atomic.Int32
	var clients sync.WaitGroup
	for n := range 50 {
		replica, own := replicas[n%2], signedRequest(d)
		clients.Go(func() {
			switch _, err := replica.VerifySignature(t.Context(), replayed); {
			case err == nil:
				accepted.Add(1)
			case !errors.Is(err, apierr.Unauthorized):
				t.Errorf("a replay returns %v", err)
			}
			if _, err := replica.VerifySignature(t.Context(), own); err != nil {
				t.Errorf("a nonce of its own returns %v", err)
			}
		})
	}
	clients.Wait()
	if accepted.Load() != 1 {
		t.Errorf("%d requests with one nonce were accepted", accepted.Load())
	}
}

// The answer that the account of a signer is an administrator is kept while the feeds report no change.
func TestABusySignerAsksItsPeersOnce(t *testing.T) {
	t.Parallel()
	d, replicas := distributedReplicas(t)
	sign := func() error {
		_, err := replicas[0].VerifySignature(t.Context(), signedRequest(d))
		return err
	}
	worktest.Await(t, "the answer to be kept", func() bool {
		d.Clock.Move(101 * time.Millisecond)
		d.Fail(nil)
		if err := sign(); err != nil {
			t.Fatal(err)
		}
		d.Fail(apierr.Unavailable)
		return sign() == nil
	})
	for range 20 {
		if err := sign(); err != nil {
			t.Fatal(err)
		}
	}
	d.Clock.Move(50 * time.Millisecond)
	if err := sign(); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("50 ms later it returns %v", err)
	}
}

// A key that another process disables or deletes signs no valid request from then on: the statement
// that stores the nonce of every request checks the key.
func TestAKeyThatEndedElsewhereSignsNothing(t *testing.T) {
	for name, end := range map[string]func(*oauthtest.Deployment, *oauth.Service) error{
		"disabled": func(d *oauthtest.Deployment, s *oauth.Service) error {
			_, err := s.UpdateAPIKey(context.Background(), d.Tenant, d.Key, oauth.APIKeyChange{Status: field.Some(directoryapi.Disabled)})
			return err
		},
		"deleted": func(d *oauthtest.Deployment, s *oauth.Service) error {
			return s.DeleteAPIKey(context.Background(), d.Tenant, d.Key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := oauthtest.Open(t)
			other := d.WithMasterKey(t, d.Master)
			if _, err := d.Service.VerifySignature(t.Context(), signedRequest(d)); err != nil {
				t.Fatal(err)
			}
			if err := end(d, other); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Service.VerifySignature(t.Context(), signedRequest(d)); !errors.Is(err, apierr.Unauthorized) {
				t.Errorf("the process that has the key in memory returns %v", err)
			}
		})
	}
}

func TestNoncesArePurged(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	first := signedRequest(d)
	if _, err := d.Service.VerifySignature(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{76 * time.Minute, 0}, {time.Second, 1}, {time.Second, 0}} { // a minute more than it is remembered, for clocks that differ
		d.Clock.Move(c.after)
		if n, err := d.Service.Purge(t.Context()); err != nil || n != c.want {
			t.Errorf("purged %d, %v; want %d", n, err, c.want)
		}
	}
}
