package oauth

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// MaxIterations is the limit of iterations of a key derivation (PBKDF2).
const MaxIterations = 65536

const (
	// maxConcurrentIterations limits the iterations of all key derivations that run
	// concurrently in a process: two of the longest.
	maxConcurrentIterations = 2 * MaxIterations
	// derivationTimeout is how long a key derivation waits for others to end.
	derivationTimeout = time.Second
)

// Encryption has the parameters by which a client asks that the secrets of API keys are
// encrypted in the answer (docs/interface/authentication.md#encrypted-secrets).
type Encryption struct {
	Salt       []byte
	Bits       int // of the key: 128, 192 or 256
	Iterations int // 1 to MaxIterations
}

// keyDerivations limits the key derivations that run concurrently.
type keyDerivations struct{ iterations *semaphore.Weighted }

func newKeyDerivations() keyDerivations {
	return keyDerivations{semaphore.NewWeighted(maxConcurrentIterations)}
}

// deriveKey derives a key from a password with PBKDF2 (RFC 8018, section 5.2).
func (d keyDerivations) deriveKey(ctx context.Context, password secure.Secret, e Encryption) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, derivationTimeout)
	defer cancel()
	if d.iterations.Acquire(ctx, int64(e.Iterations)) != nil {
		return nil, apierr.Unavailable.Because("too many keys are being derived; repeat the request later").WithRetryAfter(time.Second)
	}
	defer d.iterations.Release(int64(e.Iterations))
	return pbkdf2.Key(sha1.New, password.Reveal(), e.Salt, e.Iterations, e.Bits/8)
}

// Encrypter returns a function that encrypts the secrets of API keys for one answer. The
// encryption key is derived, once, from the secret of the API key that authenticated the
// request.
func (s *Service) Encrypter(ctx context.Context, tenant id.ID, callerKeyID string, e Encryption) (
	func(secure.Secret) secure.Secret, error,
) {
	k, err := s.signingKey(ctx, tenant, callerKeyID)
	if errors.Is(err, apierr.NotFound) {
		return nil, errBadAPIKey // the key was deleted after the gateway had accepted it
	}
	if err != nil {
		return nil, err
	}
	key, err := s.keyDerivations.deriveKey(ctx, k.Secret, e)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return func(plain secure.Secret) secure.Secret {
		iv := make([]byte, aes.BlockSize)
		_, _ = rand.Read(iv) // never fails
		return encrypt(block, iv, plain)
	}, nil
}

// encrypt returns the Base64 of an initialisation vector and the ciphertext of
// AES-CBC with PKCS #7 padding.
func encrypt(block cipher.Block, iv []byte, plain secure.Secret) secure.Secret {
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	text := append([]byte(plain.Reveal()), bytes.Repeat([]byte{byte(padding)}, padding)...)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(text, text)
	return secure.Secret(base64.StdEncoding.EncodeToString(append(iv, text...)))
}
