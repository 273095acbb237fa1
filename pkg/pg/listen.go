package pg

import (
	"context"
	"log/slog"
	"slices"
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
)

// channel is a channel of notifications, and what is done with them.
type channel struct {
	name   string
	enable func(bool) // whether notifications arrive
	notify func(payload string)
}

// OnNotify calls notify with the payload of each notification on a channel, while
// Listen runs. It is to be called before Listen, and notify must not wait.
func (db *DB) OnNotify(name string, notify func(payload string)) {
	db.register(channel{name, func(bool) {}, notify})
}

func (db *DB) register(c channel) {
	db.channelsMu.Lock()
	defer db.channelsMu.Unlock()
	db.channels = append(db.channels, c)
}

func (db *DB) registered() []channel {
	db.channelsMu.Lock()
	defer db.channelsMu.Unlock()
	return slices.Clone(db.channels)
}

// Listen enables the caches of the database and invalidates what PostgreSQL reports
// of (LISTEN and NOTIFY), until ctx ends. Without a connection they are disabled;
// it is made again.
func (db *DB) Listen(ctx context.Context) error {
	for len(db.registered()) > 0 {
		err := db.listen(ctx)
		if ctx.Err() != nil {
			return nil
		}
		slog.WarnContext(ctx, "cache disabled: LISTEN failed", "error", err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(listenRetry):
		}
	}
	<-ctx.Done()
	return nil
}

// listen returns when the connection fails, which belongs to no pool meanwhile.
func (db *DB) listen(ctx context.Context) error {
	pooled, err := db.AcquireSession(ctx)
	if err != nil {
		return Error(err)
	}
	conn := pooled.Hijack()
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	channels := db.registered()
	for _, c := range channels {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{c.name}.Sanitize()); err != nil {
			return Error(err)
		}
	}
	for _, c := range channels {
		c.enable(true)
		defer c.enable(false)
	}
	for {
		silence, cancel := context.WithTimeout(ctx, listenSilence)
		received, err := conn.WaitForNotification(silence)
		cancel()
		switch {
		case err == nil:
			db.notify(received)
		case ctx.Err() != nil || silence.Err() == nil:
			return Error(err)
		default:
			answer, cancel := context.WithTimeout(ctx, listenTimeout)
			err := conn.Ping(answer)
			cancel()
			if err != nil {
				return Error(err)
			}
		}
	}
}

func (db *DB) notify(received *pgconn.Notification) {
	for _, c := range db.registered() {
		if c.name == received.Channel {
			c.notify(received.Payload)
		}
	}
}
