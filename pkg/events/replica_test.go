package events_test

import (
	"bufio"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/worktest"
)

// parts gives the number of partitions that each replica holds, in ascending
// order.
func (b *bench) parts() []int {
	parts, err := pg.Values[int](context.Background(), b.db, `SELECT count(*) FILTER (WHERE mode = 'ExclusiveLock') AS part FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		GROUP BY pid HAVING bool_or(mode = 'ShareLock') ORDER BY part`)
	if err != nil {
		return []int{-1} // the database is away
	}
	return parts
}

func (b *bench) wantParts(want ...int) {
	b.Helper()
	var got []int
	defer func() {
		if b.Failed() {
			b.Logf("the replicas have %v partitions, want %v", got, want)
		}
	}()
	b.eventually("a fair share", func() bool {
		got = b.parts()
		return slices.Equal(got, want)
	})
}

func TestReplicasShareThePartitions(t *testing.T) {
	b := newBench(t)
	b.cfg.Partitions = 7
	worktest.Start(b, b.outbox.Relay(b.cfg))
	var acted [3]atomic.Int32
	var stops [3]func()
	for i := range acted {
		stops[i] = worktest.Start(b, b.consume(events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
			acted[i].Add(1)
			return b.outbox.InTx(ctx, func(tx *events.Tx) error { return effect(ctx, tx, e, event) })
		})))
		b.wantParts([][]int{{7}, {3, 4}, {2, 2, 3}}[i]...)
	}
	accounts := b.emit(100)
	b.want(accounts)
	for i := range acted {
		if acted[i].Load() == 0 {
			t.Errorf("the replica %d acted on none of %d events", i, len(accounts))
		}
	}
	stops[1]()
	b.wantParts(3, 4)
	stops[0]()
	b.wantParts(7)
	b.want(append(accounts, b.emit(20)...))
	if n := len(b.effects()); n != 120 {
		t.Errorf("%d effects of 120 events", n)
	}
}

func TestEachReplicaReadsOfEveryTopic(t *testing.T) {
	b := newBench(t)
	b.cfg.Partitions = 4
	for range 2 {
		worktest.Start(b, reader(b.db).Consume(b.cfg, []string{"sender", "other"}, count(b.outbox)))
	}
	b.wantParts(4, 4)
	pairs, err := pg.Value[int](t.Context(), b.db, `SELECT count(DISTINCT (pid, topic)) FROM pg_locks, unnest($1::text[]) AS topic, generate_series(0, 3) AS n
		WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (classid::bigint << 32) | objid::bigint = hashtextextended('doorward/consumer/' || current_schema() || '/' || topic || '/' || n, 0)`,
		[]string{events.Topic("sender"), events.Topic("other")})
	if err != nil || pairs != 4 {
		t.Errorf("two replicas read two topics in %d pairs, %v", pairs, err)
	}
}

func TestMoreReplicasThanPartitions(t *testing.T) {
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	for range 5 {
		worktest.Start(b, b.consumer())
	}
	b.wantParts(0, 0, 1, 1, 1)
	b.want(b.emit(20))
}

func TestReplicasComeAndGoWhileEventsCome(t *testing.T) {
	b := newBench(t)
	b.cfg.Partitions = 6
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	accounts := b.emit(20)
	for range 5 {
		stop := worktest.Start(b, b.consumer())
		accounts = append(accounts, b.emit(40)...)
		stop()
		accounts = append(accounts, b.emit(40)...)
	}
	b.want(accounts)
	if n := len(b.effects()); n != len(accounts) {
		t.Errorf("%d effects of %d events", n, len(accounts))
	}
}

