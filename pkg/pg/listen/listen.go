// Package listen receives the notifications of PostgreSQL (LISTEN and NOTIFY) for all services of a process
// with the same database, over one connection. It tells pkg/pg/cache of the changes of other processes, and
// says until when it has told of all of them. Its Listener is part of pg.DB.
//
// One connection, because a session of PostgreSQL takes 2 to 4 MiB, and each ping of a session is a
// message that PostgreSQL answers.
package listen

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

	// While somebody asks NotifiedWithin, the connection is pinged each pingEvery, and for
	// inUseFor after that.
	pingEvery = 20 * time.Millisecond
	inUseFor  = time.Second
)

// notificationState says until when all notifications of changes have arrived.
type notificationState struct {
	currentAt atomic.Int64                       // time since started at which no notification was pending; 0: unknown
	lastUsed  atomic.Int64                       // time since started at which NotifiedWithin was last called; 0: never
	wake      atomic.Pointer[context.CancelFunc] // ends the wait for a notification
}

var started = time.Now()

func (r *notificationState) notifiedWithin(limit time.Duration) bool {
	now := time.Since(started)
	if quiet := now - time.Duration(r.lastUsed.Swap(int64(now))); quiet > inUseFor {
		r.interrupt()
	}
	age, known := r.age()
	return known && age <= limit
}

// interrupt ends the wait for a notification.
func (r *notificationState) interrupt() {
	if wake := r.wake.Load(); wake != nil {
		(*wake)()
	}
}

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

// Listener receives notifications for one service.
type Listener struct {
	connection *connection

	mu       sync.Mutex
	channels []*channel
}

// New returns a listener with a connection of its own, which Listen opens: a test uses it as the listener of
// another process.
func New(config *pgx.ConnConfig) *Listener {
	return &Listener{connection: newConnection(config)}
}

// Shared returns a listener that shares its connection with those of the process that have the same
// connection string, until Close.
func Shared(config *pgx.ConnConfig) *Listener {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	c := shared[config.ConnString()]
	if c == nil {
		c = newConnection(config)
		shared[config.ConnString()] = c
	}
	c.users++
	return &Listener{connection: c}
}

// Close forgets the shared connection, if no other listener uses it.
func (l *Listener) Close() {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if l.connection.users--; l.connection.users == 0 {
		maps.DeleteFunc(shared, func(_ string, other *connection) bool { return other == l.connection })
	}
}

// OnNotify calls notify with the payload of each notification on a channel, while Listen runs. It must be
// called before Listen, and notify must not block.
func (l *Listener) OnNotify(name string, notify func(payload string)) {
	l.Subscribe(name, func(bool) {}, notify)
}

