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

// MaxIterations is how much work a client can ask for to derive a key.
const MaxIterations = 65536

const (
	// derivationsAtOnce bounds the iterations that a process works on at once:
	// two of the longest derivations.
	derivationsAtOnce = 2 * MaxIterations
	// derivationPatience is how long a derivation waits for its turn.
	derivationPatience = time.Second
)

// Encryption is how a client wants the secrets of API keys to be encrypted
// (resolutions, section 19.2).
type Encryption struct {
	Salt       []byte
	Bits       int // of the key: 128, 192 or 256
	Iterations int // 1 to MaxIterations
}

// derivations bounds the work on keys that clients ask for.
type derivations struct{ places *semaphore.Weighted }

func newDerivations() derivations { return derivations{semaphore.NewWeighted(derivationsAtOnce)} }

// key derives a key from a password (RFC 8018, section 5.2).
func (d derivations) key(ctx context.Context, password secure.Secret, e Encryption) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, derivationPatience)
	defer cancel()
	if d.places.Acquire(ctx, int64(e.Iterations)) != nil {
		return nil, apierr.Unavailable.Because("too many keys are being derived at this moment; repeat the request later").After(time.Second)
	}
	defer d.places.Release(int64(e.Iterations))
	return pbkdf2.Key(sha1.New, password.Reveal(), e.Salt, e.Iterations, e.Bits/8)
}

// Encrypter gives what encrypts the secrets of one answer, under the secret of
// the API key that authenticated the request. The key is derived here, once for
// all of them.
func (s *Service) Encrypter(ctx context.Context, tenant id.ID, caller string, e Encryption) (func(secure.Secret) secure.Secret, error) {
	k, err := s.signingKey(ctx, tenant, caller)
	if errors.Is(err, apierr.NotFound) {
		return nil, errBadKey // it was deleted after the gateway had accepted it
	}
	if err != nil {
		return nil, err
	}
	key, err := s.derivations.key(ctx, k.Secret, e)
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

// encrypt gives the Base64 of an initialisation vector and of what AES-CBC makes
// of a text that is padded by PKCS #7.
func encrypt(block cipher.Block, iv []byte, plain secure.Secret) secure.Secret {
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	text := append([]byte(plain.Reveal()), bytes.Repeat([]byte{byte(padding)}, padding)...)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(text, text)
	return secure.Secret(base64.StdEncoding.EncodeToString(append(iv, text...)))
}