func TestAnotherReplicaTakesOverWhenOneIsKilled(t *testing.T) {
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	killed := b.child("consume")
	first := b.emit(20)
	b.want(first)
	worktest.Start(b, b.consumer())
	b.wantParts(1, 2)
	died := time.Now()
	_ = killed.Process.Kill()
	_ = killed.Wait()
	b.wantParts(3)
	b.want(append(first, b.emit(20)...))
	took := time.Since(died)
	t.Logf("the partitions of a killed replica were read again after %s", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAConsumerIsKilledBetweenItsEffectAndTheCommit(t *testing.T) {
	b := newBench(t)
	accounts := b.relayed(20)
	for range 3 {
		consumer := b.prepare("stall")
		out, err := consumer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := consumer.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "an effect\n" {
			t.Fatalf("the consumer says %q, %v", line, err)
		}
		_ = consumer.Process.Kill()
		_ = consumer.Wait()
	}
	if n := len(b.effects()); n != 0 {
		t.Fatalf("%d effects were committed", n)
	}
	worktest.Start(b, b.consumer())
	b.want(accounts)
}

func TestAConsumerIsKilledAgainAndAgain(t *testing.T) {
	b := newBench(t)
	accounts := b.relayed(600)
	kills := 0
	for done := 0; done < len(accounts); kills++ {
		consumer := b.child("consume")
		b.eventually("more effects", func() bool { return len(b.effects()) > min(done+20, len(accounts)-1) })
		_ = consumer.Process.Kill()
		_ = consumer.Wait()
		done = len(b.effects())
	}
	t.Logf("%d kills", kills)
	b.want(accounts)
	if n := len(b.effects()); n != len(accounts) {
		t.Errorf("%d effects of %d events", n, len(accounts))
	}
}

// A process that was held up while another took its partition commits nothing,
// not even what the other has not come to.
func TestAStaleHolderCannotCommit(t *testing.T) {
	b := newBench(t)
	accounts := b.relayed(1)
	act := func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
		return b.outbox.InTx(ctx, func(tx *events.Tx) error { return effect(ctx, tx, e, event) })
	}
	// held makes a handler whose first call waits for a turn that the test gives,
	// whatever its context says.
	held := func() (handler events.Handler, came chan bool, turn chan bool, ended chan error) {
		came, turn, ended = make(chan bool, 1), make(chan bool), make(chan error, 1)
		var calls atomic.Int32
		return events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
			if calls.Add(1) > 1 {
				return act(ctx, e, event)
			}
			came <- true
			select {
			case <-turn:
			case <-t.Context().Done():
				return t.Context().Err()
			}
			err := act(context.WithoutCancel(ctx), e, event)
			ended <- err
			return err
		}), came, turn, ended
	}
	stale, came, turn, ended := held()
	worktest.Start(b, b.consume(stale))
	<-came
	pgtest.CutConnections(t, b.url)
	next, nextCame, nextTurn, nextEnded := held()
	worktest.Start(b, b.consume(next))
	<-nextCame
	turn <- true
	if err := <-ended; !errors.Is(err, events.ErrTaken) {
		t.Errorf("the stale holder's transaction ends with %v", err)
	}
	if n := len(b.effects()); n != 0 {
		t.Errorf("the stale holder had %d effects", n)
	}
	nextTurn <- true
	if err := <-nextEnded; err != nil {
		t.Errorf("the next holder's transaction ends with %v", err)
	}
	b.want(accounts)
}

func TestTheHolderNoticesThatItsSessionIsGone(t *testing.T) {
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	first := b.emit(20)
	b.want(first)
	owners := b.rows("owner")
	pgtest.CutConnections(t, b.url)
	b.eventually("new owners", func() bool {
		now, err := pg.Value[int](context.Background(), b.db, `SELECT sum(owner) FROM read_partitions`)
		return err == nil && now >= owners+3
	})
	b.want(append(first, b.emit(20)...))
}

func TestAStopReleasesThePartitionsAtOnce(t *testing.T) {
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	stop := worktest.Start(b, b.consumer())
	b.want(b.emit(20))
	stop()
	stopped := time.Now()
	b.wantParts()
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("after its stop the replica held its partitions for %s", took)
	}
}
