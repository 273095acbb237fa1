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

	"github.com/doorward/doorward/pkg/kv"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// channel is where the gateways of a deployment tell their counts.
	channel = "doorward:gateway:usage"
	// tellEvery is how often. Several gateways together may let in more than
	// the limit for so long.
	publishInterval = 100 * time.Millisecond
	// believeFor is how long what another gateway told is added.
	peerTTL = time.Second
)

// Share tells the other gateways what is in flight here and adds what they
// tell, until ctx ends. Without Redis each gateway holds its limits alone: one
// line of the log says when that begins, one when it ends, and
// doorward_gateway_limits_shared is 0 meanwhile. No request waits for Redis.
func (l *Limits) Share(ctx context.Context, redis kv.Client) error {
	if err := l.gauge(); err != nil {
		return err
	}
	var failure atomic.Pointer[error]
	var telling sync.WaitGroup
	telling.Go(func() { l.publish(ctx, redis, &failure) })
	defer telling.Wait()

	subscription := redis.Subscribe(ctx, channel)
	defer func() { _ = subscription.Close() }()
	messages := subscription.Channel()
	others := map[[16]byte]report{}
	heard := time.Now() // of this gateway itself, through Redis
	lost := false
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
				continue
			case from == l.self:
				heard = time.Now()
			default:
				others[from] = report{time.Now(), counts}
				l.receive(counts)
			}
			continue
		case <-tick.C:
		}
		l.remote.Store(sum(others))
		reached := time.Since(heard) < peerTTL
		if !reached && !lost {
			slog.Warn("Redis does not carry the limits: each gateway holds its own until it does", "error", reason(&failure))
		}
		if reached && lost {
			slog.Info("Redis carries the limits again: they hold for all gateways together")
		}
		lost = !reached
		l.shared.Store(reached)
	}
}

// tell publishes the counts of this gateway every tellEvery, and once in
// between when a subject gets its first request, in the trace of that request.
// It publishes none too: hearing itself is how a gateway knows that it is heard.
func (l *Limits) publish(ctx context.Context, redis kv.Client, failure *atomic.Pointer[error]) {
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	quiet, news := telemetry.Quiet(ctx), l.news
	for {
		cause := quiet
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			news = l.news
		case request := <-news:
			cause = trace.ContextWithSpan(ctx, trace.SpanFromContext(request))
			news = nil // until the next tick
		}
		if err := redis.Publish(cause, channel, l.report()).Err(); err != nil {
			failure.Store(&err)
		}
	}
}

func reason(failure *atomic.Pointer[error]) string {
	if err := failure.Load(); err != nil {
		return (*err).Error()
	}
	return "nothing is heard"
}

// count is what another gateway tells of a subject: how many requests are in
// flight there, and how many came since it told before.
type count struct{ inFlight, came int }

// report is what another gateway told, and when.
type report struct {
	at     time.Time
	counts map[subject]count
}

// sum adds what is recently in flight and drops the rest.
func sum(others map[[16]byte]report) *map[subject]int {
	total := map[subject]int{}
	for from, r := range others {
		if time.Since(r.at) >= peerTTL {
			delete(others, from)
			continue
		}
		for who, n := range r.counts {
			total[who] += n.inFlight
		}
	}
	return &total
}

// hear takes the requests that came elsewhere out of the rates. What is a
// second too much is not held against anybody for longer.
func (l *Limits) receive(counts map[subject]count) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for who, n := range counts {
		if n.came == 0 || who.kind >= kinds || l.budgets[who.kind].PerSecond == 0 {
			continue
		}
		u := l.here[who]
		if u == nil {
			u = &usage{}
			l.here[who] = u
		}
		if u.take(n.came, l.budgets[who.kind].PerSecond, now, 2*time.Second) > 0 {
			u.paid = now.Add(2 * time.Second)
		}
	}
}

// report writes the counts: the gateway's own id, then for each subject its
// kind, its id, and the two numbers. What has been told and is over is
// forgotten.
func (l *Limits) report() []byte {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append(make([]byte, 0, 16+20*len(l.here)), l.self[:]...)
	for who, u := range l.here {
		if u.inFlight > 0 || u.unreported > 0 {
			out = append(append(out, who.kind), who.id[:]...)
			out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(u.inFlight)), uint64(u.unreported))
			u.unreported = 0
		}
		if u.idle(now) {
			delete(l.here, who)
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
		who := subject{kind: text[0]}
		text = text[1+copy(who.id[:], text[1:]):]
		var numbers [2]int
		for i := range numbers {
			n, size := binary.Uvarint(text)
			if size <= 0 || n > 1<<20 {
				return from, nil, false
			}
			numbers[i], text = int(n), text[size:]
		}
		counts[who] = count{numbers[0], numbers[1]}
	}
	return from, counts, true
}

func (l *Limits) gauge() error {
	_, err := otel.Meter("gateway").Int64ObservableGauge("doorward_gateway_limits_shared",
		metric.WithDescription("1 while the limits hold for all gateways together, 0 while each holds its own"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			value := int64(0)
			if l.shared.Load() {
				value = 1
			}
			o.Observe(value)
			return nil
		}))
	return err
}
