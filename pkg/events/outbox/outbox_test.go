package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
)

// The tests run a process of their own that they kill: the test binary with
// one of these in its environment.
const secret = secure.Secret("0123456789abcdef0123456789abcdef")

const roleVariable, urlVariable, brokersVariable = "EVENTS_TEST_ROLE", "EVENTS_TEST_URL", "EVENTS_TEST_BROKERS"

func TestMain(m *testing.M) {
	outbox.SetIntervals(time.Millisecond, 200*time.Millisecond)
	if role := os.Getenv(roleVariable); role != "" {
		child(role)
		return
	}
	pgtest.Main(m)
}

// child relays or consumes until it is killed, or until it stalls.
func child(role string) {
	ctx := context.Background()
	db, err := openDB(ctx, os.Getenv(urlVariable))
	if err != nil {
		panic(err)
	}
	cfg := outbox.Config{Brokers: strings.Split(os.Getenv(brokersVariable), ","), Partitions: 3, Secret: secret}
	sender := outbox.New(db, "sender", time.Now)
	work := sender.Relay(cfg)
	switch role {
	case "consume":
		work = reader(db).Consume(cfg, []string{"sender"}, count(sender))
	case "stall":
		work = reader(db).Consume(cfg, []string{"sender"}, stall(sender))
	}
	fmt.Println(work(ctx))
}

var effects = fstest.MapFS{"20260101000001_effects.sql": {Data: []byte(`-- +goose Up
CREATE TABLE effects (seq bigint GENERATED ALWAYS AS IDENTITY, account_id uuid NOT NULL);`)}}

func openDB(ctx context.Context, url string) (*pg.DB, error) {
	return pg.Open(ctx, pg.Config{URL: secure.Secret(url), Schema: "sender", Migrations: []fs.FS{outbox.Migrations(), effects}})
}

// reader is the service that consumes what the sender emits. It shares the
// sender's schema.
func reader(db *pg.DB) *outbox.Outbox { return outbox.New(db, "reader", time.Now) }

// count is a handler with one effect per event.
func count(sender *outbox.Outbox) events.Handler {
	return events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
		return sender.InTx(ctx, func(tx *outbox.Tx) error {
			return effect(ctx, tx, e, event)
		})
	})
}

func effect(ctx context.Context, tx *outbox.Tx, e events.Envelope, event events.AccountDeleted) error {
	if seen, err := tx.Seen(ctx, e); seen || err != nil {
		return err
	}
	_, err := pg.Exec(ctx, tx, `INSERT INTO effects (account_id) VALUES ($1)`, event.Account)
	return err
}

// stall is a handler that tells of its first effect before it is committed, and
// waits for the end.
func stall(sender *outbox.Outbox) events.Handler {
	return events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
		return sender.InTx(ctx, func(tx *outbox.Tx) error {
			if err := effect(ctx, tx, e, event); err != nil {
				return err
			}
			fmt.Println("an effect")
			<-ctx.Done()
			return ctx.Err()
		})
	})
}

