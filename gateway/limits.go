package gateway

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/doorward/doorward/pkg/id"
)

// subject is what requests in flight are counted by.
type subject struct {
	kind byte
	id   [16]byte
}

const (
	aTenant   byte = iota + 1
	anAddress      // requests without a key
	aGuesser       // the address of who sends keys that are not known to be good
)

func tenantSubject(tenant id.ID) subject { return subject{aTenant, tenant} }

// addressSubject takes an IPv6 network of 64 bits for one client: whoever has
// one address there can have them all.
func addressSubject(kind byte, address netip.Addr) subject {
	if !address.IsValid() {
		return subject{kind: kind}
	}
	bits := address.As16()
	if !address.Is4() {
		clear(bits[8:])
	}
	return subject{kind, bits}
}

// Limits counts the requests in flight, exactly for this process and, through
// Share, within a moment for all gateways together.
type Limits struct {
	self      [16]byte // this gateway among the others
	mu        sync.Mutex
	here      map[subject]int
	elsewhere atomic.Pointer[map[subject]int] // replaced whole, never changed
	shared    atomic.Bool
	news      chan context.Context // the first request of a subject, to be told at once
}

// NewLimits makes limits that count this process alone.
func NewLimits() *Limits {
	l := &Limits{here: map[subject]int{}, news: make(chan context.Context, 1)}
	_, _ = rand.Read(l.self[:])
	l.elsewhere.Store(&map[subject]int{})
	return l
}

// enter counts a request in, unless most are in flight already. Each that
// enters must leave.
func (l *Limits) enter(ctx context.Context, who subject, most int) bool {
	others := (*l.elsewhere.Load())[who]
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.here[who]
	if now+others >= most {
		return false
	}
	l.here[who] = now + 1
	if now == 0 {
		select {
		case <-l.news: // this is newer
		default:
		}
		l.news <- ctx // never blocks: mu is held, and the place was made free
	}
	return true
}

func (l *Limits) leave(who subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.here[who]--; l.here[who] <= 0 {
		delete(l.here, who)
	}
}
