package oauth

import (
	"context"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
)

const (
	// maxGroup limits the rows of one statement.
	maxGroup = 256
	// groupTimeout limits the time of a statement, for which many requests may wait.
	groupTimeout = 5 * time.Second
)

// groupCommit writes the rows of concurrent requests in one statement (group commit, batch
// insert), because a durable commit costs more than the rest of such a request. The first
// row is written at once. Rows that are added while a statement runs are written by the
// next statement, so that no row waits longer than for the statement that runs.
type groupCommit[Row any] struct {
	// write commits rows, and returns the error, or nil, of each row.
	write func(context.Context, []Row) []error

	mu      sync.Mutex
	waiting []groupedRow[Row]
	running bool
}

type groupedRow[Row any] struct {
	row  Row
	done chan error
}

// add writes a row, and returns when the row is committed or refused. After a timeout, or
// an error of the statement, it is unknown whether the row was committed.
func (g *groupCommit[Row]) add(ctx context.Context, row Row) error {
	done := make(chan error, 1)
	g.mu.Lock()
	g.waiting = append(g.waiting, groupedRow[Row]{row, done})
	if !g.running {
		g.running = true
		// The rows belong to several tenants, so that the statement has no tenant, and does not
		// count in the share of connections of any tenant.
		go g.run(caller.Into(context.WithoutCancel(ctx), caller.Caller{}))
	}
	g.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return apierr.Unavailable.Because("the request took longer than it may; repeat it later").WithRetryAfter(time.Second)
	}
}

// run writes batches until no row is waiting.
func (g *groupCommit[Row]) run(ctx context.Context) {
	for batch := g.next(); len(batch) > 0; batch = g.next() {
		rows := make([]Row, len(batch))
		for i, waiter := range batch {
			rows[i] = waiter.row
		}
		bounded, cancel := context.WithTimeout(ctx, groupTimeout)
		errs := g.write(bounded, rows)
		cancel()
		for i, waiter := range batch {
			waiter.done <- errs[i]
		}
	}
}

// next removes the next batch from the queue. With an empty batch the run ends.
func (g *groupCommit[Row]) next() (batch []groupedRow[Row]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), maxGroup)
	batch, g.waiting = g.waiting[:n:n], g.waiting[n:]
	if n == 0 {
		g.waiting, g.running = nil, false
	}
	return batch
}

// repeatError returns the same error for each of n rows.
func repeatError(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
