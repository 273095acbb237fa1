package contract_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/oauthapi/signaturetest"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// timeLayout is how the scheme writes a time.
const timeLayout = "20060102T150405Z"

// request is a request of a key, signed now.
func request(s surroundings, key oauthapi.Key) oauthapi.VerifySignature {
	sum := sha256.Sum256([]byte("GET\n/\n"))
	return signaturetest.Sign(oauthapi.VerifySignature{
		ID: key.ID, Timestamp: s.Now().UTC().Format(timeLayout), Nonce: rand.Text(), Request: hex.EncodeToString(sum[:]),
	}, secret)
}

// unsigned checks that a signed request is refused.
func unsigned(t *testing.T, s surroundings, in oauthapi.VerifySignature) {
	t.Helper()
	if key, err := s.API.VerifySignature(t.Context(), in); !errors.Is(err, apierr.Unauthorized) || !isNone(key) {
		t.Fatalf("VerifySignature returns %+v, %v; want %v", key, err, apierr.Unauthorized)
	}
}

func verify(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	in := request(s, key)
	got, err := s.API.VerifySignature(t.Context(), in)
	if err != nil || !same(got, key) {
		t.Errorf("VerifySignature returns %+v, %v; want %+v", got, err, key)
	}
	unsigned(t, s, in)
	again := in
	again.Timestamp = s.Now().Add(time.Minute).UTC().Format(timeLayout)
	unsigned(t, s, signaturetest.Sign(again, secret))
	t.Run("another key has nonces of its own", func(t *testing.T) {
		other := in
		other.ID = made(t, s, s.Administrator).ID
		if _, err := s.API.VerifySignature(t.Context(), signaturetest.Sign(other, secret)); err != nil {
			t.Error(err)
		}
	})
	t.Run("one of fifty that repeat a request at once", func(t *testing.T) {
		in := request(s, key)
		errs := make([]error, 50)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { _, errs[i] = s.API.VerifySignature(t.Context(), in) })
		}
		group.Wait()
		accepted := 0
		for _, err := range errs {
			if err == nil {
				accepted++
			} else if !errors.Is(err, apierr.Unauthorized) {
				t.Error(err)
			}
		}
		if accepted != 1 {
			t.Errorf("%d were accepted", accepted)
		}
	})
}

func forged(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	good := request(s, key)
	for name, change := range map[string]func(*oauthapi.VerifySignature){
		"another key's id":          func(in *oauthapi.VerifySignature) { in.ID = made(t, s, s.Administrator).ID + "x" },
		"no id":                     func(in *oauthapi.VerifySignature) { in.ID = "" },
		"SQL":                       func(in *oauthapi.VerifySignature) { in.ID = "' OR '1'='1" },
		"another time":              func(in *oauthapi.VerifySignature) { in.Timestamp = s.Now().Add(time.Second).UTC().Format(timeLayout) },
		"no time":                   func(in *oauthapi.VerifySignature) { in.Timestamp = "" },
		"a time with a fraction":    func(in *oauthapi.VerifySignature) { in.Timestamp = strings.Replace(in.Timestamp, "Z", ".0Z", 1) },
		"another nonce":             func(in *oauthapi.VerifySignature) { in.Nonce = rand.Text() },
		"no nonce":                  func(in *oauthapi.VerifySignature) { in.Nonce = "" },
		"a nonce with a slash":      func(in *oauthapi.VerifySignature) { in.Nonce = "a/b" },
		"a nonce with a NUL":        func(in *oauthapi.VerifySignature) { in.Nonce = "a\x00b" },
		"a nonce of a kilobyte":     func(in *oauthapi.VerifySignature) { in.Nonce = strings.Repeat("n", 1<<10) },
		"another request":           func(in *oauthapi.VerifySignature) { in.Request = strings.Repeat("0", 64) },
		"no signature":              func(in *oauthapi.VerifySignature) { in.Signature = "" },
		"half the signature":        func(in *oauthapi.VerifySignature) { in.Signature = in.Signature[:32] },
		"the signature in capitals": func(in *oauthapi.VerifySignature) { in.Signature = strings.ToUpper(in.Signature) },
		"another signature":         func(in *oauthapi.VerifySignature) { *in = signaturetest.Sign(*in, secret+"x") },
	} {
		t.Run(name, func(t *testing.T) {
			in := good
			change(&in)
			unsigned(t, s, in)
		})
	}
	t.Run("nothing of which used up the nonce", func(t *testing.T) {
		if _, err := s.API.VerifySignature(t.Context(), good); err != nil {
			t.Error(err)
		}
	})
	for name, nonce := range map[string]string{"a nonce with a slash": "a/b", "a nonce with a NUL": "a\x00b",
		"a nonce of a kilobyte": strings.Repeat("n", 1<<10), "no nonce": ""} {
		t.Run(name+", well signed", func(t *testing.T) {
			in := good
			in.Nonce = nonce
			unsigned(t, s, signaturetest.Sign(in, secret))
		})
	}
}

