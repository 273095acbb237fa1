package oauth_test

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func bytesFrom(first byte) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// The vectors of docs/interface/authentication.md#encrypted-secrets.
func TestWorkedEncryption(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	for bits, want := range map[int]struct{ key, text string }{
		128: {"90de6052c534a374acc7008688db23f2", "EBESExQVFhcYGRobHB0eH7ydrf7nfzSybCyTHGxNmHp0GRldicpQJuIZs9+nZDq8"},
		256: {"", "EBESExQVFhcYGRobHB0eH0+9PUSjmenshvPs9zdxlHxenZPCY7/MiD6Y4WtH9ZEb"},
	} {
		key, err := d.Service.DeriveKey(t.Context(), "MyKeySecret", oauth.Encryption{Salt: bytesFrom(0), Bits: bits, Iterations: 1024})
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(key); len(got) != bits/4 || (want.key != "" && got != want.key) {
			t.Errorf("the key of %d bits is %s", bits, got)
		}
		text, err := oauth.EncryptUnder(key, bytesFrom(0x10), "ANewSecretValue0123456789")
		if err != nil {
			t.Fatal(err)
		}
		if text.Reveal() != want.text {
			t.Errorf("with %d bits the text is %s, want %s", bits, text.Reveal(), want.text)
		}
	}
}

func TestSecretsAreEncryptedUnderTheCallersSecret(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	_, err := d.Service.EnsureKey(t.Context(), oauthapi.EnsureKey{Tenant: d.Tenant, Account: d.Administrator, ID: "MyKeyId",
		Secret: "MyKeySecret"})
	if err != nil {
		t.Fatal(err)
	}
	how := oauth.Encryption{Salt: bytesFrom(0), Bits: 128, Iterations: 1024}
	encrypt, err := d.Service.Encrypter(t.Context(), d.Tenant, "MyKeyId", how)
	if err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString("90de6052c534a374acc7008688db23f2")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[secure.Secret]bool{}
	for _, plain := range []secure.Secret{"", "x", "fifteen letters", "sixteen letters!", d.Secret, d.Secret} {
		text := encrypt(plain)
		if got := oauthtest.Decrypt(t, key, text.Reveal()); got != plain.Reveal() {
			t.Errorf("%q becomes %q", plain.Reveal(), got)
		}
		if seen[text] {
			t.Error("two encryptions are the same")
		}
		seen[text] = true
	}
	t.Run("of a key that was deleted just now", func(t *testing.T) {
		if _, err := d.Service.Encrypter(t.Context(), d.Tenant, "NOBODY", how); !errors.Is(err, apierr.Unauthorized) {
			t.Error(err)
		}
	})
	t.Run("of no other tenant", func(t *testing.T) {
		if _, err := d.Service.Encrypter(t.Context(), d.NewSite(t).Tenant, "MyKeyId", how); !errors.Is(err, apierr.Unauthorized) {
			t.Error(err)
		}
	})
	t.Run("whatever its status is, which the gateway judges", func(t *testing.T) {
		if _, err := d.DB.Exec(t.Context(), `UPDATE api_keys SET status = $1`, directoryapi.Disabled); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Service.Encrypter(t.Context(), d.Tenant, d.Key, how); err != nil {
			t.Error(err)
		}
	})
}

// The keys that clients ask to derive take at most two of the longest
// derivations' work at once; a request that waits for longer than a second is refused.
func TestDerivationsAreBounded(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	long := oauth.Encryption{Salt: bytesFrom(0), Bits: 256, Iterations: oauth.MaxIterations}
	release := d.Service.OccupyDerivations(t.Context())
	_, err := d.Service.Encrypter(t.Context(), d.Tenant, d.Key, long)
	if !errors.Is(err, apierr.Unavailable) || apierr.From(err).RetryAfter == 0 {
		t.Errorf("beside others the derivation returns %v", err)
	}
	release()
	for _, err := range runConcurrently(10, func(int) error {
		_, err := d.Service.Encrypter(context.Background(), d.Tenant, d.Key, long)
		return err
	}) {
		if err != nil && !errors.Is(err, apierr.Unavailable) {
			t.Error(err)
		}
	}
}
