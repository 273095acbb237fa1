package secure

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/fairqueue"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// MaxPassword is how many bytes a password can have. No account has a longer
// one: 255 characters of four bytes, taken apart into base letters and marks,
// stay below.
const MaxPassword = 4096

// Passwords hashes and verifies passwords in a worker pool with a bounded queue, in
// which the tenants take turns. What does not fit is refused at once with 503 and
// Retry-After, so that a flood of logins does not queue without end.
type Passwords struct {
	cost        pwhash.Cost
	workers     int
	queue       *fairqueue.Queue
	workerShare float64 // of the time that a worker may compute
	dummyHash   string

	waitTime, hashTime metric.Float64Histogram
}

// NewPasswords makes a pool. workers is how many hashes are computed at once: 0
// stands for one per processor, and a CPU quota lowers it to its whole number.
// queue is how many may wait.
func NewPasswords(cost pwhash.Cost, workers, queue int) *Passwords {
	workers, share := poolSize(workers, runtime.NumCPU(), cpuQuota(os.DirFS("/")))
	p := &Passwords{cost: cost, workers: workers, queue: fairqueue.New(workers, workers, queue), workerShare: share, dummyHash: cost.Dummy()}
	p.registerMetrics()
	return p
}

// quotaShare is the part of a CPU quota that hashes may use. A process that uses
// its quota up is stopped for the rest of each 100 ms, requests and all.
const quotaShare = 0.8

// size returns the number of workers, and the share of the time that each may
// compute.
func poolSize(configured, processors int, quota float64) (workers int, share float64) {
	workers = configured
	if workers == 0 {
		workers = processors
	}
	workers = max(1, int(min(float64(workers), quota)))
	return workers, min(1, quotaShare*quota/float64(workers))
}

var prepareOnce sync.Once

// hashesPerGC is how many hashes a worker computes between two garbage collections, which
// free their memory.
const hashesPerGC = 6

// PrepareProcess makes the pool cheap beside other work. It adds to the runtime of this
// process as many processors as the pool has workers, so that the kernel shares out the
// time between hashes and requests, and no request waits until a hash releases its
// processor: with two processors and two busy workers, the p99 of 500 requests a second
// fell from 2.4 s to 18 ms. And it has huge pages back the memory of hashes. It has an
// effect once per process.
func (p *Passwords) PrepareProcess() {
	prepareOnce.Do(func() {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + p.workers)
		adviseHugePages(hashesPerGC * p.workers * int(p.cost.Memory) << 10)
	})
}

// Close waits for the hashes that are being computed. A closed pool accepts no
// more: a later call waits until its context ends.
func (p *Passwords) Close(ctx context.Context) error { return p.queue.Close(ctx) }

// Hash makes the stored form of a password of a tenant, in the PHC string format.
func (p *Passwords) Hash(ctx context.Context, tenant id.ID, password Secret) (stored string, err error) {
	err = p.runInPool(ctx, tenant, func() error {
		stored = pwhash.Hash(p.cost, []byte(password))
		return nil
	})
	return stored, err
}

// Verify compares a password with its stored form, one of our own or one that
// pwhash.ParseImported returned. An empty stored form, and a password that no
// account can have, cost the work of a hash of our own and never match, so that
// the time does not show whether an account exists. stale asks the caller to
// hash the password again, because its form was imported or the cost has changed.
func (p *Passwords) Verify(ctx context.Context, tenant id.ID, stored string, password Secret) (match, stale bool, err error) {
	never := stored == "" || len(password) > MaxPassword || strings.ContainsRune(password.Reveal(), 0)
	if never {
		stored, password = p.dummyHash, ""
	}
	var cost pwhash.Cost
	err = p.runInPool(ctx, tenant, func() (err error) {
		match, cost, err = pwhash.Compare(stored, []byte(password))
		return err
	})
	if err != nil || never {
		return false, false, err
	}
	return match, match && cost != p.cost, nil
}

// MatchesAny reports whether the password is behind one of the stored forms. One
// worker compares all of them, and stops when the context ends.
func (p *Passwords) MatchesAny(ctx context.Context, tenant id.ID, stored []string, password Secret) (match bool, err error) {
	if len(stored) == 0 {
		return false, nil
	}
	err = p.runInPool(ctx, tenant, func() (err error) {
		for i := 0; i < len(stored) && !match && err == nil; i++ {
			if ctx.Err() != nil {
				return errRequestEnded()
			}
			match, _, err = pwhash.Compare(stored[i], []byte(password))
		}
		return err
	})
	return match, err
}

// work computes hashes in a worker of the pool.
func (p *Passwords) runInPool(ctx context.Context, tenant id.ID, compute func() error) error {
	asked := time.Now()
	if err := p.acquireWorker(ctx, tenant); err != nil {
		return err
	}
	started := time.Now()
	p.waitTime.Record(ctx, started.Sub(asked).Seconds())
	defer func() {
		elapsed := time.Since(started)
		p.hashTime.Record(ctx, elapsed.Seconds())
		p.releaseWorker(tenant, elapsed)
	}()
	return compute()
}

// acquire waits for a worker; apierr.Unavailable without one.
func (p *Passwords) acquireWorker(ctx context.Context, tenant id.ID) error {
	switch err := p.queue.Acquire(ctx, tenant); {
	case errors.Is(err, fairqueue.ErrFull):
		return apierr.Unavailable.Because("too many passwords are being checked at this moment; repeat the request later").After(time.Second)
	case err != nil:
		return errRequestEnded()
	}
	return nil
}

// release returns a worker to the pool, under a CPU quota after a pause that keeps it to
// its share of the time.
func (p *Passwords) releaseWorker(tenant id.ID, elapsed time.Duration) {
	pause := time.Duration(math.Round(float64(elapsed) * (1/p.workerShare - 1)))
	if pause <= 0 {
		p.queue.Release(tenant)
		return
	}
	time.AfterFunc(pause, func() { p.queue.Release(tenant) })
}

func errRequestEnded() error {
	return apierr.Unavailable.Because("the request ended before its password could be checked").After(time.Second)
}
