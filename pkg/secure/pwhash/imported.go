package pwhash

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/doorward/doorward/pkg/alias"
)

// The limits of an imported hash. Each login attempt computes the hash and occupies a worker of the
// pool: at these limits it takes about a second, some 25 times a hash of DefaultCost. A bcrypt
// cost above 12 is rare.
const (
	minBcryptCost = 4
	maxBcryptCost = 14
	maxIterations = 1_000_000
	maxImported   = 512 // characters
)

const iteratedPrefix = "$service2$"

// ParseImported validates a password hash in the modular crypt format that is imported
// (docs/interface/accounts.md#password-hashes): bcrypt as $2a$, $2b$, $2x$ or $2y$, or an iterated
// hash as $service2$, where the deployment's alias may stand for the word service. It returns the
// text to store, or an error for an invalid hash or one that takes too long. Imported hashes are
// compared with the bytes of a password as they are sent, without Unicode normalisation.
func ParseImported(text string, productAlias alias.Alias) (stored string, err error) {
	text = productAlias.Neutral(text, iteratedPrefix)
	_, err = parseImported(text)
	return text, err
}

func parseImported(text string) (storedHash, error) {
	switch {
	case len(text) > maxImported:
		return storedHash{}, fmt.Errorf("it has more than %d characters", maxImported)
	case strings.HasPrefix(text, iteratedPrefix):
		return parseIterated(strings.TrimPrefix(text, iteratedPrefix))
	case len(text) > 4 && text[:2] == "$2" && strings.Contains("abxy", text[2:3]) && text[3] == '$':
		return parseBcrypt(text[4:], text[2] == 'x')
	}
	return storedHash{}, fmt.Errorf("it begins with none of $2a$, $2b$, $2x$, $2y$ and %s", iteratedPrefix)
}

// iteratedAlgorithms are the hash functions of $service2$ by their names.
var iteratedAlgorithms = map[string]func() hash.Hash{
	"MD5": md5.New, "SHA-1": sha1.New, "SHA-256": sha256.New, "SHA-384": sha512.New384, "SHA-512": sha512.New,
}

// parseIterated parses ALGORITHM$ITERATIONS$SALT$HASH. The first iteration hashes the salt and the
// password, each further one the result of the iteration before.
func parseIterated(text string) (storedHash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 4 {
		return storedHash{}, fmt.Errorf(
			"after its prefix stand an algorithm, iterations, a salt and a hash, parted by $")
	}
	digest, known := iteratedAlgorithms[parts[0]]
	if !known {
		return storedHash{}, fmt.Errorf("its algorithm is none of MD5, SHA-1, SHA-256, SHA-384 and SHA-512")
	}
	iterations, err := strconv.ParseUint(parts[1], 10, 32)
	if err != nil || iterations < 1 || iterations > maxIterations {
		return storedHash{}, fmt.Errorf("its iterations are not a number from 1 to %d", maxIterations)
	}
	salt, err := decodeStandardBase64(parts[2])
	if err != nil {
		return storedHash{}, fmt.Errorf("its salt is not Base64")
	}
	want, err := decodeStandardBase64(parts[3])
	if err != nil || len(want) != digest().Size() {
		return storedHash{}, fmt.Errorf("its hash is not the Base64 of the %d bytes of %s", digest().Size(), parts[0])
	}
	return storedHash{matches: func(password []byte) bool {
		h := digest()
		h.Write(salt)
		h.Write(password)
		sum := h.Sum(nil)
		for range iterations - 1 {
			h.Reset()
			h.Write(sum)
			sum = h.Sum(sum[:0])
		}
		return subtle.ConstantTimeCompare(sum, want) == 1
	}}, nil
}

// decodeStandardBase64 decodes padded Base64 of the standard alphabet, without line breaks.
func decodeStandardBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}

// bcrypt64 is the Base64 of bcrypt. Unused bits in the last character, which some programs do not
// clear, are ignored, as bcrypt does.
var bcrypt64 = base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").
	WithPadding(base64.NoPadding)

// parseBcrypt parses COST$ and the salt and hash, of 22 and 31 characters.
func parseBcrypt(text string, signExtended bool) (storedHash, error) {
	if len(text) != 3+22+31 || text[2] != '$' {
		return storedHash{}, fmt.Errorf("a bcrypt hash has two digits of cost, $, and 53 characters of salt and hash")
	}
	cost, err := strconv.ParseUint(text[:2], 10, 8)
	if err != nil || cost < minBcryptCost || cost > maxBcryptCost {
		return storedHash{}, fmt.Errorf("its bcrypt cost is not a number from %02d to %d", minBcryptCost, maxBcryptCost)
	}
	salt, badSalt := bcrypt64.DecodeString(text[3:25])
	hash, badHash := bcrypt64.DecodeString(text[25:])
	if badSalt != nil || badHash != nil || len(salt) != 16 || len(hash) != 23 {
		return storedHash{}, fmt.Errorf("its salt and hash are not in bcrypt's Base64")
	}
	stored := []byte("$2b$" + text[:3] + bcrypt64.EncodeToString(salt) + bcrypt64.EncodeToString(hash))
	return storedHash{matches: func(password []byte) bool {
		if signExtended {
			password = signExtendedKey(password)
		}
		return bcrypt.CompareHashAndPassword(stored, password) == nil
	}}, nil
}

// signExtendedKey returns the key of a password for $2x$, with the bug of crypt_blowfish before 1.1:
// it read bytes as signed, so that a byte of 0x80 and above sets all bits before it in its
// word. The key has all 18 words of the key schedule, so that bcrypt uses it without changes.
func signExtendedKey(password []byte) []byte {
	cycled := append(slices.Clone(password), 0)
	key := make([]byte, 0, 18*4)
	for len(key) < cap(key) {
		var word uint32
		for i := range 4 {
			word = word<<8 | uint32(int8(cycled[(len(key)+i)%len(cycled)]))
		}
		key = binary.BigEndian.AppendUint32(key, word)
	}
	return key
}
