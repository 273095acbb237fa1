// Package caller says on whose behalf a request runs (authentication between services, tenant and
// principal of a request). The gateway authenticates the client and signs a short-lived Caller
// (HMAC). A service refuses a request without a valid Caller (pkg/rest/app.go), and sends the
// Caller with its own calls of other services (pkg/rpc/rpc.go).
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
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Header is the header with the signed Caller, between processes. The gateway drops it from the
// requests of clients.
const Header = "Doorward-Caller"

// lifetime is how long a signed Caller is accepted. The clocks of the processes of a deployment may
// differ by as much.
const lifetime = time.Minute

// Caller says on whose behalf a request runs.
type Caller struct {
	Tenant    id.ID  // the tenant that every query is restricted to
	Key       string // id of the API key that authenticated the request
	Account   id.ID  // account that owns the key
	RequestID string
	// Address is the IP address of the end user: that of the client, or the one that a client with an
	// API key has named. It is not valid where that client has named none, because all users of its
	// server would share the server's address, and for work without a client's request.
	Address netip.Addr
	// AcceptLanguage is that header of the client's request, cut to MaxAcceptLanguage: the mails that
	// the request causes are in the user's language.
	AcceptLanguage string
	// Ended has the resources of the tenant that its requests have just ended (ended.go).
	Ended IDs
}

// MaxAcceptLanguage bounds the AcceptLanguage of a Caller, in bytes. A browser sends the languages in
// their order, and less than this.
const MaxAcceptLanguage = 200

// Network returns the address by which a client is counted: the Address, or for IPv6 its network of 64
// bits, because a client can use all addresses of its network.
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
	macs []*macPool // the first signs, every one verifies
	now  func() time.Time
}

// macPool has HMACs that are initialized with their key, to save time.
type macPool struct{ sync.Pool } // of hash.Hash

// NewSigner makes a signer with the shared secret, the clock, and other secrets that are accepted too.
func NewSigner(secret secure.Secret, now func() time.Time, accepted ...secure.Secret) *Signer {
	s := &Signer{now: now}
	for _, key := range append([]secure.Secret{secret}, accepted...) {
		s.macs = append(s.macs, &macPool{sync.Pool{New: func() any { return hmac.New(sha256.New, []byte(key)) }}})
	}
	return s
}

// ErrCaller is returned for a Caller that is absent, changed, too old or from the future.
var ErrCaller = errors.New("caller: no valid caller")

// ErrClock is the ErrCaller for a Caller that is too old or from the future. Requests take less time,
// so that the clocks of the two processes differ. A process with a wrong clock must not work,
// because it would write wrong times, such as a revocation in the past.
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

// Verify verifies the value of the header and returns its Caller.
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

// append encodes the Caller to text: the tenant and the account, the length of the address and the
// address, the length of the key and the key, the request id and, each in a line of its own, the languages
// and Ended. A release that does not know the latter takes it for a part of the languages.
func (c Caller) append(text []byte) []byte {
	text = append(append(text, c.Tenant[:]...), c.Account[:]...)
	address := c.Address.AsSlice()
	text = append(append(text, byte(len(address))), address...)
	text = append(binary.AppendUvarint(text, uint64(len(c.Key))), c.Key...)
	text = append(text, c.RequestID...)
	if c.AcceptLanguage != "" || c.Ended != "" {
		text = append(append(text, '\n'), c.AcceptLanguage...)
	}
	if c.Ended != "" {
		text = append(append(text, '\n'), c.Ended...)
	}
	return text
}

// parse decodes a text of append.
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
	c.Key = string(text[:key])
	requestID, rest, hasLanguage := strings.Cut(string(text[key:]), "\n")
	language, ended, hasEnded := strings.Cut(rest, "\n")
	c.RequestID, c.AcceptLanguage, c.Ended = requestID, language, IDs(ended)
	ok = (!hasEnded || ended != "") && (!hasLanguage || language != "" || hasEnded) && len(ended)%len(id.ID{}) == 0
	return c, ok
}

// encoding is strict, so that each value has one encoding.
var encoding = base64.RawURLEncoding.Strict()

// append appends the MAC of text to out.
func (m *macPool) append(out, text []byte) []byte {
	h := m.Get().(hash.Hash)
	defer m.Put(h)
	h.Reset()
	_, _ = h.Write(text) // a hash never fails
	return h.Sum(out)
}

type contextKey struct{}

// Into returns ctx with the caller. rpc.Call signs it for the next service, and the log has its
// request id.
func Into(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// WithTenant sets the tenant of a request that came without one, such as that of a hosted page: for the
// log, the trace, and the quota of database connections.
func WithTenant(ctx context.Context, tenant id.ID) context.Context {
	c := From(ctx)
	if c.Tenant == tenant {
		return ctx
	}
	c.Tenant = tenant
	return Into(ctx, c)
}

// From returns the caller of ctx, or the zero Caller.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(contextKey{}).(Caller)
	return c
}
