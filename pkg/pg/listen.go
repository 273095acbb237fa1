package pg

import (
	"context"
	"log/slog"
	"maps"
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
		r.interrupt()
	}
	age, known := r.age()
	return known && age <= within
}

// interrupt ends the wait for a notification.
func (r *reports) interrupt() {
	if wake := r.wake.Load(); wake != nil {
		(*wake)()
	}
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
	shards int // of the database

	mu        sync.Mutex
	listening int // shards whose notifications arrive
}

// listens notes that the notifications of one of the shards arrive, or do not.
func (c *channel) listens(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		c.listening++
	} else {
		c.listening--
	}
	if !on || c.listening == c.shards {
		c.enable(on)
	}
}

// OnNotify calls notify with the payload of each notification on a channel, while
// Listen runs. It is to be called before Listen, and notify must not wait.
func (db *DB) OnNotify(name string, notify func(payload string)) {
	db.register(name, func(bool) {}, notify)
}

func (db *DB) register(name string, enable func(bool), notify func(payload string)) {
	db.channelsMu.Lock()
	defer db.channelsMu.Unlock()
	db.channels = append(db.channels, &channel{name: name, enable: enable, notify: notify})
}

// Listen enables the caches of the database and invalidates what PostgreSQL reports
// of (LISTEN and NOTIFY), until ctx ends. Without a connection they are disabled;
// it is made again.
func (db *DB) Listen(ctx context.Context) error {
	db.channelsMu.Lock()
	channels := slices.Clone(db.channels)
	db.channelsMu.Unlock()
	for _, c := range channels {
		c.shards = len(db.all())
	}
	for _, shard := range db.all() {
		defer shard.listener.add(channels)()
	}
	<-ctx.Done()
	return nil
}

// listener is the connection of the process to a database that reports changes, to all
// services that the process runs there.
type listener struct {
	reports

	config *pgx.ConnConfig
	uses   int // databases that have it; guarded by listenersMu

	mu       sync.Mutex
	channels []*channel
	heard    map[*channel]bool // those whose notifications arrive
	stop     func()            // ends the connection; nil while there is none to be
}

var (
	listenersMu sync.Mutex
	listeners   = map[string]*listener{} // by connection string
)

// listenerAt returns the listener of a database. It is released when nothing uses it.
func listenerAt(at address) *listener {
	listenersMu.Lock()
	defer listenersMu.Unlock()
	key := at.direct.ConnString()
	l := listeners[key]
	if l == nil {
		l = newListener(at.direct.ConnConfig)
		listeners[key] = l
	}
	l.uses++
	return l
}

func newListener(config *pgx.ConnConfig) *listener {
	config = config.Copy()
	maps.Copy(config.RuntimeParams, keepalives)
	config.RuntimeParams["application_name"] = "doorward-listen"
	return &listener{config: config, heard: map[*channel]bool{}}
}

func (l *listener) release() {
	listenersMu.Lock()
	defer listenersMu.Unlock()
	if l.uses--; l.uses == 0 {
		maps.DeleteFunc(listeners, func(_ string, other *listener) bool { return other == l })
	}
}

// add listens to channels, until remove.
func (l *listener) add(channels []*channel) (remove func()) {
	if len(channels) == 0 {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels = append(l.channels, channels...)
	if l.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		l.stop = func() { cancel(); <-ended }
		go func() {
			defer close(ended)
			l.run(ctx)
		}()
	}
	l.interrupt()
	return func() { l.remove(channels) }
}

func (l *listener) remove(channels []*channel) {
	l.mu.Lock()
	var stop func()
	l.channels = slices.DeleteFunc(l.channels, func(c *channel) bool { return slices.Contains(channels, c) })
	for _, c := range channels {
		l.lose(c)
	}
	if len(l.channels) == 0 {
		stop, l.stop = l.stop, nil
	}
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// lose notes that the notifications of a channel arrive no longer.
func (l *listener) lose(c *channel) {
	if l.heard[c] {
		delete(l.heard, c)
		c.listens(false)
	}
}

// run keeps a connection that listens, until ctx ends.
func (l *listener) run(ctx context.Context) {
	for {
		err := l.listen(ctx)
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
}

// listen returns when the connection fails.
func (l *listener) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, l.config)
	if err != nil {
		return Error(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	defer l.loseAll()
	for {
		err := l.subscribe(ctx, conn)
		if err == nil {
			err = l.prove(ctx, conn)
		}
		if err == nil {
			err = l.wait(ctx, conn)
		}
		if err != nil {
			return Error(err)
		}
	}
}

func (l *listener) loseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proven.Store(0)
	for c := range l.heard {
		l.lose(c)
	}
}

// unheard returns the channels whose notifications do not arrive yet.
func (l *listener) unheard() []*channel {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.channels), func(c *channel) bool { return l.heard[c] })
}

// subscribe listens to the channels that were added.
func (l *listener) subscribe(ctx context.Context, conn *pgx.Conn) error {
	added := l.unheard()
	for _, c := range added {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{c.name}.Sanitize()); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range added {
		if slices.Contains(l.channels, c) {
			l.heard[c] = true
			c.listens(true)
		}
	}
	return nil
}

// wait handles the notifications that arrive until the connection is to be asked again,
// or channels are added.
func (l *listener) wait(ctx context.Context, conn *pgx.Conn) error {
	silence, cancel := context.WithTimeout(ctx, l.interval())
	defer cancel()
	l.wake.Store(&cancel)
	if len(l.unheard()) > 0 {
		return nil
	}
	return l.receive(ctx, silence, conn)
}

// receive handles the notifications that arrive until silence ends.
func (l *listener) receive(ctx, silence context.Context, conn *pgx.Conn) error {
	for {
		received, err := conn.WaitForNotification(silence)
		switch {
		case err == nil:
			l.notify(received)
		case ctx.Err() == nil && silence.Err() != nil:
			return nil
		default:
			return err
		}
	}
}

// prove asks whether the connection is there, and handles what arrives with the answer:
// PostgreSQL reports all changes that were committed before.
func (l *listener) prove(ctx context.Context, conn *pgx.Conn) error {
	asked := time.Since(started)
	answer, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	if err := conn.Ping(answer); err != nil {
		return err
	}
	cancel()
	if err := l.receive(ctx, answer, conn); err != nil {
		return err
	}
	l.proven.Store(int64(asked))
	return nil
}

func (l *listener) notify(received *pgconn.Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.channels {
		if c.name == received.Channel {
			c.notify(received.Payload)
		}
	}
}
