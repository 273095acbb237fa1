package pg

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/id"
)

const (
	// cacheSilence is after how long without a word the database is asked
	// whether it is still there, and cachePatience how long it may take to say
	// so. Together they bound how long a cache goes on with what was changed
	// elsewhere, when the connection that should tell it hangs. Otherwise it is
	// told within milliseconds.
	cacheSilence  = time.Second
	cachePatience = time.Second
	// cacheRows bounds the memory: resources and rows, a few hundred bytes each.
	cacheRows = 50_000
)

// Cache keeps what a loader reads until one of its tables changes. It is for rows
// that are read with every request and hardly ever change.
//
// Triggers notify the channel of every change, whoever makes it, and all replicas
// listen to it (LISTEN and NOTIFY of PostgreSQL). The process that changes
// something calls Forget, and sees its change at once. A cache that does not listen
// keeps nothing.
type Cache[Row Part] struct {
	loader  *Loader[Row]
	channel string

	mu      sync.Mutex
	listens bool
	changes uint64 // how often everything was forgotten
	rows    map[id.Ref][]Row
	size    int
}

// NewCache makes a cache, which keeps nothing until Listen runs.
func NewCache[Row Part](loader *Loader[Row], channel string) *Cache[Row] {
	return &Cache[Row]{loader: loader, channel: channel, rows: map[id.Ref][]Row{}}
}

// One gives the single row of a resource. No row is apierr.NotFound.
func (c *Cache[Row]) One(ctx context.Context, ref id.Ref) (row Row, err error) {
	return single(c.All(ctx, ref))
}

// All gives the rows of a resource, which all who asked for it share.
func (c *Cache[Row]) All(ctx context.Context, ref id.Ref) ([]Row, error) {
	rows, ok, changes := c.get(ref)
	if ok {
		return rows, nil
	}
	rows, err := c.loader.All(ctx, ref)
	if err == nil {
		c.put(ref, rows, changes)
	}
	return rows, err
}

func (c *Cache[Row]) get(ref id.Ref) (rows []Row, ok bool, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows, ok = c.rows[ref]
	return rows, ok, c.changes
}

// put keeps rows that were read after so many changes, unless there was another
// since. A full cache begins anew.
func (c *Cache[Row]) put(ref id.Ref, rows []Row, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listens || changes != c.changes {
		return
	}
	if c.size += 1 + len(rows); c.size > cacheRows {
		clear(c.rows)
		c.size = 1 + len(rows)
	}
	c.rows[ref] = rows
}

// Forget drops everything, also what is being read now.
func (c *Cache[Row]) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
}

func (c *Cache[Row]) forget() {
	clear(c.rows)
	c.size = 0
	c.changes++
}

func (c *Cache[Row]) listen(listens bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listens = listens
	c.forget()
}

// Listen lets the cache keep rows, until ctx ends. Without a connection nothing is
// kept; it is made again.
func (c *Cache[Row]) Listen(ctx context.Context) error {
	for {
		err := c.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		slog.WarnContext(ctx, "rows are read for each request until the database can tell of changes", "channel", c.channel, "error", err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// follow listens until the connection fails, which belongs to no pool meanwhile.
func (c *Cache[Row]) follow(ctx context.Context) error {
	pooled, err := c.loader.db.Acquire(ctx)
	if err != nil {
		return Error(err)
	}
	conn := pooled.Hijack()
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{c.channel}.Sanitize()); err != nil {
		return Error(err)
	}
	c.listen(true)
	defer c.listen(false)
	for {
		told, err := c.wait(ctx, conn)
		if err != nil {
			return Error(err)
		}
		if told {
			c.Forget()
		}
	}
}

// wait reports whether the database told of a change, or fails when it is gone.
func (c *Cache[Row]) wait(ctx context.Context, conn *pgx.Conn) (told bool, err error) {
	silence, cancel := context.WithTimeout(ctx, cacheSilence)
	defer cancel()
	_, err = conn.WaitForNotification(silence)
	if err == nil || ctx.Err() != nil || silence.Err() == nil {
		return err == nil, err
	}
	answer, cancel := context.WithTimeout(ctx, cachePatience)
	defer cancel()
	return false, conn.Ping(answer)
}
