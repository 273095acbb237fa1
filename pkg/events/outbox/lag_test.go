package outbox_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry/metrictest"
	"github.com/doorward/doorward/pkg/worktest"
)

// lagOf returns the sum of doorward_events_lag of a group, or -1 where it is not reported.
func lagOf(ctx context.Context, group string) int64 {
	found, _ := metrictest.Find(ctx, "doorward_events_lag") // databases of other tests have been closed
	sum := int64(-1)
	for _, m := range found {
		for _, point := range m.Data.(metricdata.Gauge[int64]).DataPoints {
			if of, _ := point.Attributes.Value("group"); of.AsString() == group {
				sum = max(0, sum) + point.Value
			}
		}
	}
	return sum
}

func TestTheLagGrowsWhileAHandlerIsBlocked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.relayed(5)
	group := outbox.New(b.db, "blocked", time.Now)
	group.SetTimes(time.Minute, 50*time.Millisecond)
	release := make(chan struct{})
	stop := worktest.Start(b, group.Consume(b.cfg, []string{"sender"}, events.On(
		func(ctx context.Context, _ events.Envelope, _ events.AccountDeleted) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})))
	lag := func(want int64) {
		t.Helper()
		last := int64(0)
		defer func() { t.Logf("the lag is %d", last) }()
		b.eventually("the lag", func() bool {
			last = lagOf(t.Context(), "doorward.blocked")
			return last == want
		})
	}
	lag(5)
	b.relayed(40)
	lag(45)
	close(release)
	lag(0)
	stop()
	b.relayed(3)
	if n := lagOf(t.Context(), "doorward.blocked"); n != 0 {
		t.Errorf("a process that reads no partition reports a lag of %d", n)
	}
}

func TestABlockedHandlerFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	t.Run("one that waits for a lock is retried until it gets it", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		accounts := b.relayed(1)
		var tries atomic.Int32
		group := reader(b.db)
		group.SetTimes(100*time.Millisecond, time.Minute)
		err := b.db.InTx(t.Context(), func(tx *pg.Tx) error {
			if _, err := pg.Exec(t.Context(), tx, `LOCK TABLE effects IN ACCESS EXCLUSIVE MODE`); err != nil {
				return err
			}
			worktest.Start(b, group.Consume(b.cfg, []string{"sender"}, events.On(
				func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
					tries.Add(1)
					return b.outbox.InTx(ctx, func(tx *outbox.Tx) error { return effect(ctx, tx, e, event) })
				})))
			b.eventually("more tries than make a dead letter", func() bool { return tries.Load() > 8 })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b.want(accounts)
	})
	t.Run("one that hangs makes its event a dead letter", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.relayed(1)
		group := reader(b.db)
		group.SetTimes(50*time.Millisecond, time.Minute)
		worktest.Start(b, group.Consume(b.cfg, []string{"sender"}, events.On(
			func(ctx context.Context, _ events.Envelope, _ events.AccountDeleted) error {
				<-ctx.Done()
				return ctx.Err()
			})))
		inspector, err := outbox.NewInspector(b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer inspector.Close()
		b.eventually("the dead letter", func() bool {
			letters, err := inspector.DeadLetters(t.Context())
			return err == nil && len(letters) == 1 && strings.HasPrefix(letters[0].Error, "not done within 50ms: ")
		})
	})
}