func signers(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	allowed := func() {
		t.Helper()
		if _, err := s.API.VerifySignature(t.Context(), request(s, key)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.API.ManagementKey(t.Context(), oauthapi.ManagementKey{ID: key.ID}); err != nil || !same(got, key) {
			t.Fatalf("ManagementKey returns %+v, %v; want %+v", got, err, key)
		}
	}
	refused := func() {
		t.Helper()
		unsigned(t, s, request(s, key))
		if got, err := s.API.ManagementKey(t.Context(), oauthapi.ManagementKey{ID: key.ID}); !errors.Is(err, apierr.Unauthorized) ||
			!isNone(got) {
			t.Fatalf("ManagementKey returns %+v, %v; want %v", got, err, apierr.Unauthorized)
		}
	}
	allowed()
	s.SetKeyStatus(key.ID, directoryapi.Disabled) // at once, in the process that did it
	refused()
	s.SetKeyStatus(key.ID, directoryapi.Enabled)
	key.ModifiedAt = s.Now()
	allowed()
	s.SetStatus(s.Administrator, directoryapi.Disabled)
	s.Wait(100 * time.Millisecond)
	refused()
	s.SetStatus(s.Administrator, directoryapi.Enabled)
	allowed()
	s.SetStatus(s.Administrators, directoryapi.Disabled)
	s.Wait(100 * time.Millisecond)
	refused()
	s.SetStatus(s.Administrators, directoryapi.Enabled)
	allowed()
	t.Run("the key of an end user", func(t *testing.T) {
		key = made(t, s, s.EndUser)
		refused()
	})
	t.Run("a key that nobody has", func(t *testing.T) {
		key.ID = secure.KeyID()
		refused()
	})
	t.Run("a directory that is away is no bad key", func(t *testing.T) {
		key := made(t, s, s.Administrator)
		s.Fail(true)
		if _, err := s.API.VerifySignature(t.Context(), request(s, key)); !errors.Is(err, apierr.Unavailable) {
			t.Errorf("VerifySignature returns %v; want %v", err, apierr.Unavailable)
		}
		if _, err := s.API.ManagementKey(t.Context(), oauthapi.ManagementKey{ID: key.ID}); !errors.Is(err, apierr.Unavailable) {
			t.Errorf("ManagementKey returns %v; want %v", err, apierr.Unavailable)
		}
		s.Fail(false)
	})
}

func clocks(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	at := func(after time.Duration) oauthapi.VerifySignature {
		in := request(s, key)
		in.Timestamp = s.Now().Add(after).UTC().Format(timeLayout)
		return signaturetest.Sign(in, secret)
	}
	accepted := func(in oauthapi.VerifySignature) {
		t.Helper()
		if _, err := s.API.VerifySignature(t.Context(), in); err != nil {
			t.Error(err)
		}
	}
	accepted(at(15 * time.Minute))
	accepted(at(-time.Hour))
	unsigned(t, s, at(15*time.Minute+time.Second))
	unsigned(t, s, at(-time.Hour-time.Second))

	in := at(0)
	accepted(in)
	again := func() oauthapi.VerifySignature {
		in.Timestamp = s.Now().UTC().Format(timeLayout)
		return signaturetest.Sign(in, secret)
	}
	s.Wait(75 * time.Minute)
	unsigned(t, s, again())
	s.Wait(time.Second)
	accepted(again())
	unsigned(t, s, again())
}
