// Package id has the identifier of every resource: a UUID of version 7 (UUIDv7, RFC 9562) in the
// database, 22 characters of base62 in a URL.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math/bits"
	"time"
)

// ID is the id of a resource. The zero value is no id: it is NULL in the
// database (pg.RegisterID) and the empty string in text.
type ID [16]byte

const (
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	length   = 22 // ceil(128 / log2(62))
)

// ErrMalformed is returned for text that is not an ID.
var ErrMalformed = errors.New("id: not 22 characters of base62")

var digits = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xff
	}
	for i := range len(alphabet) {
		table[alphabet[i]] = byte(i)
	}
	return table
}()

// New returns an ID that sorts after every ID of an earlier millisecond. The 74 bits that are not time
// are random, so that an ID cannot be guessed from others.
func New(now time.Time) ID {
	var v ID
	_, _ = rand.Read(v[6:]) // crypto/rand.Read never fails: it ends the process instead
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint32(v[:4], uint32(ms>>16))
	binary.BigEndian.PutUint16(v[4:6], uint16(ms))
	v[6] = v[6]&0x0f | 0x70
	v[8] = v[8]&0x3f | 0x80
	return v
}

// Time returns the time of New, in milliseconds.
func (v ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint32(v[:4]))<<16 | int64(binary.BigEndian.Uint16(v[4:6])))
}

// Parse parses a text of String.
func Parse(s string) (ID, error) {
	if len(s) != length {
		return ID{}, ErrMalformed
	}
	var hi, lo uint64
	for i := range len(s) {
		d := digits[s[i]]
		if d == 0xff {
			return ID{}, ErrMalformed
		}
		carry, low := bits.Mul64(lo, 62)
		over, high := bits.Mul64(hi, 62)
		low, c := bits.Add64(low, uint64(d), 0)
		high, c = bits.Add64(high, carry, c)
		if over != 0 || c != 0 {
			return ID{}, ErrMalformed
		}
		hi, lo = high, low
	}
	var v ID
	binary.BigEndian.PutUint64(v[:8], hi)
	binary.BigEndian.PutUint64(v[8:], lo)
	return v, nil
}

// HasShape reports whether a text looks like an id: 20 to 22 digits of base62. Parse refuses some of
// these texts.
func HasShape(s string) bool {
	for i := range len(s) {
		if digits[s[i]] == 0xff {
			return false
		}
	}
	return 20 <= len(s) && len(s) <= length
}

// String returns the text of the id in a URL; "" for the zero ID.
func (v ID) String() string {
	if v.IsZero() {
		return ""
	}
	hi, lo := binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:])
	var out [length]byte
	for i := length - 1; i >= 0; i-- {
		var rest uint64
		hi, rest = hi/62, hi%62
		lo, rest = bits.Div64(rest, lo, 62)
		out[i] = alphabet[rest]
	}
	return string(out[:])
}

// IsZero reports whether v is the zero ID.
func (v ID) IsZero() bool { return v == ID{} }

// MarshalText returns the text of String.
func (v ID) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText parses a text of String; an empty text is the zero ID.
func (v *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*v = ID{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}
