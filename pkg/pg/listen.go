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
	// A connection that has been silent for listenSilence is pinged, and has listenTimeout to
	// answer. Together they bound how long a cache serves what was changed elsewhere when the
	// connection that should report it hangs. Otherwise it learns so within milliseconds.
	listenSilence = time.Second
	listenTimeout = time.Second
	listenRetry   = time.Second

	// While a cache with Bounds.MaxStaleness is in use, the connection is pinged every
	// pingEvery; a cache counts as in use for inUseFor after a read.
	pingEvery = 20 * time.Millisecond
	inUseFor  = time.Second
)

// reports are what is known of the changes that PostgreSQL reports.
type notificationState struct {
	currentAt atomic.Int64                       // time since started at which no notification was pending; 0: none
	lastUsed    atomic.Int64                       // time since started at which a cache was last read; 0: never
	wake        atomic.Pointer[context.CancelFunc] // ends the wait for a notification
}

var started = time.Now()

// isCurrent reports whether all changes that are older than within have been reported.
func (r *notificationState) isCurrent(within time.Duration) bool {
	now := time.Since(started)
	if quiet := now - time.Duration(r.lastUsed.Swap(int64(now))); quiet > inUseFor {
		r.interrupt()
	}
	age, known := r.age()
	return known && age <= within
}

// interrupt ends the wait for a notification.
func (r *notificationState) interrupt() {
	if wake := r.wake.Load(); wake != nil {
		(*wake)()
	}
}

// age is the time since no notification was pending; it is not known while nothing listens.
func (r *notificationState) age() (age time.Duration, known bool) {
	confirmed := r.currentAt.Load()
	return time.Since(started) - time.Duration(confirmed), confirmed > 0
}

// interval is how long after an answer the connection is pinged again.
func (r *notificationState) interval() time.Duration {
	if used := r.lastUsed.Load(); used > 0 && time.Since(started)-time.Duration(used) < inUseFor {
		return pingEvery
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
func (c *channel) setListening(on bool) {
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
		c.shards = len(db.allShards())
	}
	for _, shard := range db.allShards() {
		defer shard.listener.addChannels(channels)()
	}
	<-ctx.Done()
	return nil
}

// listener is the connection of the process to a database that reports changes, to all
// services that the process runs there.
type listener struct {
	notificationState

	config *pgx.ConnConfig
	users   int // databases that have it; guarded by listenersMu

	mu         sync.Mutex
	channels   []*channel
	subscribed map[*channel]bool // those whose notifications arrive
	stop       func()            // ends the connection; nil while there is none to be
}

var (
	listenersMu sync.Mutex
	listeners   = map[string]*listener{} // by connection string
)

// listenerAt returns the listener of a database. It is released when nothing uses it.
func listenerAt(at connectionConfig) *listener {
	listenersMu.Lock()
	defer listenersMu.Unlock()
	key := at.direct.ConnString()
	l := listeners[key]
	if l == nil {
		l = newListener(at.direct.ConnConfig)
		listeners[key] = l
	}
	l.users++
	return l
}

func newListener(config *pgx.ConnConfig) *listener {
	config = config.Copy()
	maps.Copy(config.RuntimeParams, keepalives)
	config.RuntimeParams["application_name"] = "doorward-listen"
	return &listener{config: config, subscribed: map[*channel]bool{}}
}

func (l *listener) release() {
	listenersMu.Lock()
	defer listenersMu.Unlock()
	if l.users--; l.users == 0 {
		maps.DeleteFunc(listeners, func(_ string, other *listener) bool { return other == l })
	}
}

// add listens to channels, until remove.
func (l *listener) addChannels(channels []*channel) (remove func()) {
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
	return func() { l.removeChannels(channels) }
}

func (l *listener) removeChannels(channels []*channel) {
	l.mu.Lock()
	var stop func()
	l.channels = slices.DeleteFunc(l.channels, func(c *channel) bool { return slices.Contains(channels, c) })
	for _, c := range channels {
		l.unsubscribe(c)
	}
	if len(l.channels) == 0 {
		stop, l.stop = l.stop, nil
	}
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// unsubscribe records that the notifications of a channel no longer arrive.
func (l *listener) unsubscribe(c *channel) {
	if l.subscribed[c] {
		delete(l.subscribed, c)
		c.setListening(false)
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
	defer l.unsubscribeAll()
	for {
		err := l.subscribe(ctx, conn)
		if err == nil {
			err = l.confirm(ctx, conn)
		}
		if err == nil {
			err = l.wait(ctx, conn)
		}
		if err != nil {
			return Error(err)
		}
	}
}

func (l *listener) unsubscribeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.currentAt.Store(0)
	for c := range l.subscribed {
		l.unsubscribe(c)
	}
}

// pending returns the channels that are not subscribed yet.
func (l *listener) pending() []*channel {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.channels), func(c *channel) bool { return l.subscribed[c] })
}

// subscribe listens to the channels that were added.
func (l *listener) subscribe(ctx context.Context, conn *pgx.Conn) error {
	added := l.pending()
	for _, c := range added {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{c.name}.Sanitize()); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range added {
		if slices.Contains(l.channels, c) {
			l.subscribed[c] = true
			c.setListening(true)
		}
	}
	return nil
}

// wait handles the notifications that arrive until the connection is to be pinged again, or
// channels are added.
func (l *listener) wait(ctx context.Context, conn *pgx.Conn) error {
	silence, cancel := context.WithTimeout(ctx, l.interval())
	defer cancel()
	l.wake.Store(&cancel)
	if len(l.pending()) > 0 {
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

// confirm pings the connection, and handles the notifications that arrive with the answer:
// PostgreSQL reports all changes that were committed before.
func (l *listener) confirm(ctx context.Context, conn *pgx.Conn) error {
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
	l.currentAt.Store(int64(asked))
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
