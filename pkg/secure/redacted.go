// Package secure holds what keeps secrets secret: values that cannot be
// printed (secret.go), sealing at rest (keyring.go), password hashes in a
// bounded pool (password.go), one-time tokens (token.go) and HS256 tokens with
// a pinned algorithm (jwt.go).
package secure

import (
	"fmt"
	"log/slog"
)

// Secret is text that is redacted: formatting and logging print "***".
// JSON carries the value, because secrets travel between services.
type Secret string

const hidden = "***"

// String hides the value.
func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the value from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }
