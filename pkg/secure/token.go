package secure

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base32Upper = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Token returns a random token of n characters of base62 from crypto/rand; 22 characters have 130
// bits of entropy.
func Token(n int) Secret { return Secret(random(n, base62)) }

// KeyID returns a new id of an API key: 26 upper-case letters and digits.
func KeyID() string { return random(26, base32Upper) }

// UserCode returns eight random consonants for a user to type (RFC 8628, section 6.1): 34 bits.
func UserCode() string { return random(8, "BCDFGHJKLMNPQRSTVWXZ") }

// random returns n random characters of the alphabet, all equally likely.
func random(n int, alphabet string) string {
	limit := 256 - 256%len(alphabet)
	out := make([]byte, 0, n)
	buffer := make([]byte, n+n/2)
	for len(out) < n {
		_, _ = rand.Read(buffer)
		for _, b := range buffer {
			if int(b) < limit && len(out) < n {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out)
}

// Digest returns the SHA-256 of a token, which is stored in place of the token. A random token
// has so much entropy that no slow hash is needed.
func Digest(token Secret) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Derive returns a key of 32 bytes for one purpose, derived from a secret (key derivation, HKDF with
// SHA-256, RFC 5869). The key reveals neither the secret nor the keys for other purposes.
func Derive(secret Secret, purpose string) Secret {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, purpose, 32)
	if err != nil {
		panic(err) // only for a key longer than 8,160 bytes
	}
	return Secret(key)
}