// Subscribe is OnNotify for a caller that must know whether it misses notifications: enable is called with
// true when the notifications arrive, and with false when they stop.
func (l *Listener) Subscribe(name string, enable func(bool), notify func(payload string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels = append(l.channels, &channel{name: name, enable: enable, notify: notify})
}

// Listen receives notifications until ctx ends. A connection that is lost is opened again.
func (l *Listener) Listen(ctx context.Context) error {
	l.mu.Lock()
	channels := slices.Clone(l.channels)
	l.mu.Unlock()
	defer l.connection.addChannels(channels)()
	<-ctx.Done()
	return nil
}

// NotifiedWithin reports whether the notifications of all changes that were committed longer than limit ago
// have arrived.
func (l *Listener) NotifiedWithin(limit time.Duration) bool {
	return l.connection.notifiedWithin(limit)
}

// NotificationAge returns the time since PostgreSQL last had no notification pending. It is unknown without
// a connection.
func (l *Listener) NotificationAge() (age time.Duration, known bool) { return l.connection.age() }

// connection is a connection with the channels of its listeners.
type connection struct {
	notificationState

	config *pgx.ConnConfig
	users  int // number of listeners that share it; guarded by sharedMu

	mu         sync.Mutex
	channels   []*channel
	subscribed map[*channel]bool // the channels whose notifications arrive
	stop       func()            // stops run; nil while it does not run
}

var (
	sharedMu sync.Mutex
	shared   = map[string]*connection{} // by connection string
)

func newConnection(config *pgx.ConnConfig) *connection {
	return &connection{config: config, subscribed: map[*channel]bool{}}
}

// addChannels starts listening to channels, until remove is called.
func (c *connection) addChannels(channels []*channel) (remove func()) {
	if len(channels) == 0 {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.channels = append(c.channels, channels...)
	if c.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		c.stop = func() { cancel(); <-ended }
		go func() {
			defer close(ended)
			c.run(ctx)
		}()
	}
	c.interrupt()
	return func() { c.removeChannels(channels) }
}

func (c *connection) removeChannels(channels []*channel) {
	c.mu.Lock()
	var stop func()
	c.channels = slices.DeleteFunc(c.channels, func(ch *channel) bool { return slices.Contains(channels, ch) })
	for _, ch := range channels {
		c.unsubscribe(ch)
	}
	if len(c.channels) == 0 {
		stop, c.stop = c.stop, nil
	}
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// unsubscribe records that the notifications of a channel no longer arrive.
func (c *connection) unsubscribe(ch *channel) {
	if c.subscribed[ch] {
		delete(c.subscribed, ch)
		ch.enable(false)
	}
}

// run listens, and reconnects after failures, until ctx ends.
func (c *connection) run(ctx context.Context) {
	for {
		err := c.listen(ctx)
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
func (c *connection) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	defer c.unsubscribeAll()
	for {
		if err := c.subscribe(ctx, conn); err != nil {
			return err
		}
		if err := c.confirm(ctx, conn); err != nil {
			return err
		}
		if err := c.wait(ctx, conn); err != nil {
			return err
		}
	}
}

func (c *connection) unsubscribeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentAt.Store(0)
	for ch := range c.subscribed {
		c.unsubscribe(ch)
	}
}

// pending returns the channels that are not subscribed yet.
func (c *connection) pending() []*channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.channels), func(ch *channel) bool { return c.subscribed[ch] })
}

// subscribe executes LISTEN for the channels that were added.
func (c *connection) subscribe(ctx context.Context, conn *pgx.Conn) error {
	added := c.pending()
	for _, ch := range added {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{ch.name}.Sanitize()); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range added {
		if slices.Contains(c.channels, ch) {
			c.subscribed[ch] = true
			ch.enable(true)
		}
	}
	return nil
}

// wait handles notifications until the connection must be pinged again, or channels are added.
func (c *connection) wait(ctx context.Context, conn *pgx.Conn) error {
	silence, cancel := context.WithTimeout(ctx, c.interval())
	defer cancel()
	c.wake.Store(&cancel)
	if len(c.pending()) > 0 {
		return nil
	}
	return c.receive(ctx, silence, conn)
}

// receive handles notifications until the context silence ends.
func (c *connection) receive(ctx, silence context.Context, conn *pgx.Conn) error {
	for {
		received, err := conn.WaitForNotification(silence)
		switch {
		case err == nil:
			c.notify(received)
		case ctx.Err() == nil && silence.Err() != nil:
			return nil
		default:
			return err
		}
	}
}

// confirm pings the connection, and handles the notifications that arrive with the answer:
// PostgreSQL sends the notifications of all changes that were committed before.
func (c *connection) confirm(ctx context.Context, conn *pgx.Conn) error {
	asked := time.Since(started)
	answer, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	if err := conn.Ping(answer); err != nil {
		return err
	}
	cancel()
	if err := c.receive(ctx, answer, conn); err != nil {
		return err
	}
	c.currentAt.Store(int64(asked))
	return nil
}

func (c *connection) notify(received *pgconn.Notification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.channels {
		if ch.name == received.Channel {
			ch.notify(received.Payload)
		}
	}
}
