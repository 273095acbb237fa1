// Package secure keeps secrets secret: a type whose values are redacted in logs (redacted.go),
// encryption of secrets at rest (encryption.go), password hashes in a bounded worker pool
// (password.go), random tokens (token.go) and JWTs with a pinned algorithm (jwt.go).
package secure

import (
	"fmt"
	"log/slog"
)

// Secret is a text that is redacted in logs: formatting and logging print "***". JSON has the
// value, because services send secrets to each other.
type Secret string

const hidden = "***"

// String returns "***".
func (s Secret) String() string { return hidden }

// GoString returns "***", for %#v.
func (s Secret) GoString() string { return hidden }

// Format prints "***" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue returns "***", for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }
