package pg

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// A connection that has been silent for listenSilence is asked whether it is
	// there, and has listenTimeout to answer. Together they bound how long a cache
	// serves what was changed elsewhere when the connection that should report it
	// hangs. Otherwise it learns so within milliseconds.
	listenSilence = time.Second
	listenTimeout = time.Second
	listenRetry   = time.Second

	// While a cache is in use that has to notice changes within Bounds.Proven, the
	// connection is asked after proveEvery already; in use is one that was read within
	// proveFor.
	proveEvery = 20 * time.Millisecond
	proveFor   = time.Second
)

// reports are what is known of the changes that PostgreSQL reports.
type reports struct {
	proven atomic.Int64                       // time since started at which nothing was left to report; 0: none
	wanted atomic.Int64                       // time since started at which that was last asked for; 0: never
	wake   atomic.Pointer[context.CancelFunc] // ends the wait for a notification
}

var started = time.Now()

// isProven reports whether all changes of longer ago than that have been reported.
func (r *reports) isProven(within time.Duration) bool {
	now := time.Since(started)
	if quiet := now - time.Duration(r.wanted.Swap(int64(now))); quiet > proveFor {
		if wake := r.wake.Load(); wake != nil {
			(*wake)()
		}
	}
	age, known := r.age()
	return known && age <= within
}

// age is the time since nothing was left to report; it is not known while nothing
// listens.
func (r *reports) age() (age time.Duration, known bool) {
	proven := r.proven.Load()
	return time.Since(started) - time.Duration(proven), proven > 0
}

// interval is how long after an answer the connection is asked again.
func (r *reports) interval() time.Duration {
	if wanted := r.wanted.Load(); wanted > 0 && time.Since(started)-time.Duration(wanted) < proveFor {
		return proveEvery
	}
	return listenSilence
}

// channel is a channel of notifications, and what is done with them.
type channel struct {
	name   string
	enable func(bool) // whether notifications arrive, of all shards
	notify func(payload string)

	mu        sync.Mutex
	listening int // shards whose notifications arrive
}

// listens notes that the notifications of one of so many shards arrive, or do not.
func (c *channel) listens(on bool, shards int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		c.listening++
	} else {
		c.listening--
	}
	if !on || c.listening == shards {
		c.enable(on)
	}
}

// OnNotify calls notify with the payload of each notification on a channel, while
// Listen runs. It is to be called before Listen, and notify must not wait.
func (db *DB) OnNotify(name string, notify func(payload string)) {
	db.register(&channel{name: name, enable: func(bool) {}, notify: notify})
}

func (db *DB) register(c *channel) {
	db.channelsMu.Lock()
	defer db.channelsMu.Unlock()
	db.channels = append(db.channels, c)
}

func (db *DB) registered() []*channel {
	db.channelsMu.Lock()
	defer db.channelsMu.Unlock()
	return slices.Clone(db.channels)
}

// Listen enables the caches of the database and invalidates what PostgreSQL reports
// of (LISTEN and NOTIFY), until ctx ends. Without a connection they are disabled;
// it is made again.
func (db *DB) Listen(ctx context.Context) error {
	var shards sync.WaitGroup
	for _, shard := range db.all() {
		shards.Go(func() { shard.listenFor(ctx, db) })
	}
	shards.Wait()
	return nil
}

// listenFor listens to one shard, for the caches of the main one.
func (db *DB) listenFor(ctx context.Context, main *DB) {
	for len(main.registered()) > 0 {
		err := db.listen(ctx, main)
		if ctx.Err() != nil {
			return
		}
		slog.WarnContext(ctx, "cache disabled: LISTEN failed", "error", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenRetry):
		}
	}
	<-ctx.Done()
}

// listen returns when the connection fails, which belongs to no pool meanwhile.
func (db *DB) listen(ctx context.Context, main *DB) error {
	pooled, err := db.acquireSession(ctx)
	if err != nil {
		return Error(err)
	}
	conn := pooled.Hijack()
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	channels := main.registered()
	for _, c := range channels {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{c.name}.Sanitize()); err != nil {
			return Error(err)
		}
	}
	for _, c := range channels {
		c.listens(true, len(main.all()))
		defer c.listens(false, len(main.all()))
	}
	defer db.reports.proven.Store(0)
	for {
		if err := db.prove(ctx, conn, channels); err != nil {
			return Error(err)
		}
		if err := db.receive(ctx, conn, time.Now().Add(db.reports.interval()), channels); err != nil {
			return Error(err)
		}
	}
}

// receive handles the notifications that arrive until then.
func (db *DB) receive(ctx context.Context, conn *pgx.Conn, until time.Time, channels []*channel) error {
	silence, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	db.reports.wake.Store(&cancel)
	for {
		received, err := conn.WaitForNotification(silence)
		switch {
		case err == nil:
			notify(channels, received)
		case ctx.Err() == nil && silence.Err() != nil:
			return nil
		default:
			return err
		}
	}
}

// prove asks whether the connection is there, and handles what arrives with the answer:
// PostgreSQL reports all changes that were committed before.
func (db *DB) prove(ctx context.Context, conn *pgx.Conn, channels []*channel) error {
	asked := time.Since(started)
	answer, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	if err := conn.Ping(answer); err != nil {
		return err
	}
	if err := db.receive(ctx, conn, time.Now(), channels); err != nil {
		return err
	}
	db.reports.proven.Store(int64(asked))
	return nil
}

func notify(channels []*channel, received *pgconn.Notification) {
	for _, c := range channels {
		if c.name == received.Channel {
			c.notify(received.Payload)
		}
	}
}
