package oauth

import (
	"context"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
)

const (
	// maxGroup bounds the rows of one statement.
	maxGroup = 256
	// groupTimeout bounds a statement, for which many requests may wait.
	groupTimeout = 5 * time.Second
)

// groupCommit writes the rows of requests that run concurrently in one statement, a
// batch: a durable commit costs more than all else that such a request does. The
// first row is written at once. Those that come while a statement runs are written
// by the next one; no row waits for more than that.
type groupCommit[Row any] struct {
	// write commits rows, and returns for each its error, or nil.
	write func(context.Context, []Row) []error
	// ungrouped is for tenants in several databases: each row is written by the request that
	// adds it, so that a tenant that is being moved delays no other.
	ungrouped bool

	mu      sync.Mutex
	waiting []groupedRow[Row]
	running bool
}

type groupedRow[Row any] struct {
	row  Row
	done chan error
}

// add writes a row, and returns once it is committed or refused. An error that is
// not of the row itself leaves open whether it was committed.
func (g *groupCommit[Row]) add(ctx context.Context, row Row) error {
	if g.ungrouped {
		return g.write(ctx, []Row{row})[0]
	}
	done := make(chan error, 1)
	g.mu.Lock()
	g.waiting = append(g.waiting, groupedRow[Row]{row, done})
	if !g.running {
		g.running = true
		// The rows are those of any tenants, and wait for the connections of none.
		go g.run(caller.Into(context.WithoutCancel(ctx), caller.Caller{}))
	}
	g.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return apierr.Unavailable.Because("the request took longer than it may; repeat it later").After(time.Second)
	}
}

// run writes until no row is waiting.
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

// all returns the same error for each of n rows.
func all(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