// bench is a database, a broker and an outbox.
type bench struct {
	*testing.T
	url     string
	db      *pg.DB
	cluster *kfake.Cluster
	cfg     outbox.Config
	outbox  *outbox.Outbox
	tenant  id.ID
	kafka   *kafka.Client // of client()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	url := pgtest.New(t, nil)
	db, err := openDB(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	b := &bench{T: t, url: url, db: db, tenant: id.New(time.Now()), outbox: outbox.New(db, "sender", time.Now)}
	b.startBroker()
	return b
}

func (b *bench) startBroker(options ...kfake.Opt) {
	b.Helper()
	cluster, err := kfake.NewCluster(append(options, kfake.NumBrokers(1))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cluster.Close)
	b.cluster = cluster
	b.cfg = outbox.Config{Brokers: cluster.ListenAddrs(), Partitions: 3, Secret: secret}
}

// emit commits n events of one account and returns the accounts in order.
func (b *bench) emit(n int) []id.ID {
	b.Helper()
	accounts := make([]id.ID, n)
	for i := range accounts {
		accounts[i] = id.New(time.Now())
		err := b.outbox.InTx(b.Context(), func(tx *outbox.Tx) error {
			return tx.Emit(b.Context(), events.AccountDeleted{Tenant: b.tenant, Account: accounts[i]})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return accounts
}

// eventually waits until ok returns true.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			b.Fatalf("timeout: waited for %s", what)
		case <-tick.C:
		}
	}
}

func (b *bench) effects() []id.ID {
	rows, err := pg.All[struct{ AccountID id.ID }](context.Background(), b.db, `SELECT account_id FROM effects ORDER BY seq`)
	if err != nil {
		return nil // the database is away in some tests
	}
	list := make([]id.ID, len(rows))
	for i, row := range rows {
		list[i] = row.AccountID
	}
	return list
}

// want waits for each account's effect, and that none came twice.
func (b *bench) want(accounts []id.ID) {
	b.Helper()
	b.eventually(fmt.Sprintf("%d effects", len(accounts)), func() bool { return len(b.effects()) >= len(accounts) })
	times := map[id.ID]int{}
	for _, account := range b.effects() {
		times[account]++
	}
	for _, account := range accounts {
		if times[account] != 1 {
			b.Errorf("the event of %s had %d effects", account, times[account])
		}
	}
	b.eventually("an empty outbox", func() bool {
		n, err := pg.Value[int](context.Background(), b.db, `SELECT count(*) FROM outbox`)
		return err == nil && n == 0
	})
}

func (b *bench) consumer() func(context.Context) error {
	return b.consume(count(b.outbox))
}

// consume is a consumer with handlers of its own.
func (b *bench) consume(handlers ...events.Handler) func(context.Context) error {
	return reader(b.db).Consume(b.cfg, []string{"sender"}, handlers...)
}

// prepare makes a child process in a role, which ends with the test.
func (b *bench) prepare(role string) *exec.Cmd {
	b.Helper()
	binary, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(b.Context(), binary)
	command.Env = append(os.Environ(), roleVariable+"="+role, urlVariable+"="+b.url, brokersVariable+"="+strings.Join(b.cfg.Brokers, ","))
	command.Stderr = os.Stderr
	return command
}

// child starts a child process in a role.
func (b *bench) child(role string) *exec.Cmd {
	b.Helper()
	command := b.prepare(role)
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

func TestACommittedEventHasItsEffectAndARolledBackOneHasNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refusal := errors.New("changed my mind")
	err := b.outbox.InTx(t.Context(), func(tx *outbox.Tx) error {
		if err := tx.Emit(t.Context(), events.AccountDeleted{Tenant: b.tenant, Account: id.New(time.Now())}); err != nil {
			return err
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatal(err)
	}
	accounts := b.emit(20)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	b.want(accounts)
	if n := len(b.effects()); n != 20 {
		t.Fatalf("%d effects, want 20", n)
	}
}

func TestTheEventsOfOneSubjectKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	subject := id.New(time.Now())
	var directories []id.ID
	for range 50 {
		directory := id.New(time.Now())
		directories = append(directories, directory)
		if err := b.outbox.InTx(t.Context(), func(tx *outbox.Tx) error {
			return tx.Emit(t.Context(), events.AccountVerified{Tenant: b.tenant, Account: subject, Directory: directory})
		}); err != nil {
			t.Fatal(err)
		}
	}
	worktest.Start(b, b.outbox.Relay(b.cfg))
	var mu sync.Mutex
	var got []id.ID
	worktest.Start(b, b.consume(events.On(func(_ context.Context, _ events.Envelope, e events.AccountVerified) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, e.Directory)
		return nil
	})))
	b.eventually("50 events", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) >= 50 })
	mu.Lock()
	defer mu.Unlock()
	for i := range directories {
		if got[i] != directories[i] {
			t.Fatalf("event %d is out of order", i)
		}
	}
}

func TestEventsWaitWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cluster.Close()
	accounts := b.emit(10)
	stop := worktest.Start(b, b.outbox.Relay(b.cfg))
	b.eventually("a relay that tries in vain", func() bool {
		n, err := pg.Value[int](t.Context(), b.db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted`)
		return err == nil && n > 0
	})
	if n, oldest, err := b.outbox.Waiting(t.Context()); err != nil || n != 10 || oldest <= 0 || oldest > time.Minute {
		t.Fatalf("%d events wait, the oldest for %s, %v; want 10", n, oldest, err)
	}
	stop()
	b.startBroker()
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	b.want(accounts)
	b.eventually("an empty outbox", func() bool {
		n, oldest, err := b.outbox.Waiting(t.Context())
		return err == nil && n == 0 && oldest == 0
	})
}

func TestTheBrokerComesBackUnderTheSameRelayAndConsumer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	b.cluster.Close()
	b.startBroker(kfake.DataDir(dir))
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	first := b.emit(10)
	b.want(first)
	var port int
	if _, err := fmt.Sscanf(b.cfg.Brokers[0][strings.LastIndex(b.cfg.Brokers[0], ":"):], ":%d", &port); err != nil {
		t.Fatal(err)
	}
	b.cluster.Close()
	second := b.emit(10)
	b.startBroker(kfake.DataDir(dir), kfake.Ports(port))
	b.want(append(first, second...))
}

func TestTheRelaysConnectionBreaksAfterTheBrokerHasTheEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(10)
	var cuts atomic.Int32
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if cuts.Add(1) <= 3 {
			b.cluster.KeepControl()
			pgtest.CutConnections(t, b.url)
		}
		return nil, nil, false
	})
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	b.want(accounts)
	if cuts.Load() < 2 {
		t.Fatal("the events were sent once: the connection did not break in between")
	}
}

func TestTheRelayIsKilledAfterTheBrokerHasTheEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(10)
	killed, started := make(chan struct{}), make(chan struct{})
	var relay *exec.Cmd
	var once sync.Once
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() {
			<-started
			_ = relay.Process.Kill()
			_, _ = relay.Process.Wait()
			close(killed)
		})
		return nil, nil, false
	})
	relay = b.child("relay")
	close(started)
	<-killed
	if n, err := pg.Value[int](t.Context(), b.db, `SELECT count(*) FROM outbox`); err != nil || n != 10 {
		t.Fatalf("%d events wait after the kill, %v; want 10", n, err)
	}
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	b.want(accounts)
}

func TestTheConsumersDatabaseBreaksAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	var accounts []id.ID
	for range 5 {
		accounts = append(accounts, b.emit(10)...)
		back := pgtest.Outage(t, b.url)
		back()
	}
	b.want(accounts)
}

func TestAnotherReplicaSendsWhenOneHasEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	first := b.emit(5)
	b.want(first)
	worktest.Start(b, b.outbox.Relay(b.cfg)) // has nothing to send
	stop()
	b.want(append(first, b.emit(5)...))
}

// While a relay waits for Kafka, that of another replica sends nothing: events would
// overtake each other. Afterwards it sends what is left.
func TestOneRelaySendsAtATime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := &bench{T: t, db: b.db, tenant: b.tenant, outbox: outbox.New(b.db, "sender", time.Now)}
	var requests atomic.Int32
	hangs, goOn := make(chan struct{}), make(chan struct{})
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if requests.Add(1) == 1 {
			b.cluster.SleepControl(func() {
				close(hangs)
				<-goOn
			})
		}
		return nil, nil, false
	})
	accounts := b.emit(1)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	<-hangs
	accounts = append(accounts, other.emit(1)...)
	worktest.Start(b, other.outbox.Relay(b.cfg))
	b.eventually("tries of the other relay", func() bool {
		n, err := pg.Value[int](t.Context(), b.db, `SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()`)
		return err == nil && n >= 5
	})
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests to Kafka while the first is not answered", n)
	}
	close(goOn)
	worktest.Start(b, b.consumer())
	b.want(accounts)
}

// A process that is asked to end sends what it has emitted before it does.
func TestARelayThatEndsLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	first := b.emit(1)
	b.want(first)
	unknown := &bench{T: t, db: b.db, tenant: b.tenant, outbox: outbox.New(b.db, "sender", time.Now)} // which wakes no relay
	last := unknown.emit(3)
	stop()
	if n, _, err := b.outbox.Waiting(t.Context()); err != nil || n != 0 {
		t.Errorf("%d events wait after the end, %v", n, err)
	}
	b.want(slices.Concat(first, last))
}

// What a process that was killed has emitted goes with the next event of another one.
func TestEventsOfAKilledProcessGoWithTheNextOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	first := b.emit(1)
	b.want(first)
	killed := &bench{T: t, db: b.db, tenant: b.tenant, outbox: outbox.New(b.db, "sender", time.Now)}
	left := killed.emit(3)
	b.want(slices.Concat(first, left, b.emit(1)))
}

func TestAnEventDeliveredTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(5)
	envelopes, err := pg.All[struct{ Envelope []byte }](t.Context(), b.db, `SELECT envelope FROM outbox ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	b.want(accounts)
	writer := &kafka.Writer{Addr: kafka.TCP(b.cfg.Brokers...), Topic: outbox.Topic("sender"), BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
	defer func() { _ = writer.Close() }()
	for _, e := range envelopes {
		signature := outbox.Sign(b.cfg, outbox.Topic("sender"), e.Envelope)
		if err := writer.WriteMessages(t.Context(), kafka.Message{Value: e.Envelope, Headers: []kafka.Header{signature}}); err != nil {
			t.Fatal(err)
		}
	}
	b.want(append(accounts, b.emit(1)...))
	if n := len(b.effects()); n != 6 {
		t.Fatalf("%d effects, want 6", n)
	}
}

func TestAnEventThatKeepsFailingBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(4)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	var mu sync.Mutex
	tries := map[id.ID]int{}
	handler := events.On(func(_ context.Context, _ events.Envelope, e events.AccountDeleted) error {
		mu.Lock()
		defer mu.Unlock()
		tries[e.Account]++
		switch e.Account {
		case accounts[0]:
			return errors.New("a bug")
		case accounts[1]:
			panic("a worse bug")
		case accounts[2]: // something is away for longer than the tries of a bug last
			if tries[e.Account] < 20 {
				return fmt.Errorf("ask a peer: %w", apierr.Unavailable)
			}
		}
		return nil
	})
	worktest.Start(b, b.consume(handler))
	tried := func(account id.ID) int { mu.Lock(); defer mu.Unlock(); return tries[account] }
	b.eventually("every event tried", func() bool {
		return tried(accounts[0]) == 8 && tried(accounts[1]) == 8 && tried(accounts[2]) == 20 && tried(accounts[3]) == 1
	})
	dead := map[id.ID]bool{}
	for _, message := range b.deadLetters(2) {
		var e events.Envelope
		if err := json.Unmarshal(message.Value, &e); err != nil {
			t.Fatal(err)
		}
		dead[e.Subject] = true
		if header(message, "group") != "doorward.reader" || header(message, "error") == "" || header(message, "signature") == "" {
			t.Errorf("headers %v do not name the group, the error and the signature", message.Headers)
		}
	}
	if !dead[accounts[0]] || !dead[accounts[1]] {
		t.Errorf("the dead letters are those of %v", dead)
	}
}

// deadLetters reads so many dead letters.
func (b *bench) deadLetters(n int) (list []kafka.Message) {
	b.Helper()
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: b.cfg.Brokers, GroupID: "test", GroupTopics: []string{outbox.Topic("sender") + ".dead"}, StartOffset: kafka.FirstOffset, MaxWait: 10 * time.Millisecond,
	})
	defer func() { _ = reader.Close() }()
	for range n {
		message, err := reader.ReadMessage(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, message)
	}
	return list
}

func header(message kafka.Message, key string) string {
	for _, h := range message.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func TestWhatWasSeenLongAgoIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	_, err := pg.Exec(ctx, b.db, `INSERT INTO seen_events (tenant_id, event_id, seen_at)
		SELECT gen_random_uuid(), gen_random_uuid(), now() - interval '31 days' FROM generate_series(1, 12000)`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(ctx, b.db, `INSERT INTO seen_events (tenant_id, event_id, seen_at) VALUES (gen_random_uuid(), gen_random_uuid(), now() - interval '29 days')`); err != nil {
		t.Fatal(err)
	}
	if err := b.outbox.PurgeOnce(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := pg.Value[int](ctx, b.db, `SELECT count(*) FROM seen_events`); err != nil || n != 1 {
		t.Fatalf("%d events are remembered, %v; want the young one", n, err)
	}
}
