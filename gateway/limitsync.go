package gateway

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/doorward/doorward/pkg/kv"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// usageChannel is where the gateways of a deployment publish their counters.
	usageChannel = "doorward:gateway:usage"
	// publishInterval is how often a gateway publishes them while there are requests. Several gateways
	// together may exceed a limit for so long.
	publishInterval = 100 * time.Millisecond
	// peerTTL is how long the counters of another gateway are added.
	peerTTL = time.Second
	// lostAfter is how long its own reports may be missing until a gateway takes
	// the counters for out of step.
	lostAfter = 2 * time.Second
	// warnInterval is how often the log says so while it lasts.
	warnInterval = time.Minute
)

// idleInterval is how often a gateway publishes that it counts nothing.
func (l *Limits) idleInterval() time.Duration { return l.lostAfter / 2 }

// Sync keeps this gateway in step with the others through Redis until ctx ends:
// the local counters of the limits, and what ends an API key. No request waits
// for Redis; nothing else is kept there.
func (g *Gateway) Sync(ctx context.Context, redis kv.Client) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.Limits.sync(ctx, redis) })
	group.Go(func() error { return g.keys.sync(ctx, redis) })
	return group.Wait()
}

// sync publishes the local counters and adds those of the other gateways. While
// Redis is unavailable the limits do not fail open: each gateway applies them alone. A line of
// the log says so when that begins and each minute, one when it ends, and
// doorward_gateway_limits_shared is 0.
func (l *Limits) sync(ctx context.Context, redis kv.Client) error {
	gauge, err := l.gauge()
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
	peers := map[[16]byte]report{}
	own := time.Now()    // when the last report of this gateway itself was received
	var warned time.Time // of the loss of Redis that lasts; zero for none
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
			from, counts, ok := parseReport([]byte(message.Payload))
			switch {
			case !ok:
			case from == l.self:
				own = time.Now()
			default:
				if len(peers) == 0 {
					tick.Reset(publishInterval)
				}
				peers[from] = report{time.Now(), counts}
				l.receive(counts)
			}
			continue
		case <-tick.C:
		}
		l.remote.Store(sum(peers))
		if len(peers) == 0 {
			tick.Reset(l.idleInterval()) // until there is one
		}
		synced := time.Since(own) < l.lostAfter
		if !synced && time.Since(warned) >= l.warnInterval {
			warned = time.Now()
			slog.Warn("synchronising the rate limits through Redis failed, retrying: each gateway applies them alone", "error", reason(&failure))
		}
		if synced && !warned.IsZero() {
			warned = time.Time{}
			slog.Info("the rate limits are synchronised through Redis again")
		}
		l.synced.Store(synced)
	}
}

// publish publishes the counters of this gateway every publishInterval, and once
// in between when a subject has its first request, in the trace of that request.
// It publishes none too, every idleInterval: a gateway knows by its own reports that
// Redis works.
func (l *Limits) publish(ctx context.Context, redis kv.Client, failure *atomic.Pointer[error]) {
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	quiet, first := telemetry.Quiet(ctx), l.first
	for {
		cause := quiet
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			first = l.first
		case request := <-first:
			cause = trace.ContextWithSpan(ctx, trace.SpanFromContext(request))
			first = nil // until the next tick
		}
		text := l.report()
		if len(text) == len(l.self) {
			tick.Reset(l.idleInterval())
		} else {
			tick.Reset(publishInterval)
		}
		if err := redis.Publish(cause, usageChannel, text).Err(); err != nil {
			failure.Store(&err)
		}
	}
}

func reason(failure *atomic.Pointer[error]) string {
	if err := failure.Load(); err != nil {
		return (*err).Error()
	}
	return "no message was received"
}

// count is what another gateway published of a subject: its requests in flight,
// and those that arrived since its last report.
type count struct{ inFlight, arrived int }

// report is what another gateway published, and when.
type report struct {
	at     time.Time
	counts map[subject]count
}

// sum adds what is in flight at peers and drops those that have fallen silent.
func sum(peers map[[16]byte]report) *map[subject]int {
	total := map[subject]int{}
	for from, r := range peers {
		if time.Since(r.at) >= peerTTL {
			delete(peers, from)
			continue
		}
		for s, n := range r.counts {
			total[s] += n.inFlight
		}
	}
	return &total
}

// receive takes the requests of another gateway out of the rates. Whatever
// exceeds a rate by a second or more counts as one second.
func (l *Limits) receive(counts map[subject]count) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, n := range counts {
		if n.arrived == 0 || s.kind >= limitKinds || l.budgets[s.kind].PerSecond == 0 {
			continue
		}
		u := l.local[s]
		if u == nil {
			u = &usage{}
			l.local[s] = u
		}
		if u.take(n.arrived, l.budgets[s.kind].PerSecond, now, maxAhead) > 0 {
			u.usedUntil = now.Add(maxAhead)
		}
	}
}

// report writes the counters: the gateway's own id, then for each subject its
// kind, its id, and the two numbers. What was reported and has ended is deleted.
func (l *Limits) report() []byte {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append(make([]byte, 0, 16+20*len(l.local)), l.self[:]...)
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

// parseReport reads what report wrote; it reports false for anything else.
func parseReport(text []byte) (from [16]byte, counts map[subject]count, ok bool) {
	if len(text) < 16 {
		return from, nil, false
	}
	text = text[copy(from[:], text):]
	counts = map[subject]count{}
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
		counts[s] = count{numbers[0], numbers[1]}
	}
	return from, counts, true
}

func (l *Limits) gauge() (metric.Registration, error) {
	meter := otel.Meter("gateway")
	gauge, err := meter.Int64ObservableGauge("doorward_gateway_limits_shared",
		metric.WithDescription("1 while the rate limits are synchronised between the gateways, 0 while each applies them alone"))
	if err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		value := int64(0)
		if l.synced.Load() {
			value = 1
		}
		o.ObserveInt64(gauge, value)
		return nil
	}, gauge)
}
