package gateway

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// usageChannel is the Redis channel where the gateways of a deployment publish their counters.
	usageChannel = "doorward:gateway:usage"
	// publishInterval is how often a gateway publishes its counters while there are requests. All
	// gateways together may exceed a limit for so long.
	publishInterval = 100 * time.Millisecond
	// peerTTL is how long the last counters of another gateway are added.
	peerTTL = time.Second
	// lostAfter is how long a gateway may not receive its own counters from Redis until it takes
	// Redis for unavailable.
	lostAfter = 2 * time.Second
	// warnInterval is how often the log says that Redis is unavailable.
	warnInterval = time.Minute
)

// idleInterval is how often a gateway publishes while it has no requests.
func (l *Limiter) idleInterval() time.Duration { return l.lostAfter / 2 }

// Sync synchronises the counters of the limits with those of the other gateways through Redis until ctx
// ends: it publishes the local counters and adds those of the others. No request waits for Redis, and
// nothing is stored there. While Redis is unavailable, the limits do not fail open: each gateway applies
// them alone. Then the metric doorward_gateway_limits_shared is 0, and the log has a warning at once and
// each warnInterval.
func (l *Limiter) Sync(ctx context.Context, redis redisclient.Client) error {
	gauge, err := l.registerGauge()
	if err != nil {
		return err
	}
	defer func() { _ = gauge.Unregister() }()
	var failure atomic.Pointer[error]
	var publishing sync.WaitGroup
	publishing.Go(func() { l.publish(ctx, redis, &failure) })
	defer publishing.Wait()
	defer l.synced.Store(false)

	subscription := redis.Subscribe(ctx, usageChannel)
	defer func() { _ = subscription.Close() }()
	messages := subscription.Channel()
	peers := map[[16]byte]peerUsage{} // by instanceID
	ownReceived := time.Now()         // when this gateway last received its own counters
	var warned time.Time              // when the log last said that Redis is unavailable; zero while it is available
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case message, open := <-messages:
			if !open {
				return nil
			}
			from, counts, ok := decodeUsage([]byte(message.Payload))
			switch {
			case !ok:
			case from == l.instanceID:
				ownReceived = time.Now()
			default:
				if len(peers) == 0 {
					tick.Reset(publishInterval)
				}
				peers[from] = peerUsage{time.Now(), counts}
				l.addPeerArrivals(counts)
			}
			continue
		case <-tick.C:
		}
		l.remote.Store(sumInFlight(peers))
		if len(peers) == 0 {
			tick.Reset(l.idleInterval()) // until a message of another gateway arrives
		}
		synced := time.Since(ownReceived) < l.lostAfter
		if !synced && time.Since(warned) >= l.warnInterval {
			warned = time.Now()
			slog.Warn("synchronising the rate limits through Redis failed, retrying: each gateway applies them alone",
				"error", failureReason(&failure))
		}
		if synced && !warned.IsZero() {
			warned = time.Time{}
			slog.Info("the rate limits are synchronised through Redis again")
		}
		l.synced.Store(synced)
	}
}

// publish publishes the counters of this gateway every publishInterval, and once more in between
// when a subject has its first request, in the trace of that request. Without requests it
// publishes an empty message every idleInterval: a gateway knows by its own messages that Redis is
// available.
func (l *Limiter) publish(ctx context.Context, redis redisclient.Client, failure *atomic.Pointer[error]) {
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	quiet, first := telemetry.Untraced(ctx), l.firstRequests
	for {
		traced := quiet
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			first = l.firstRequests
		case request := <-first:
			traced = trace.ContextWithSpan(ctx, trace.SpanFromContext(request))
			first = nil // no other until the next tick
		}
		text := l.encodeUsage()
		if len(text) == len(l.instanceID) {
			tick.Reset(l.idleInterval())
		} else {
			tick.Reset(publishInterval)
		}
		if err := redis.Publish(traced, usageChannel, text).Err(); err != nil {
			failure.Store(&err)
		}
	}
}

// failureReason returns why the log says that Redis is unavailable.
func failureReason(failure *atomic.Pointer[error]) string {
	if err := failure.Load(); err != nil {
		return (*err).Error()
	}
	return "no message was received"
}

// peerCount is what another gateway published about a subject: its requests in flight, and
// the requests that arrived since the last message.
type peerCount struct{ inFlight, arrived int }

// peerUsage is the last message of another gateway, and when it was received.
type peerUsage struct {
	receivedAt time.Time
	counts     map[subject]peerCount
}

// sumInFlight adds the requests in flight of the other gateways. It removes gateways whose last
// message is older than peerTTL.
func sumInFlight(peers map[[16]byte]peerUsage) *map[subject]int {
	total := map[subject]int{}
	for from, r := range peers {
		if time.Since(r.receivedAt) >= peerTTL {
			delete(peers, from)
			continue
		}
		for s, n := range r.counts {
			total[s] += n.inFlight
		}
	}
	return &total
}

// addPeerArrivals counts the requests of another gateway in the rate limits of this gateway.
// Requests that exceed a rate by a second or more count as one second.
func (l *Limiter) addPeerArrivals(counts map[subject]peerCount) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, n := range counts {
		if n.arrived == 0 || s.kind >= limitKinds || l.limits[s.kind].PerSecond == 0 {
			continue
		}
		u := l.local[s]
		if u == nil {
			u = &usage{}
			l.local[s] = u
		}
		if u.consume(n.arrived, l.limits[s.kind].PerSecond, now, maxAhead) > 0 {
			u.usedUntil = now.Add(maxAhead)
		}
	}
}

// encodeUsage returns the message for usageChannel: the instanceID of the gateway, then for each
// subject its kind, its id, and the two numbers of peerCount. It deletes idle subjects.
func (l *Limiter) encodeUsage() []byte {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append(make([]byte, 0, 16+20*len(l.local)), l.instanceID[:]...)
	for s, u := range l.local {
		if s.kind != processBodyLimit && (u.inFlight > 0 || u.unreported > 0) {
			out = append(append(out, s.kind), s.id[:]...)
			out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(u.inFlight)), uint64(u.unreported))
			u.unreported = 0
		}
		if u.idle(now) {
			delete(l.local, s)
		}
	}
	return out
}

// decodeUsage decodes a message of encodeUsage; ok is false for an invalid message.
func decodeUsage(text []byte) (from [16]byte, counts map[subject]peerCount, ok bool) {
	if len(text) < 16 {
		return from, nil, false
	}
	text = text[copy(from[:], text):]
	counts = map[subject]peerCount{}
	for len(text) > 0 {
		if len(text) < 19 {
			return from, nil, false
		}
		s := subject{kind: text[0]}
		text = text[1+copy(s.id[:], text[1:]):]
		var numbers [2]int
		for i := range numbers {
			n, size := binary.Uvarint(text)
			if size <= 0 || n > 1<<20 {
				return from, nil, false
			}
			numbers[i], text = int(n), text[size:]
		}
		counts[s] = peerCount{numbers[0], numbers[1]}
	}
	return from, counts, true
}
