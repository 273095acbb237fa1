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

// subject is what requests are counted by: a kind of limit, and the id of the tenant,
// address, application or API key to which it applies.
type subject struct {
	kind byte
	id   [16]byte
}

const (
	tenantLimit    byte = iota + 1 // requests with an API key of a tenant, without those of userLimit
	userLimit                      // requests with an API key of a tenant that log an end user in
	clientAPILimit                 // requests to the Client API of an application
	addressLimit                   // requests of an address without an API key
	wrongKeyLimit                  // API keys of an address that were not accepted before
	// signatures of an address by API keys without a valid signature from there before
	signerLimit
	signedBodyLimit // large bodies of an API key whose signature is not verified yet
	bodyLimit       // bodies of more than maxSmall of a tenant
	// bodies of more than maxSmall of this process; not published to the other gateways
	processBodyLimit
	queuedBodyLimit       // bodies of more than maxUnqueued, up to maxSmall, of a tenant
	clientLimit           // requests of a client of an OpenID provider
	unverifiedLimit       // credentials of such clients of an address that were not valid before
	unverifiedClientLimit // the same of an address for one client
	limitKinds
)

// tenantSubject is the subject of a limit of a tenant.
func tenantSubject(kind byte, tenant id.ID) subject { return subject{kind, tenant} }

// addressSubject is the subject of a limit of a client address. An IPv6 network of 64 bits counts
// as one address, because one client usually has the whole network.
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

// hashedSubject is the subject of a limit of an API key or an application, by its name.
func hashedSubject(kind byte, text []byte) subject {
	sum := sha256.Sum256(text)
	return subject{kind, [16]byte(sum[:])}
}

// Limit is the concurrency limit and the rate limit of one subject.
type Limit struct {
	InFlight  int // requests at a time
	PerSecond int // requests in a second, as a burst or spread out; 0: no rate limit
}

// limits are the limits by their kind.
func (c Config) limits() [limitKinds]Limit {
	unauthenticated := Limit{InFlight: c.Address.InFlight}
	return [limitKinds]Limit{
		tenantLimit: c.Tenant, userLimit: c.Users, clientAPILimit: c.Users, addressLimit: c.Address,
		wrongKeyLimit: unauthenticated, signerLimit: {InFlight: c.Tenant.InFlight},
		signedBodyLimit: {InFlight: maxSignedBodies},
		bodyLimit:       {InFlight: maxTenantLargeBodies}, queuedBodyLimit: {InFlight: maxTenantQueue},
		processBodyLimit: {InFlight: maxLargeBodies},
		clientLimit:      {InFlight: (c.Users.InFlight + 1) / 2, PerSecond: (c.Users.PerSecond + 1) / 2},
		unverifiedLimit:  {InFlight: c.Tenant.InFlight}, unverifiedClientLimit: unauthenticated,
	}
}

// limitNames are the names of the limits in metrics and in the headers RateLimit and
// RateLimit-Policy, which clients and alerts read. The Client API of one application is called
// site there.
var limitNames = [limitKinds]string{
	tenantLimit: "tenant", userLimit: "users", clientAPILimit: "site", addressLimit: "address",
	wrongKeyLimit: "authentication", signerLimit: "authentication", signedBodyLimit: "authentication",
	bodyLimit: "body", queuedBodyLimit: "body", processBodyLimit: "body",
	clientLimit: "client", unverifiedLimit: "authentication", unverifiedClientLimit: "authentication",
}

// limitError is the error for a request that exceeds a limit: 429, with Retry-After.
type limitError struct {
	cause         *apierr.Error
	reason        string // the label reason of doorward_gateway_refused_total
	policy, state string // the headers RateLimit-Policy and RateLimit
}

func (l *limitError) Error() string { return l.cause.Error() }

func (l *limitError) Unwrap() error { return l.cause }

// tooMany is the error where the concurrency limit is exceeded.
func tooMany(kind byte, limit Limit) *limitError {
	reason := limitNames[kind] + "_limit"
	return &limitError{
		cause: apierr.TooMany.Because("too many requests are in flight; repeat the request when others have ended").
			WithRetryAfter(time.Second),
		reason: reason,
		policy: fmt.Sprintf(`"%s";q=%d;qu="concurrent-requests"`, reason, limit.InFlight),
		state:  fmt.Sprintf(`"%s";r=0;t=1`, reason),
	}
}

// tooFast is the error where the rate limit is exceeded; a request after wait may succeed.
func tooFast(kind byte, limit Limit, wait time.Duration) *limitError {
	reason := limitNames[kind] + "_rate"
	seconds := int((wait + time.Second - 1) / time.Second)
	cause := apierr.TooMany.Because("%d requests in a second are too many; repeat the request later", limit.PerSecond)
	return &limitError{
		cause:  cause.WithRetryAfter(time.Duration(seconds) * time.Second),
		reason: reason,
		policy: fmt.Sprintf(`"%s";q=%d;w=1`, reason, limit.PerSecond),
		state:  fmt.Sprintf(`"%s";r=0;t=%d`, reason, seconds),
	}
}

