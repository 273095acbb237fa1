package secure

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Keyring seals the secrets that must be read back (encryption at rest): API key secrets,
// SMTP passwords, mail tokens in events. A master key encrypts the values themselves: there
// is no envelope encryption with a KEK and data keys below it. The first key seals; every key opens, so
// that a new key can be put in front and the older ones dropped once nothing
// is sealed under them.
type Keyring struct {
	active string
	keys   map[string]cipher.AEAD
	roots  map[string][]byte // from which keys for other purposes are derived
}

// ErrSealed is returned for a sealed value that no key of the ring opens, or
// that was sealed for another purpose.
var ErrSealed = errors.New("secure: cannot open the sealed value: its master key is not configured, or the value was changed")

const (
	sealVersion = 1
	nonceSize   = 12
)

// ParseKeyring reads "id:base64 of 32 bytes[,older id:base64...]".
func ParseKeyring(text Secret) (*Keyring, error) {
	ring := &Keyring{keys: map[string]cipher.AEAD{}, roots: map[string][]byte{}}
	for entry := range strings.SplitSeq(text.Reveal(), ",") {
		name, encoded, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok || name == "" || len(name) > 255 {
			return nil, errors.New("a master key has the form <key id>:<base64 of 32 bytes>; make one with: echo k1:$(openssl rand -base64 32)")
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != 32 {
			return nil, fmt.Errorf("the master key %q is not the base64 form of 32 bytes; make one with: openssl rand -base64 32", name)
		}
		if _, twice := ring.keys[name]; twice {
			return nil, fmt.Errorf("the master key id %q is given twice", name)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		ring.keys[name], ring.roots[name] = aead, key
		if ring.active == "" {
			ring.active = name
		}
	}
	return ring, nil
}

// NewMasterKey makes the text of a ring with one fresh key.
func NewMasterKey(name string) Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return Secret(name + ":" + base64.StdEncoding.EncodeToString(key))
}

// Seal encrypts plain with AES-256-GCM under the active key. The purpose (for
// example "oauth.apikey/" and the key's id) is authenticated with it: a value
// copied to another row does not open there.
func (r *Keyring) Seal(plain Secret, purpose string) []byte {
	out := slices.Grow(r.Mark(), nonceSize+len(plain)+16)
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce)
	out = append(out, nonce...)
	return r.keys[r.active].Seal(out, nonce, []byte(plain), []byte(purpose))
}

// Open decrypts what Seal made for the same purpose.
func (r *Keyring) Open(sealed []byte, purpose string) (Secret, error) {
	if len(sealed) < 2 || sealed[0] != sealVersion || len(sealed) < 2+int(sealed[1])+nonceSize {
		return "", ErrSealed
	}
	rest := sealed[2:]
	name, rest := string(rest[:sealed[1]]), rest[sealed[1]:]
	aead, ok := r.keys[name]
	if !ok {
		return "", fmt.Errorf("%w (key id %q)", ErrSealed, name)
	}
	plain, err := aead.Open(nil, rest[:nonceSize], rest[nonceSize:], []byte(purpose))
	if err != nil {
		return "", ErrSealed
	}
	return Secret(plain), nil
}

// Keyrings are rings whose keys may have the same ids. The first seals, each opens.
type Keyrings []*Keyring

// Seal is Keyring.Seal of the first ring.
func (r Keyrings) Seal(plain Secret, purpose string) []byte { return r[0].Seal(plain, purpose) }

// Open decrypts what Seal of any of the rings made for the same purpose.
func (r Keyrings) Open(sealed []byte, purpose string) (plain Secret, err error) {
	for _, ring := range r {
		if plain, err = ring.Open(sealed, purpose); err == nil {
			break
		}
	}
	return plain, err
}

// Derive returns a key of 32 bytes that signs for one purpose alone (HKDF with
// SHA-256, RFC 5869), and the id of the active key, which it comes from. It reveals
// nothing of the ring's keys, nor of those for other purposes.
func (r *Keyring) Derive(purpose string) (keyID string, key Secret) {
	key, err := r.Derived(r.active, purpose)
	if err != nil {
		panic(err) // the active key is there
	}
	return r.active, key
}

// Derived returns the key that Derive gave when the key of that id was active.
func (r *Keyring) Derived(keyID, purpose string) (Secret, error) {
	root, ok := r.roots[keyID]
	if !ok {
		return "", fmt.Errorf("%w (key id %q)", ErrSealed, keyID)
	}
	return Derive(Secret(root), purpose), nil
}

// Mark is what every value sealed under the active key begins with. A value
// that does not is to be sealed again before its key can be dropped.
func (r *Keyring) Mark() []byte {
	return append([]byte{sealVersion, byte(len(r.active))}, r.active...)
}

// SealedColumn is a column of sealed values (NULL is none) in a table that has a
// tenant_id. Key is the column that identifies a row of a tenant, and Purpose what
// the value in the row of that key is sealed for. Package reseal seals the values
// again under a new master key.
type SealedColumn[K any] struct {
	Table, Key, Column string
	Purpose            func(K) string
}
