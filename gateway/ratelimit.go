package gateway

import (
	"bytes"
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

// subject is what requests are counted for: a kind of limit and whose it is.
type subject struct {
	kind byte
	id   [16]byte
}

const (
	tenantLimit        byte = iota + 1 // requests with a key of a tenant
	userLimit                          // those among them that let its end users in
	clientAPILimit                     // requests to the Client API of an application
	addressLimit                       // requests of an address without a key
	wrongKeyLimit                      // unauthenticated keys that an address sends
	signerLimit                        // keys that sign at an address and have no valid signature yet there
	signedBodyLimit                    // large bodies of a key: the signature is checked after the body
	wrongBodyKeyLimit                  // unauthenticated keys that announce a large body, of all clients
	unknownSignerLimit                 // ids that announce a large signed body, of all clients
	bodyLimit                          // bodies of more than maxSmall of a tenant
	processBodyLimit                   // the same of this process; the other gateways do not learn of it
	queuedBodyLimit                    // bodies of more than maxUnqueued, up to maxSmall, of a tenant
	limitKinds
)

func tenantSubject(kind byte, tenant id.ID) subject { return subject{kind, tenant} }

// addressSubject counts an IPv6 network of 64 bits as one client, which usually
// has all of its addresses.
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

// Budget is the concurrency and rate limit of one subject.
type Budget struct {
	InFlight  int // requests at a time
	PerSecond int // requests in a second, which may come at once; 0: any number
}

// budgets are the budgets of all kinds of limit.
func (c Config) budgets() [limitKinds]Budget {
	unauthenticated := Budget{InFlight: c.Address.InFlight}
	return [limitKinds]Budget{
		tenantLimit: c.Tenant, userLimit: c.Users, clientAPILimit: c.Users, addressLimit: c.Address,
		wrongKeyLimit: unauthenticated, signerLimit: {InFlight: c.Tenant.InFlight},
		signedBodyLimit: {InFlight: maxSignedBodies}, wrongBodyKeyLimit: unauthenticated, unknownSignerLimit: unauthenticated,
		bodyLimit: {InFlight: maxTenantLargeBodies}, queuedBodyLimit: {InFlight: maxTenantQueue},
		processBodyLimit: {InFlight: maxLargeBodies},
	}
}

// limitNames are the limits in metrics and headers.
var limitNames = [limitKinds]string{
	tenantLimit: "tenant", userLimit: "users", clientAPILimit: "site", addressLimit: "address",
	wrongKeyLimit: "authentication", signerLimit: "authentication", signedBodyLimit: "authentication",
	wrongBodyKeyLimit: "authentication", unknownSignerLimit: "authentication",
	bodyLimit: "body", queuedBodyLimit: "body", processBodyLimit: "body",
}

// limited is the refusal of a request that exceeds a limit.
type limited struct {
	cause         *apierr.Error
	reason        string // as it is counted
	policy, state string // the headers RateLimit-Policy and RateLimit
}

func (l *limited) Error() string { return l.cause.Error() }

func (l *limited) Unwrap() error { return l.cause }

// tooMany refuses a request while others of its kind are in flight.
func tooMany(kind byte, budget Budget) *limited {
	reason := limitNames[kind] + "_limit"
	return &limited{
		cause:  apierr.TooMany.Because("too many requests are in flight; repeat the request when others have ended").After(time.Second),
		reason: reason,
		policy: fmt.Sprintf(`"%s";q=%d;qu="concurrent-requests"`, reason, budget.InFlight),
		state:  fmt.Sprintf(`"%s";r=0;t=1`, reason),
	}
}

// tooFast refuses a request that came too soon after others of its kind.
func tooFast(kind byte, budget Budget, wait time.Duration) *limited {
	reason := limitNames[kind] + "_rate"
	seconds := int((wait + time.Second - 1) / time.Second)
	cause := apierr.TooMany.Because("%d requests in a second are too many; repeat the request later", budget.PerSecond)
	return &limited{
		cause:  cause.After(time.Duration(seconds) * time.Second),
		reason: reason,
		policy: fmt.Sprintf(`"%s";q=%d;w=1`, reason, budget.PerSecond),
		state:  fmt.Sprintf(`"%s";r=0;t=%d`, reason, seconds),
	}
}

// Limits is the rate limiter, which answers 429. It counts requests by subject, exactly
// within this process; Gateway.Sync shares the counts with the other gateways.
type Limits struct {
	self    [16]byte // this gateway among the others
	now     func() time.Time
	budgets [limitKinds]Budget
	mu      sync.Mutex
	local   map[subject]*usage
	remote  atomic.Pointer[map[subject]int] // in flight at the other gateways; replaced whole
	synced  atomic.Bool
	first   chan context.Context // of the newest request that is the only one of its subject, published at once

	lostAfter, warnInterval time.Duration // the constants, which tests shorten
}

// usage is what a subject uses in this process.
type usage struct {
	inFlight   int
	unreported int       // requests that were not published yet
	usedUntil  time.Time // until when the requests of all gateways have used up the rate
}

// newLimits returns limits that count this process alone.
func newLimits(cfg Config) *Limits {
	l := &Limits{
		now: cfg.Common.Now, budgets: cfg.budgets(), local: map[subject]*usage{}, first: make(chan context.Context, 1),
		lostAfter: lostAfter, warnInterval: warnInterval,
	}
	_, _ = rand.Read(l.self[:])
	l.remote.Store(&map[subject]int{})
	return l
}

// acquire counts a request in, or refuses it. Each that was counted in must be
// released.
func (l *Limits) acquire(ctx context.Context, s subject) *limited {
	budget := l.budgets[s.kind]
	others := (*l.remote.Load())[s]
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.local[s]
	if u == nil {
		u = &usage{}
	}
	if u.inFlight+others >= budget.InFlight {
		return tooMany(s.kind, budget)
	}
	if budget.PerSecond > 0 {
		now := l.now()
		if wait := u.take(1, budget.PerSecond, now, time.Second); wait > 0 {
			return tooFast(s.kind, budget, wait)
		}
		u.unreported++
	}
	u.inFlight++
	l.local[s] = u
	if u.inFlight == 1 {
		select {
		case <-l.first: // this is newer
		default:
		}
		l.first <- ctx // never blocks: mu is held, and the channel is empty
	}
	return nil
}

// hold is acquire with the function that releases, which may be called more
// than once.
func (l *Limits) hold(ctx context.Context, s subject) (release func(), err error) {
	if limit := l.acquire(ctx, s); limit != nil {
		return func() {}, limit
	}
	return sync.OnceFunc(func() { l.release(s) }), nil
}

// maxAhead is how far ahead requests may reach, by limitsync.go.
const maxAhead = 2 * time.Second

// take takes n requests out of a rate, unless they reach further ahead than the
// burst: then it takes none and returns the time to wait.
func (u *usage) take(n, perSecond int, now time.Time, burst time.Duration) (wait time.Duration) {
	from := u.usedUntil
	if from.Before(now) || from.Sub(now) > maxAhead { // further ahead: the clock was set back
		from = now
	}
	from = from.Add(time.Duration(n) * time.Second / time.Duration(perSecond))
	if wait = from.Sub(now) - burst; wait > 0 {
		return wait
	}
	u.usedUntil = from
	return 0
}

func (l *Limits) release(s subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.local[s]
	u.inFlight--
	if u.idle(l.now()) {
		delete(l.local, s)
	}
}

// idle reports whether nothing has to be remembered.
func (u *usage) idle(now time.Time) bool {
	return u.inFlight == 0 && u.unreported == 0 && !u.usedUntil.After(now)
}

// limit counts the request for its tenant, apart for what lets an end user in,
// or, where no key is needed, for its address and for the application whose
// Client API it is.
func (g *Gateway) limit(x *exchange) error {
	switch label, client := clientLabel(x.target); {
	case x.caller.Tenant.IsZero() && client:
		return g.count(x, addressSubject(addressLimit, x.address), textSubject(clientAPILimit, label))
	case x.caller.Tenant.IsZero():
		return g.count(x, addressSubject(addressLimit, x.address))
	case x.route != nil && x.route.users:
		return g.count(x, tenantSubject(userLimit, x.caller.Tenant))
	}
	return g.count(x, tenantSubject(tenantLimit, x.caller.Tenant))
}

// count counts the request in until its end.
func (g *Gateway) count(x *exchange, subjects ...subject) error {
	for _, s := range subjects {
		if limit := g.Limits.acquire(x.UserContext(), s); limit != nil {
			return g.refusals.count(limit)
		}
		x.counted[x.counts] = s
		x.counts++
	}
	return nil
}

// clientLabel returns the label of the application whose Client API a path belongs to.
func clientLabel(path []byte) (label []byte, ok bool) {
	rest, ok := bytes.CutPrefix(path, []byte("/client/"))
	label, _, _ = bytes.Cut(rest, []byte{'/'})
	return bytes.ToLower(label), ok
}
