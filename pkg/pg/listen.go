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
	// The connection is pinged after listenSilence without a notification, and must answer
	// within listenTimeout. Together they bound how long a cache is stale when the connection
	// hangs. Otherwise a cache is notified of a change within milliseconds.
	listenSilence = time.Second
	listenTimeout = time.Second
	listenRetry   = time.Second

	// While a cache with Bounds.MaxStaleness is in use, the connection is pinged each
	// pingEvery. A cache counts as in use for inUseFor after a read.
	pingEvery = 20 * time.Millisecond
	inUseFor  = time.Second
)

// notificationState says until when all notifications of changes have arrived.
type notificationState struct {
	currentAt atomic.Int64                       // time since started at which no notification was pending; 0: unknown
	lastUsed  atomic.Int64                       // time since started at which a cache was last read; 0: never
	wake      atomic.Pointer[context.CancelFunc] // ends the wait for a notification
}

var started = time.Now()

// isCurrent reports whether the notifications of all changes older than within have arrived.
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

// age returns the time since no notification was pending. It is unknown without a connection.
func (r *notificationState) age() (age time.Duration, known bool) {
	confirmed := r.currentAt.Load()
	return time.Since(started) - time.Duration(confirmed), confirmed > 0
}

// interval returns how long after an answer the connection is pinged again.
func (r *notificationState) interval() time.Duration {
	if used := r.lastUsed.Load(); used > 0 && time.Since(started)-time.Duration(used) < inUseFor {
		return pingEvery
	}
	return listenSilence
}

// channel is a channel of notifications with its callbacks.
type channel struct {
	name   string
	enable func(bool) // called when the notifications arrive, and when they stop
	notify func(payload string)
}

// OnNotify calls notify with the payload of each notification on a channel, while
// Listen runs. It must be called before Listen, and notify must not block.
func (db *DB) OnNotify(name string, notify func(payload string)) {
	db.register(name, func(bool) {}, notify)
}

func (db *DB) register(name string, enable func(bool), notify func(payload string)) {
	db.channelsMu.Lock()
	defer db.channelsMu.Unlock()
	db.channels = append(db.channels, &channel{name: name, enable: enable, notify: notify})
}

// Listen enables the caches of the database, and invalidates their entries when PostgreSQL notifies of
// a change (cache invalidation across replicas by LISTEN and NOTIFY), until ctx ends. While the
// connection is lost the caches are disabled; it is reconnected.
func (db *DB) Listen(ctx context.Context) error {
	db.channelsMu.Lock()
	channels := slices.Clone(db.channels)
	db.channelsMu.Unlock()
	defer db.listener.addChannels(channels)()
	<-ctx.Done()
	return nil
}

// listener is the connection of the process that receives the notifications of a database, for all
// services of the process with that database.
type listener struct {
	notificationState

	config *pgx.ConnConfig
	users  int // number of DBs that use it; guarded by listenersMu

	mu         sync.Mutex
	channels   []*channel
	subscribed map[*channel]bool // the channels whose notifications arrive
	stop       func()            // stops run; nil while it does not run
}

var (
	listenersMu sync.Mutex
	listeners   = map[string]*listener{} // by connection string
)

// listenerAt returns the listener of a database, shared by all DBs of the process.
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

// addChannels starts listening to channels, until remove is called.
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
		c.enable(false)
	}
}

// run listens, and reconnects after failures, until ctx ends.
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

// listen connects and handles notifications until the connection fails.
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

// subscribe executes LISTEN for the channels that were added.
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
			c.enable(true)
		}
	}
	return nil
}

// wait handles notifications until the connection must be pinged again, or channels are added.
func (l *listener) wait(ctx context.Context, conn *pgx.Conn) error {
	silence, cancel := context.WithTimeout(ctx, l.interval())
	defer cancel()
	l.wake.Store(&cancel)
	if len(l.pending()) > 0 {
		return nil
	}
	return l.receive(ctx, silence, conn)
}

// receive handles notifications until the context silence ends.
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
// PostgreSQL sends the notifications of all changes that were committed before.
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
