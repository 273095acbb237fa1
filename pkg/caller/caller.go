// Package caller says on whose behalf a request runs. The gateway authenticates
// the client and signs a short-lived Caller; a service refuses a request
// without one, and passes it on to the services that it asks.
package caller

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Header carries the signed Caller between processes. The gateway drops it
// from what clients send.
const Header = "Doorward-Caller"

// lifetime bounds how long a signed Caller is accepted. Processes of one
// deployment may differ by so much in their clocks.
const lifetime = time.Minute

// Caller is who asks.
type Caller struct {
	Tenant    id.ID  `json:"tenant,omitzero"`  // the data space that every query stays in
	Key       string `json:"key,omitempty"`    // id of the API key that authenticated the request
	Account   id.ID  `json:"account,omitzero"` // account that owns the key
	RequestID string `json:"request,omitempty"`
}

// Signer signs and verifies callers with HMAC-SHA-256 under a secret that the
// processes of one deployment share.
type Signer struct {
	macs sync.Pool // of hash.Hash, keyed already: every hop signs or verifies once
	now  func() time.Time
}

// NewSigner takes the shared secret and the clock.
func NewSigner(secret secure.Secret, now func() time.Time) *Signer {
	return &Signer{now: now, macs: sync.Pool{New: func() any { return hmac.New(sha256.New, []byte(secret)) }}}
}

// ErrCaller is returned for a Caller that is absent, changed or too old.
var ErrCaller = errors.New("caller: no valid caller")

type signed struct {
	Caller
	Expires int64 `json:"exp"` // Unix milliseconds
}

// Sign gives the header's value.
func (s *Signer) Sign(c Caller) string {
	body, _ := json.Marshal(signed{c, s.now().Add(lifetime).UnixMilli()})
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.mac(text))
}

// Verify reads the header's value.
func (s *Signer) Verify(value string) (Caller, error) {
	text, mac, ok := strings.Cut(value, ".")
	if !ok {
		return Caller{}, ErrCaller
	}
	given, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(given, s.mac(text)) {
		return Caller{}, ErrCaller
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Caller{}, ErrCaller
	}
	var c signed
	if json.Unmarshal(body, &c) != nil || s.now().UnixMilli() > c.Expires {
		return Caller{}, ErrCaller
	}
	return c.Caller, nil
}

func (s *Signer) mac(text string) []byte {
	h := s.macs.Get().(hash.Hash)
	defer s.macs.Put(h)
	h.Reset()
	_, _ = io.WriteString(h, text) // a hash never fails
	return h.Sum(nil)
}

type contextKey struct{}

// Into puts the caller into ctx, from where rpc.Call signs it for the next
// service and the log takes the request id.
func Into(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From gives the caller of ctx; the zero Caller where there is none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(contextKey{}).(Caller)
	return c
}
