// Package caller says on whose behalf a request runs. The gateway authenticates
// the client and signs a short-lived Caller; a service refuses a request
// without one, and passes it on to the services that it asks.
package caller

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/netip"
	"slices"
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

// Caller is on whose behalf a request runs.
type Caller struct {
	Tenant    id.ID  // the tenant that every query is restricted to
	Key       string // id of the API key that authenticated the request
	Account   id.ID  // account that owns the key
	RequestID string
	// Address is where the request comes from: of the end user, where a client
	// with a key has named it, and of the client otherwise. It is not valid where
	// no client has asked.
	Address netip.Addr
}

// Network is what counts as one Address. An IPv6 network of 64 bits does, because a client
// that has one of its addresses can have them all.
func (c Caller) Network() netip.Addr {
	address := c.Address.Unmap().WithZone("")
	if address.Is6() {
		prefix, _ := address.Prefix(64) // fails for more bits than an address has
		address = prefix.Addr()
	}
	return address
}

// Signer signs and verifies callers with HMAC-SHA-256 under a secret that the
// processes of one deployment share.
type Signer struct {
	macs []*macPool // the first signs, each verifies
	now  func() time.Time
}

// macs are keyed already: every hop signs or verifies once.
type macPool struct{ sync.Pool } // of hash.Hash

// NewSigner takes the shared secret, the clock, and other secrets that are accepted.
func NewSigner(secret secure.Secret, now func() time.Time, accepted ...secure.Secret) *Signer {
	s := &Signer{now: now}
	for _, key := range append([]secure.Secret{secret}, accepted...) {
		s.macs = append(s.macs, &macPool{sync.Pool{New: func() any { return hmac.New(sha256.New, []byte(key)) }}})
	}
	return s
}

// ErrCaller is returned for a Caller that is absent, changed, too old or from the future.
var ErrCaller = errors.New("caller: no valid caller")

// ErrClock is the ErrCaller of one that is too old or from the future: requests take
// less time, so the clocks of the process that signed it and of this one differ. What
// a process with a wrong clock writes could end access at a time before it began.
var ErrClock = fmt.Errorf("%w: it is from another time", ErrCaller)

// The header's value is the base64url of when the Caller expires in Unix
// milliseconds, its members (append), and at the end the MAC of all this.
const expiresSize = 8

// Sign returns the header's value.
func (s *Signer) Sign(c Caller) string {
	text := make([]byte, 0, 256)
	text = binary.BigEndian.AppendUint64(text, uint64(s.now().Add(lifetime).UnixMilli()))
	text = c.append(text)
	return encoding.EncodeToString(s.macs[0].append(text, text))
}

// Verify reads the header's value.
func (s *Signer) Verify(value []byte) (Caller, error) {
	signed, err := encoding.AppendDecode(make([]byte, 0, 256), value)
	if err != nil || len(signed) < expiresSize+sha256.Size {
		return Caller{}, ErrCaller
	}
	text, mac := signed[:len(signed)-sha256.Size], signed[len(signed)-sha256.Size:]
	if !slices.ContainsFunc(s.macs, func(key *macPool) bool { return hmac.Equal(mac, key.append(nil, text)) }) {
		return Caller{}, ErrCaller
	}
	expires := time.UnixMilli(int64(binary.BigEndian.Uint64(text)))
	if remains := expires.Sub(s.now().Truncate(time.Millisecond)); remains < 0 || remains > 2*lifetime {
		return Caller{}, ErrClock
	}
	c, ok := parse(text[expiresSize:])
	if !ok {
		return Caller{}, ErrCaller
	}
	return c, nil
}

// append writes the members to text: the tenant and the account, the length of
// the address and the address, the length of the key and the key, and the
// request id.
func (c Caller) append(text []byte) []byte {
	text = append(append(text, c.Tenant[:]...), c.Account[:]...)
	address := c.Address.AsSlice()
	text = append(append(text, byte(len(address))), address...)
	text = append(binary.AppendUvarint(text, uint64(len(c.Key))), c.Key...)
	return append(text, c.RequestID...)
}

// parse reads what append wrote.
func parse(text []byte) (c Caller, ok bool) {
	if len(text) < len(c.Tenant)+len(c.Account)+1 {
		return Caller{}, false
	}
	text = text[copy(c.Tenant[:], text):]
	text = text[copy(c.Account[:], text):]
	length, text := int(text[0]), text[1:]
	if length > len(text) {
		return Caller{}, false
	}
	if c.Address, ok = netip.AddrFromSlice(text[:length]); !ok && length > 0 {
		return Caller{}, false
	}
	text = text[length:]
	key, size := binary.Uvarint(text)
	if text = text[max(size, 0):]; size <= 0 || key > uint64(len(text)) {
		return Caller{}, false
	}
	c.Key, c.RequestID = string(text[:key]), string(text[key:])
	return c, true
}

// encoding has one form for each value.
var encoding = base64.RawURLEncoding.Strict()

// append appends the MAC of text to out.
func (m *macPool) append(out, text []byte) []byte {
	h := m.Get().(hash.Hash)
	defer m.Put(h)
	h.Reset()
	_, _ = h.Write(text) // a hash never fails
	return h.Sum(out)
}

// ChangedHeader goes with a request whose tenant has changed something moments
// ago that may end an account's access. The gateway alone sets it.
const ChangedHeader = "Doorward-Changed"

type changedKey struct{}

// IntoChanged marks the context of a request that came with ChangedHeader.
func IntoChanged(ctx context.Context) context.Context {
	return context.WithValue(ctx, changedKey{}, true)
}

// Changed reports whether a request has to see the tenant's last changes, and is
// not answered from what was read before it.
func Changed(ctx context.Context) bool { return ctx.Value(changedKey{}) != nil }

type contextKey struct{}

// Into puts the caller into ctx, from where rpc.Call signs it for the next
// service and the log takes the request id.
func Into(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// WithTenant names the tenant of a request that came without one, such as that of a
// hosted page, once it is known: for the log, the trace, and the tenant's share of a
// database's connections.
func WithTenant(ctx context.Context, tenant id.ID) context.Context {
	c := From(ctx)
	if c.Tenant == tenant {
		return ctx
	}
	c.Tenant = tenant
	return Into(ctx, c)
}

// From returns the caller of ctx; the zero Caller where there is none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(contextKey{}).(Caller)
	return c
}
