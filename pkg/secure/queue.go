package secure

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// queue hands the workers of a pool to those that wait for one: the tenants take
// turns, and of one tenant the oldest is first. A tenant with many logins delays
// another tenant's by one hash, not by all that wait. Of a full queue the newest of
// the tenant with the most goes.
type queue struct {
	mu      sync.Mutex
	free    int // workers
	limit   int // how many may wait
	waiting int
	tenants map[id.ID][]ticket // never empty ones
	order   []id.ID            // of tenants; the next one is first
}

// ticket is one that waits. It receives nil with a worker, and an error without.
type ticket chan error

func newQueue(workers, limit int) *queue {
	return &queue{free: workers, limit: limit, tenants: map[id.ID][]ticket{}}
}

// acquire waits for a worker until ctx ends; apierr.Unavailable without one.
func (q *queue) acquire(ctx context.Context, tenant id.ID) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	if q.waiting >= q.limit && !q.makeRoom(tenant) {
		q.mu.Unlock()
		return errQueueFull()
	}
	t := make(ticket, 1)
	if len(q.tenants[tenant]) == 0 {
		q.order = append(q.order, tenant)
	}
	q.tenants[tenant] = append(q.tenants[tenant], t)
	q.waiting++
	q.mu.Unlock()
	select {
	case err := <-t:
		return err
	case <-ctx.Done():
		q.abandon(tenant, t)
		return errEnded()
	}
}

// makeRoom refuses the newest of the tenant with the most, if that tenant has more
// than the given one will have.
func (q *queue) makeRoom(tenant id.ID) bool {
	var longest id.ID
	for other, tickets := range q.tenants {
		if len(tickets) > len(q.tenants[longest]) {
			longest = other
		}
	}
	tickets := q.tenants[longest]
	if len(tickets) <= len(q.tenants[tenant])+1 {
		return false
	}
	newest := tickets[len(tickets)-1]
	q.remove(longest, len(tickets)-1)
	newest <- errQueueFull()
	return true
}

// release hands a worker to the next that waits.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		q.free++
		return
	}
	tenant := q.order[0]
	oldest := q.tenants[tenant][0]
	q.remove(tenant, 0)
	if len(q.tenants[tenant]) > 0 {
		q.order = append(q.order[1:], tenant)
	}
	oldest <- nil
}

// abandon takes a ticket back, and the worker that it may have received meanwhile.
func (q *queue) abandon(tenant id.ID, t ticket) {
	q.mu.Lock()
	n := slices.Index(q.tenants[tenant], t)
	if n >= 0 {
		q.remove(tenant, n)
	}
	q.mu.Unlock()
	if n < 0 && <-t == nil {
		q.release()
	}
}

// remove takes the n-th ticket of a tenant out of the queue.
func (q *queue) remove(tenant id.ID, n int) {
	q.waiting--
	q.tenants[tenant] = slices.Delete(q.tenants[tenant], n, n+1)
	if len(q.tenants[tenant]) == 0 {
		delete(q.tenants, tenant)
		n := slices.Index(q.order, tenant)
		q.order = slices.Delete(q.order, n, n+1)
	}
}

func (q *queue) length() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.waiting)
}

// close waits until no worker computes. Nobody receives one afterwards.
func (q *queue) close(ctx context.Context, workers int) error {
	q.mu.Lock()
	q.limit += workers
	q.mu.Unlock()
	for range workers {
		if err := q.acquire(ctx, id.ID{}); err != nil {
			return ctx.Err()
		}
	}
	return nil
}

func errQueueFull() error {
	return apierr.Unavailable.Because("too many passwords are being checked at this moment; repeat the request later").After(time.Second)
}

func errEnded() error {
	return apierr.Unavailable.Because("the request ended before its password could be checked").After(time.Second)
}
