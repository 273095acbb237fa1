package secure

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keyring encrypts the secrets that must be read back (encryption at rest): API key secrets, SMTP
// passwords, mail tokens in events. To seal is to encrypt and authenticate, to open is to decrypt. A
// master key encrypts the values themselves. The first key seals, every key opens, so that a new key
// can be put in front (key rotation: pkg/reseal) and older keys removed when no value is sealed under
// them.
type Keyring struct {
	active string
	keys   map[string]cipher.AEAD
	roots  map[string][]byte // the master keys, from which Derive derives other keys
}

// ErrSealed is returned for a sealed value that no key of the ring decrypts, or that was sealed
// for another purpose.
var ErrSealed = errors.New(
	"secure: cannot open the sealed value: its master key is not configured, or the value was changed")

const (
	sealVersion = 1
	nonceSize   = 12
)

// ParseKeyring parses "id:base64 of 32 bytes[,older id:base64...]".
func ParseKeyring(text Secret) (*Keyring, error) {
	ring := &Keyring{keys: map[string]cipher.AEAD{}, roots: map[string][]byte{}}
	for entry := range strings.SplitSeq(text.Reveal(), ",") {
		name, encoded, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok || name == "" || len(name) > 255 {
			return nil, errors.New("a master key has the form <key id>:<base64 of 32 bytes>; make one with: echo " +
				"k1:$(openssl rand -base64 32)")
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != 32 {
			return nil, fmt.Errorf(
				"the master key %q is not the base64 form of 32 bytes; make one with: openssl rand -base64 32", name)
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

// NewMasterKey returns the text of a keyring with one new key.
func NewMasterKey(name string) Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return Secret(name + ":" + base64.StdEncoding.EncodeToString(key))
}

// Seal encrypts plain with AES-256-GCM under the active key. The purpose (for example
// "oauth.apikey/" and the id of the API key) is authenticated as additional data, so that a value
// that is copied to another row cannot be opened there.
func (r *Keyring) Seal(plain Secret, purpose string) []byte {
	out := slices.Grow(r.ActiveKeyPrefix(), nonceSize+len(plain)+16)
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce)
	out = append(out, nonce...)
	return r.keys[r.active].Seal(out, nonce, []byte(plain), []byte(purpose))
}

// Open decrypts a value that Seal has encrypted for the same purpose.
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

// Keyrings are several keyrings, whose keys may have the same ids. The first seals, every one opens.
type Keyrings []*Keyring

// Seal is Keyring.Seal of the first ring.
func (r Keyrings) Seal(plain Secret, purpose string) []byte { return r[0].Seal(plain, purpose) }

// Open decrypts a value that any of the keyrings has sealed for the same purpose.
func (r Keyrings) Open(sealed []byte, purpose string) (plain Secret, err error) {
	for _, ring := range r {
		if plain, err = ring.Open(sealed, purpose); err == nil {
			break
		}
	}
	return plain, err
}

// Derive returns a key of 32 bytes for one purpose, derived from the active key (key derivation,
// HKDF with SHA-256, RFC 5869), and the id of the active key. The derived key reveals neither the
// master key nor the keys for other purposes.
func (r *Keyring) Derive(purpose string) (keyID string, key Secret) {
	key, err := r.Derived(r.active, purpose)
	if err != nil {
		panic(err) // the active key is always in the ring
	}
	return r.active, key
}

// DeriveAll returns the keys that Derive returns for a purpose under each master key of the ring, the active
// one first: for verifying what has no room for the id of its key.
func (r *Keyring) DeriveAll(purpose string) []Secret {
	_, key := r.Derive(purpose)
	keys := []Secret{key}
	for keyID, root := range r.roots {
		if keyID != r.active {
			keys = append(keys, Derive(Secret(root), purpose))
		}
	}
	return keys
}

// Derived returns the key that Derive returned while the key with that id was active.
func (r *Keyring) Derived(keyID, purpose string) (Secret, error) {
	root, ok := r.roots[keyID]
	if !ok {
		return "", fmt.Errorf("%w (key id %q)", ErrSealed, keyID)
	}
	return Derive(Secret(root), purpose), nil
}

// KeyIDs returns the ids of the keys, the active one first.
func (r *Keyring) KeyIDs() []string {
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(r.keys)), func(keyID string) bool { return keyID == r.active })
	return slices.Insert(ids, 0, r.active)
}

// Only returns a keyring with one key of the ring, which must have it.
func (r *Keyring) Only(keyID string) *Keyring {
	return &Keyring{active: keyID, keys: map[string]cipher.AEAD{keyID: r.keys[keyID]},
		roots: map[string][]byte{keyID: r.roots[keyID]}}
}

// ActiveKeyPrefix returns the prefix of every value that is sealed under the active key. Any other value must
// be sealed again before its key can be removed.
func (r *Keyring) ActiveKeyPrefix() []byte {
	return append([]byte{sealVersion, byte(len(r.active))}, r.active...)
}

// SealedColumn is a column with sealed values, or NULL, in a table with a tenant_id. Key is the
// column that identifies a row of a tenant, and Purpose returns the purpose of Seal for the row with
// that key. Package reseal seals the values again under a new master key.
type SealedColumn[K any] struct {
	Table, Key, Column string
	Purpose            func(K) string
}
