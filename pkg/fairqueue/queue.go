// Package fairqueue shares a few workers fairly between tenants (fair queueing, round robin). The
// password hashes of package secure, the large bodies of the gateway and the queries of a tenant
// that uses its share of a connection pool (package pg) wait in such a queue.
// When the queue is full, requests are refused (load shedding, backpressure), those of the noisy
// neighbour first.
package fairqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// ErrFull is the error of a request for which the queue has no room.
var ErrFull = errors.New("the queue is full")

// activeTenantTime is how long a tenant counts as active after its last use of a worker.
const activeTenantTime = 10 * time.Second

// Queue assigns its workers to waiting requests: the tenants take turns, and the requests of one
// tenant are served in their order. A tenant with many logins delays the login of another tenant
// by one hash and not by all hashes that wait. While another tenant is active, one tenant never has
// all workers, unless there is only one worker. When the queue is full, the newest request of the
// tenant with the most waiting requests is refused.
type Queue struct {
	mu         sync.Mutex
	workers    int
	aloneLimit int // workers that a tenant may use while no other tenant is active
	free       int
	maxWaiting int // requests that may wait
	waiting    int
	closing    bool
	used       map[id.ID]int      // workers in use, by tenant
	tenants    map[id.ID][]waiter // waiting requests, by tenant; no empty lists
	turns      []id.ID            // the tenants with waiting requests; the next turn is first
	recentUses [2]workerUse       // the last use of a worker, and the last use by another tenant
}

// workerUse is the time at which a tenant received a worker.
type workerUse struct {
	tenant id.ID
	at     time.Time // with the monotonic clock
}

// waiter is a waiting request. It receives nil when it has a worker, else an error.
type waiter chan error

// New makes a queue in which up to maxWaiting requests wait. A tenant may use up to aloneLimit
// workers while no other tenant is active.
func New(workers, aloneLimit, maxWaiting int) *Queue {
	return &Queue{
		workers: workers, aloneLimit: aloneLimit, free: workers, maxWaiting: maxWaiting,
		used: map[id.ID]int{}, tenants: map[id.ID][]waiter{},
	}
}

// Acquire waits for a worker. It returns ErrFull, or the error of the context if that ends first.
// After nil the caller must call Release.
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
	w := make(waiter, 1)
	if len(q.tenants[tenant]) == 0 {
		q.turns = append(q.turns, tenant)
	}
	q.tenants[tenant] = append(q.tenants[tenant], w)
	q.waiting++
	q.mu.Unlock()
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
		q.cancelWait(tenant, w)
		return ctx.Err()
	}
}

// workerLimit returns how many workers a tenant may use now, at least one.
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

// assignWorker assigns a free worker to a tenant.
func (q *Queue) assignWorker(tenant id.ID) {
	q.free--
	q.used[tenant]++
	if q.recentUses[0].tenant != tenant {
		q.recentUses[1] = q.recentUses[0]
	}
	q.recentUses[0] = workerUse{tenant, time.Now()}
}

// refuseNewestOfLongest refuses the newest waiting request of the tenant with the most, if that
// tenant has more waiting requests than the given tenant will have.
func (q *Queue) refuseNewestOfLongest(tenant id.ID) bool {
	var longest id.ID
	for other, waiters := range q.tenants {
		if len(waiters) > len(q.tenants[longest]) {
			longest = other
		}
	}
	waiters := q.tenants[longest]
	if len(waiters) <= len(q.tenants[tenant])+1 {
		return false
	}
	newest := waiters[len(waiters)-1]
	q.remove(longest, len(waiters)-1)
	newest <- ErrFull
	return true
}

// Release releases the worker of a tenant and assigns free workers to waiting requests.
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

// cancelWait removes a waiting request, or releases the worker that it has received meanwhile.
func (q *Queue) cancelWait(tenant id.ID, w waiter) {
	q.mu.Lock()
	n := slices.Index(q.tenants[tenant], w)
	if n >= 0 {
		q.remove(tenant, n)
	}
	q.mu.Unlock()
	if n < 0 && <-w == nil {
		q.Release(tenant)
	}
}

// remove removes the n-th waiting request of a tenant.
func (q *Queue) remove(tenant id.ID, n int) {
	q.waiting--
	q.tenants[tenant] = slices.Delete(q.tenants[tenant], n, n+1)
	if len(q.tenants[tenant]) == 0 {
		delete(q.tenants, tenant)
		n := slices.Index(q.turns, tenant)
		q.turns = slices.Delete(q.turns, n, n+1)
	}
}

// Len returns the number of waiting requests.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Close waits until no worker is in use. No request receives a worker afterwards: a later call
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
