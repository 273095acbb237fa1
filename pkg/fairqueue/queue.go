// Package fairqueue shares a few workers fairly between tenants: the password
// hashes of package secure and the large bodies of the gateway wait in such a queue.
// What does not fit is refused (load shedding), the noisy neighbour first.
package fairqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// ErrFull refuses what does not fit into the queue.
var ErrFull = errors.New("the queue is full")

// activeFor is for how long after its last use of a worker a tenant is active.
const activeTenantTime = 10 * time.Second

// Queue hands its workers to those that wait for one: the tenants take turns, and of one
// tenant the oldest is first. A tenant with many logins delays another tenant's by one hash,
// not by all that wait. Where there is more than one worker, and another tenant is active, one
// tenant never holds all workers. When the queue is full, the newest entry of the tenant with
// the most entries is refused.
type Queue struct {
	mu      sync.Mutex
	workers int
	aloneLimit   int // how many of them a tenant uses while no other one is active
	free    int
	maxWaiting   int // how many may wait
	waiting int
	closing bool
	used    map[id.ID]int      // workers by tenant
	tenants map[id.ID][]waiter // never empty ones
	turns   []id.ID            // of tenants that wait; the next one is first
	recentUses  [2]workerUse             // the last use of a worker, and the last one of another tenant than that
}

// use is when a tenant received a worker.
type workerUse struct {
	tenant id.ID
	at     time.Time // read from the monotonic clock
}

// ticket is one that waits. It receives nil with a worker, and an error without.
type waiter chan error

// New makes a queue in which up to limit requests wait. A tenant uses up to alone
// workers while no other one is active.
func New(workers, alone, limit int) *Queue {
	return &Queue{workers: workers, aloneLimit: alone, free: workers, maxWaiting: limit, used: map[id.ID]int{}, tenants: map[id.ID][]waiter{}}
}

// Acquire waits for a worker. It returns ErrFull, or the error of a context that ends
// before. Each call without an error is followed by one of Release.
func (q *Queue) Acquire(ctx context.Context, tenant id.ID) error {
	q.mu.Lock()
	if q.free > 0 && q.used[tenant] < q.workerLimit(tenant) {
		q.assignWorker(tenant)
		q.mu.Unlock()
		return nil
	}
	if q.waiting >= q.maxWaiting && !q.refuseNewestOfLongest(tenant) {
		q.mu.Unlock()
		return ErrFull
	}
	t := make(waiter, 1)
	if len(q.tenants[tenant]) == 0 {
		q.turns = append(q.turns, tenant)
	}
	q.tenants[tenant] = append(q.tenants[tenant], t)
	q.waiting++
	q.mu.Unlock()
	select {
	case err := <-t:
		return err
	case <-ctx.Done():
		q.cancelWait(tenant, t)
		return ctx.Err()
	}
}

// most is how many workers a tenant may use now, at least one.
func (q *Queue) workerLimit(tenant id.ID) int {
	other := q.recentUses[0]
	if other.tenant == tenant {
		other = q.recentUses[1]
	}
	switch {
	case q.closing:
		return q.workers
	case other.at.IsZero() || time.Since(other.at) > activeTenantTime:
		return q.aloneLimit
	}
	return max(1, min(q.aloneLimit, q.workers-1))
}

// take gives a worker to a tenant.
func (q *Queue) assignWorker(tenant id.ID) {
	q.free--
	q.used[tenant]++
	if q.recentUses[0].tenant != tenant {
		q.recentUses[1] = q.recentUses[0]
	}
	q.recentUses[0] = workerUse{tenant, time.Now()}
}

// makeRoom refuses the newest of the tenant with the most, if that tenant has more
// than the given one will have.
func (q *Queue) refuseNewestOfLongest(tenant id.ID) bool {
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
	newest <- ErrFull
	return true
}

// Release returns the worker of a tenant and hands free ones to the next that wait.
func (q *Queue) Release(tenant id.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	if q.used[tenant]--; q.used[tenant] == 0 {
		delete(q.used, tenant)
	}
	for q.free > 0 {
		turn := slices.IndexFunc(q.turns, func(t id.ID) bool { return q.used[t] < q.workerLimit(t) })
		if turn < 0 {
			return
		}
		next := q.turns[turn]
		oldest := q.tenants[next][0]
		q.remove(next, 0)
		if len(q.tenants[next]) > 0 {
			q.turns = append(slices.Delete(q.turns, turn, turn+1), next)
		}
		q.assignWorker(next)
		oldest <- nil
	}
}

// abandon takes a ticket back, and the worker that it may have received meanwhile.
func (q *Queue) cancelWait(tenant id.ID, t waiter) {
	q.mu.Lock()
	n := slices.Index(q.tenants[tenant], t)
	if n >= 0 {
		q.remove(tenant, n)
	}
	q.mu.Unlock()
	if n < 0 && <-t == nil {
		q.Release(tenant)
	}
}

// remove takes the n-th ticket of a tenant out of the queue.
func (q *Queue) remove(tenant id.ID, n int) {
	q.waiting--
	q.tenants[tenant] = slices.Delete(q.tenants[tenant], n, n+1)
	if len(q.tenants[tenant]) == 0 {
		delete(q.tenants, tenant)
		n := slices.Index(q.turns, tenant)
		q.turns = slices.Delete(q.turns, n, n+1)
	}
}

// Len is how many wait.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Close waits until no worker is used. Nobody receives one afterwards: a later call
// of Acquire waits until its context ends.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closing = true
	q.maxWaiting += q.workers
	q.mu.Unlock()
	for range q.workers {
		if err := q.Acquire(ctx, id.ID{}); err != nil {
			return err
		}
	}
	return nil
}