// Limiter is the rate limiter and concurrency limiter: it refuses requests with 429 and Retry-After
// (throttling). It counts the requests of each subject in this process, exactly; Sync in
// limitsync.go shares the counters with the other gateways through Redis. Failed logins have a
// limit of their own: services/application/throttle/throttle.go.
type Limiter struct {
	instanceID [16]byte // identifies this gateway among the others; random
	now        func() time.Time
	limits     [limitKinds]Limit
	mu         sync.Mutex
	local      map[subject]*usage              // the counters of this process
	remote     atomic.Pointer[map[subject]int] // requests in flight of the other gateways; replaced as a whole
	synced     atomic.Bool                     // Redis is available
	// context of the newest request that is alone in flight of its subject; publish reads it
	firstRequests chan context.Context

	lostAfter, warnInterval time.Duration // the constants, which tests replace
}

// usage is the counters of a subject in this process.
type usage struct {
	inFlight   int
	unreported int       // requests that encodeUsage has not published yet
	usedUntil  time.Time // until when the requests of all gateways have exhausted the rate (GCRA, token bucket)
}

// newLimiter returns a limiter that counts the requests of this process only.
func newLimiter(cfg Config) *Limiter {
	l := &Limiter{
		now: cfg.Common.Now, limits: cfg.limits(), local: map[subject]*usage{},
		firstRequests: make(chan context.Context, 1),
		lostAfter:     lostAfter, warnInterval: warnInterval,
	}
	_, _ = rand.Read(l.instanceID[:])
	l.remote.Store(&map[subject]int{})
	return l
}

// acquire counts a request, or returns an error where a limit of the subject is exceeded. After
// nil the caller must call release.
func (l *Limiter) acquire(ctx context.Context, s subject) *limitError {
	limit := l.limits[s.kind]
	others := (*l.remote.Load())[s]
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.local[s]
	if u == nil {
		u = &usage{}
	}
	if u.inFlight+others >= limit.InFlight {
		return tooMany(s.kind, limit)
	}
	if limit.PerSecond > 0 {
		now := l.now()
		if wait := u.consume(1, limit.PerSecond, now, time.Second); wait > 0 {
			return tooFast(s.kind, limit, wait)
		}
		u.unreported++
	}
	u.inFlight++
	l.local[s] = u
	if u.inFlight == 1 {
		select {
		case <-l.firstRequests: // replaced by the newer request
		default:
		}
		l.firstRequests <- ctx // does not block: mu is locked, and the channel is empty
	}
	return nil
}

// acquireWithRelease is acquire with the function that releases, which may be called more than
// once.
func (l *Limiter) acquireWithRelease(ctx context.Context, s subject) (release func(), err error) {
	if limit := l.acquire(ctx, s); limit != nil {
		return func() {}, limit
	}
	return sync.OnceFunc(func() { l.release(s) }), nil
}

// maxAhead is how far usedUntil may be in the future after addPeerArrivals (limitsync.go).
const maxAhead = 2 * time.Second

// consume counts n requests in a rate of perSecond. If they exceed the burst, it counts none and
// returns the time to wait.
func (u *usage) consume(n, perSecond int, now time.Time, burst time.Duration) (wait time.Duration) {
	from := u.usedUntil
	if from.Before(now) || from.Sub(now) > maxAhead { // further in the future: the clock was set back
		from = now
	}
	from = from.Add(time.Duration(n) * time.Second / time.Duration(perSecond))
	if wait = from.Sub(now) - burst; wait > 0 {
		return wait
	}
	u.usedUntil = from
	return 0
}

// release counts a request of acquire as ended.
func (l *Limiter) release(s subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.local[s]
	u.inFlight--
	if u.idle(l.now()) {
		delete(l.local, s)
	}
}

// idle reports whether the counters are zero, so that they can be deleted.
func (u *usage) idle(now time.Time) bool {
	return u.inFlight == 0 && u.unreported == 0 && !u.usedUntil.After(now)
}

// rateLimit is the middleware that counts a request with an API key for its tenant, separately for
// requests that log an end user in. A request without an API key is counted for its client address
// and, to a Client API, for the application; one to an OpenID provider as limitClient says.
func (g *Gateway) rateLimit(rc *requestContext) error {
	switch label, isClientAPI := clientAPILabelOfPath(rc.target); {
	case rc.route != nil && rc.route.clients:
		return g.limitClient(rc)
	case rc.caller.Tenant.IsZero() && isClientAPI:
		return g.acquireLimits(rc, addressSubject(addressLimit, rc.address), hashedSubject(clientAPILimit, label))
	case rc.caller.Tenant.IsZero():
		return g.acquireLimits(rc, addressSubject(addressLimit, rc.address))
	case rc.route != nil && rc.route.endUsers:
		return g.acquireLimits(rc, tenantSubject(userLimit, rc.caller.Tenant))
	}
	return g.acquireLimits(rc, tenantSubject(tenantLimit, rc.caller.Tenant))
}

// acquireLimits acquires the limits of subjects until the end of the request.
func (g *Gateway) acquireLimits(rc *requestContext, subjects ...subject) error {
	for _, s := range subjects {
		if limit := g.Limiter.acquire(rc.UserContext(), s); limit != nil {
			return g.refusals.count(limit)
		}
		rc.acquiredLimits[rc.acquiredCount] = s
		rc.acquiredCount++
	}
	return nil
}

// clientAPILabelOfPath returns the label of the application whose Client API a path belongs to.
func clientAPILabelOfPath(path []byte) (label []byte, ok bool) {
	rest, ok := bytes.CutPrefix(path, []byte("/client/"))
	label, _, _ = bytes.Cut(rest, []byte{'/'})
	return bytes.ToLower(label), ok
}
