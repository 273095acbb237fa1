package operator

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"github.com/doorward/doorward/pkg/secure"
)

// role is what the holder of a key may do. Each may do what those before it may.
type role int

const (
	lookup role = iota // the look-up of tenants, and the record
	read               // every GET
	admin              // everything
)

var roles = map[string]role{"lookup": lookup, "read": read, "admin": admin}

// minSecret is the least number of characters of a secret.
const minSecret = 32

// Key is a key of the interface of operators.
type Key struct {
	name   string // the user name of Basic authentication, and the operator in the record
	role   role
	digest [sha256.Size]byte // SHA-256 of the secret
}

// ParseKeys reads keys of the form name:role:secret, separated by blanks. Its errors have no secret in them.
func ParseKeys(text secure.Secret) ([]Key, error) {
	var keys []Key
	names := map[string]bool{}
	for i, part := range strings.Fields(text.Reveal()) {
		fields := strings.SplitN(part, ":", 3)
		if len(fields) != 3 || fields[0] == "" {
			return nil, fmt.Errorf("the key %d does not have the form name:role:secret", i+1)
		}
		name := fields[0]
		of, ok := roles[fields[1]]
		switch {
		case !ok:
			return nil, fmt.Errorf("the role of %s is none of admin, read and lookup", name)
		case len(fields[2]) < minSecret:
			return nil, fmt.Errorf("the secret of %s has fewer than %d characters; make one with: openssl rand -hex 32", name, minSecret)
		case names[name]:
			return nil, fmt.Errorf("two keys have the name %s", name)
		}
		names[name] = true
		keys = append(keys, Key{name, of, sha256.Sum256([]byte(fields[2]))})
	}
	if len(keys) == 0 {
		return nil, errors.New("name at least one key, of the form name:role:secret")
	}
	return keys, nil
}

// find returns the key with a name and a secret. It compares with each key in constant time, so that the time tells
// neither a name nor a part of a secret.
func find(keys []Key, name, secret string) (Key, bool) {
	digest, found := sha256.Sum256([]byte(secret)), -1
	for i, k := range keys {
		same := subtle.ConstantTimeCompare(digest[:], k.digest[:]) & subtle.ConstantTimeCompare([]byte(name), []byte(k.name))
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return Key{}, false
	}
	return keys[found], true
}
