// Package pwhash computes and verifies password hashes: argon2id (RFC 9106) for all new passwords, not
// bcrypt or scrypt (this file); and imported hashes, such as bcrypt, until the next login
// (imported.go). secure.Passwords is the worker pool that bounds the work (pkg/secure/password.go).
package pwhash

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// storedHash is a parsed stored hash.
type storedHash struct {
	cost    Cost                       // of an argon2id hash; zero for an imported hash
	matches func(password []byte) bool // computes the hash; parse bounds its work
}

// Hash returns the argon2id hash of a password, in the PHC string format.
func Hash(cost Cost, password []byte) string {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt)
	return cost.encode(salt, cost.derive(password, salt))
}

// Compare reports whether a password matches a stored hash, and the cost of the hash, which is zero
// for an imported hash. A text that is no hash is an error.
func Compare(stored string, password []byte) (match bool, cost Cost, err error) {
	parsed, err := parse(stored)
	if err != nil {
		return false, Cost{}, fmt.Errorf("a stored password cannot be read: %w", err)
	}
	return parsed.matches(password), parsed.cost, nil
}

// parse parses a stored hash: an argon2id hash or an imported hash.
func parse(stored string) (storedHash, error) {
	if strings.HasPrefix(stored, argon2idPrefix) {
		return parseArgon2id(stored)
	}
	return parseImported(stored)
}

// Cost has the parameters of argon2id (RFC 9106): the work of one password hash.
type Cost struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultCost is the minimum that OWASP recommends: 19 MiB, two passes, one lane.
var DefaultCost = Cost{Memory: 19 * 1024, Time: 2, Threads: 1}

// The upper limits of a cost; such a hash takes minutes.
const (
	maxMemory  = 4 << 20 // KiB
	maxTime    = 1000
	maxThreads = 255
)

const (
	argon2idPrefix = "$argon2id$"
	saltLength     = 16
	hashLength     = 32
)

// NewCost validates and returns a cost: memory in KiB, passes, lanes.
func NewCost(memory, time, threads int) (Cost, error) {
	if memory < 8 || memory > maxMemory || time < 1 || time > maxTime || threads < 1 || threads > maxThreads {
		return Cost{}, fmt.Errorf(
			"a password hash takes 8 to %d KiB, 1 to %d passes and 1 to %d lanes, not %d, %d and %d",
			maxMemory, maxTime, maxThreads, memory, time, threads)
	}
	return Cost{Memory: uint32(memory), Time: uint32(time), Threads: uint8(threads)}, nil
}

// Dummy returns a hash that no password matches, and that takes as long to compare as a real
// hash.
func (c Cost) Dummy() string { return c.encode(make([]byte, saltLength), make([]byte, hashLength)) }

// encode returns a hash in the PHC string format.
func (c Cost) encode(salt, hash []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(argon2idPrefix+"v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Time, c.Threads,
		b64(salt), b64(hash))
}

var errNotArgon2id = errors.New("it is not an argon2id hash as this product writes it")

// parseArgon2id parses a text of encode, and refuses any other text. Passwords are hashed in
// Unicode's normal form C, so that the same password typed on two keyboards matches (RFC 8265,
// section 4.2).
func parseArgon2id(stored string) (storedHash, error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 {
		return storedHash{}, errNotArgon2id
	}
	var memory, time, threads int
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &time, &threads); err != nil {
		return storedHash{}, errNotArgon2id
	}
	cost, err := NewCost(memory, time, threads)
	if err != nil {
		return storedHash{}, err
	}
	salt, badSalt := base64.RawStdEncoding.DecodeString(parts[4])
	hash, badHash := base64.RawStdEncoding.DecodeString(parts[5])
	if badSalt != nil || badHash != nil || len(hash) != hashLength || cost.encode(salt, hash) != stored {
		return storedHash{}, errNotArgon2id
	}
	return storedHash{cost, func(password []byte) bool {
		return subtle.ConstantTimeCompare(cost.derive(password, salt), hash) == 1
	}}, nil
}

func (c Cost) derive(password, salt []byte) []byte {
	return argon2.IDKey(norm.NFC.Bytes(password), salt, c.Time, c.Memory, c.Threads, hashLength)
}
