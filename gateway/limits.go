package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// subject is whom requests are counted for.
type subject struct {
	kind byte
	id   [16]byte
}

const (
	tenantLimit     byte = iota + 1 // requests with its keys
	userLimit                       // of a tenant: requests with its keys that let them in
	clientAPILimit                  // the Client API of an application
	addressLimit                    // requests without a key
	wrongKeyLimit                   // the address of who sends keys that are not known to be good
	signerLimit                     // the address of who signs with keys that have not signed well there
	signedBodyLimit                 // a key, by whose name large bodies are read before a signature can be checked
	kinds
)

func tenantSubject(kind byte, tenant id.ID) subject { return subject{kind, tenant} }

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

func textSubject(kind byte, text []byte) subject {
	sum := sha256.Sum256(text)
	return subject{kind, [16]byte(sum[:])}
}

// Budget is what one subject may take.
type Budget struct {
	InFlight  int // requests at a time
	PerSecond int // requests in a second, which may come at once; 0: any number
}

// maxBorrowed bounds the large bodies of one key that are read before their
// signature can be checked.
const maxSignedBodies = 8

// budgets are the budgets of all kinds of subject.
func (c Config) budgets() (all [kinds]Budget) {
	all[tenantLimit], all[userLimit], all[clientAPILimit], all[addressLimit] = c.Tenant, c.Users, c.Users, c.Address
	all[wrongKeyLimit] = Budget{InFlight: c.Address.InFlight}
	all[signerLimit] = Budget{InFlight: c.Tenant.InFlight}
	all[signedBodyLimit] = Budget{InFlight: maxSignedBodies}
	return all
}

// names of the budgets in metrics and headers.
var names = [kinds]string{
	tenantLimit: "tenant", userLimit: "users", clientAPILimit: "site", addressLimit: "address",
	wrongKeyLimit: "authentication", signerLimit: "authentication", signedBodyLimit: "authentication",
}

// limited is the refusal of a request that a budget has no room for.
type limited struct {
	cause         *apierr.Error
	reason        string // as it is counted
	policy, state string // the headers RateLimit-Policy and RateLimit
}

func (l *limited) Error() string { return l.cause.Error() }

func (l *limited) Unwrap() error { return l.cause }

// tooMany refuses a request while others of its kind are in flight.
func tooMany(kind byte, most Budget) *limited {
	reason := names[kind] + "_limit"
	return &limited{
		cause:  apierr.TooMany.Because("too many requests are in flight; repeat the request when others have ended").After(time.Second),
		reason: reason,
		policy: fmt.Sprintf(`"%s";q=%d;qu="concurrent-requests"`, reason, most.InFlight),
		state:  fmt.Sprintf(`"%s";r=0;t=1`, reason),
	}
}

// tooFast refuses a request that came too soon after others of its kind.
func tooFast(kind byte, most Budget, wait time.Duration) *limited {
	reason := names[kind] + "_rate"
	seconds := int((wait + time.Second - 1) / time.Second)
	return &limited{
		cause:  apierr.TooMany.Because("%d requests in a second are too many; repeat the request later", most.PerSecond).After(time.Duration(seconds) * time.Second),
		reason: reason,
		policy: fmt.Sprintf(`"%s";q=%d;w=1`, reason, most.PerSecond),
		state:  fmt.Sprintf(`"%s";r=0;t=%d`, reason, seconds),
	}
}

// Limits counts what subjects take, exactly for this process and, through
// Share, within a moment for all gateways together.
type Limits struct {
	self    [16]byte // this gateway among the others
	now     func() time.Time
	budgets [kinds]Budget
	mu      sync.Mutex
	here    map[subject]*usage
	remote  atomic.Pointer[map[subject]int] // in flight; replaced whole, never changed
	shared  atomic.Bool
	news    chan context.Context // the first request of a subject, to be told at once
}

// usage is what a subject takes here.
type usage struct {
	inFlight   int
	unreported int       // requests that the other gateways have not been told of
	paid       time.Time // until when the requests of all gateways have used up the rate
}

// newLimits makes limits that count this process alone.
func newLimits(cfg Config) *Limits {
	l := &Limits{now: cfg.Common.Now, budgets: cfg.budgets(), here: map[subject]*usage{}, news: make(chan context.Context, 1)}
	_, _ = rand.Read(l.self[:])
	l.remote.Store(&map[subject]int{})
	return l
}

// enter counts a request in, or refuses it. Each that enters must leave.
func (l *Limits) enter(ctx context.Context, who subject) *limited {
	most := l.budgets[who.kind]
	others := (*l.remote.Load())[who]
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.here[who]
	if u == nil {
		u = &usage{}
	}
	if u.inFlight+others >= most.InFlight {
		return tooMany(who.kind, most)
	}
	if most.PerSecond > 0 {
		now := l.now()
		if wait := u.take(1, most.PerSecond, now, time.Second); wait > 0 {
			return tooFast(who.kind, most, wait)
		}
		u.unreported++
	}
	u.inFlight++
	l.here[who] = u
	if u.inFlight == 1 {
		select {
		case <-l.news: // this is newer
		default:
		}
		l.news <- ctx // never blocks: mu is held, and the place was made free
	}
	return nil
}

// pay takes n requests out of a rate, unless they reach further ahead than the
// burst: then it takes none and gives the time to wait.
func (u *usage) take(n, perSecond int, now time.Time, burst time.Duration) (wait time.Duration) {
	from := u.paid
	if from.Before(now) {
		from = now
	}
	from = from.Add(time.Duration(n) * time.Second / time.Duration(perSecond))
	if wait = from.Sub(now) - burst; wait > 0 {
		return wait
	}
	u.paid = from
	return 0
}

func (l *Limits) leave(who subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.here[who]
	u.inFlight--
	if u.idle(l.now()) {
		delete(l.here, who)
	}
}

// idle reports whether nothing has to be remembered.
func (u *usage) idle(now time.Time) bool {
	return u.inFlight == 0 && u.unreported == 0 && !u.paid.After(now)
}
