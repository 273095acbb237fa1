package secure

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/fairqueue"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// MaxPassword is the maximal length of a password in bytes. No account has a longer password: 255
// characters of four bytes, decomposed into base letters and marks, are shorter.
const MaxPassword = 4096

// Passwords hashes and verifies passwords (pkg/secure/pwhash/argon2id.go) in a worker pool with a
// bounded queue, in which the tenants take turns (pkg/fairqueue). When the queue is full, a request
// is refused at once with 503 and Retry-After (load shedding).
type Passwords struct {
	cost        pwhash.Cost
	workers     int
	queue       *fairqueue.Queue
	workerShare float64 // share of the time in which a worker may compute
	dummyHash   string

	waitTime, hashTime metric.Float64Histogram
}

// NewPasswords makes a worker pool. workers is the number of hashes that are computed at a time: 0
// stands for one per processor. A CPU quota lowers it to the whole number of the quota. queue is
// the number of requests that may wait.
func NewPasswords(cost pwhash.Cost, workers, queue int) *Passwords {
	workers, share := poolSize(workers, runtime.NumCPU(), cpuQuota(os.DirFS("/")))
	p := &Passwords{cost: cost, workers: workers, queue: fairqueue.New(workers, workers, queue), workerShare: share,
		dummyHash: cost.Dummy()}
	p.registerMetrics()
	return p
}

// quotaShare is the part of a CPU quota that hashes may use. The kernel stops a process that has
// exhausted its quota for the rest of each 100 ms (CFS throttling), with all its requests.
const quotaShare = 0.8

// poolSize returns the number of workers, and the share of the time in which each may compute.
func poolSize(configured, processors int, quota float64) (workers int, share float64) {
	workers = configured
	if workers == 0 {
		workers = processors
	}
	workers = max(1, int(min(float64(workers), quota)))
	return workers, min(1, quotaShare*quota/float64(workers))
}

var prepareOnce sync.Once

// hashesPerGC is the number of hashes that a worker computes between two garbage collections, which
// free their memory.
const hashesPerGC = 6

// memoryBesideHashes is what the process needs without the hashes that it is computing, in bytes, with
// room for the garbage of some ten finished ones. With 72 MiB the garbage collector ran after every
// third login, which cost a third of a hash (docs/decisions/memory-of-hashes.md).
const memoryBesideHashes = 192 << 20

// PrepareProcess reduces how much hashes delay other requests of this process. It raises GOMAXPROCS by
// the number of workers, so that the kernel shares the processor time between hashes and requests,
// and no request waits until a hash ends: with two processors and two busy workers, the p99 of 500
// requests a second fell from 2.4 s to 18 ms. It also asks for huge pages for the memory of
// hashes, and sets the soft memory limit of the runtime unless GOMEMLIMIT sets one: without it the
// garbage of finished hashes piles up between two collections. It has an effect once per process.
func (p *Passwords) PrepareProcess() {
	prepareOnce.Do(func() {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + p.workers)
		adviseHugePages(hashesPerGC * p.workers * int(p.cost.Memory) << 10)
		if debug.SetMemoryLimit(-1) == math.MaxInt64 {
			debug.SetMemoryLimit(memoryBesideHashes + int64(p.workers)*int64(p.cost.Memory)<<10)
		}
	})
}

// Close waits for the running hashes. A closed pool computes no further hashes: a later call waits
// until its context ends.
func (p *Passwords) Close(ctx context.Context) error { return p.queue.Close(ctx) }

// Hash returns the hash of a password of a tenant with argon2id, in the PHC string format.
func (p *Passwords) Hash(ctx context.Context, tenant id.ID, password Secret) (stored string, err error) {
	err = p.runInPool(ctx, tenant, func() error {
		stored = pwhash.Hash(p.cost, []byte(password))
		return nil
	})
	return stored, err
}

// Verify compares a password with its stored hash: an argon2id hash of Hash, or an imported hash of
// pwhash.ParseImported. An empty stored hash, and a password that no account can have, take the
// time of a hash and never match, so that the response time does not show whether an account
// exists (user enumeration by a timing attack). stale says that the caller must hash the password again (rehash),
// because the hash was imported or the cost has changed.
func (p *Passwords) Verify(
	ctx context.Context, tenant id.ID, stored string, password Secret,
) (match, stale bool, err error) {
	cannotMatch := stored == "" || len(password) > MaxPassword || strings.ContainsRune(password.Reveal(), 0)
	if cannotMatch {
		stored, password = p.dummyHash, ""
	}
	var cost pwhash.Cost
	err = p.runInPool(ctx, tenant, func() (err error) {
		match, cost, err = pwhash.Compare(stored, []byte(password))
		return err
	})
	if err != nil || cannotMatch {
		return false, false, err
	}
	return match, match && cost != p.cost, nil
}

// MatchesAny reports whether the password matches one of the stored hashes (password history). One
// worker compares all of them, and stops when the context ends.
func (p *Passwords) MatchesAny(
	ctx context.Context, tenant id.ID, stored []string, password Secret,
) (match bool, err error) {
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

// runInPool runs compute in a worker of the pool.
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

// acquireWorker waits for a worker. It returns apierr.Unavailable if the queue is full or ctx ends.
func (p *Passwords) acquireWorker(ctx context.Context, tenant id.ID) error {
	switch err := p.queue.Acquire(ctx, tenant); {
	case errors.Is(err, fairqueue.ErrFull):
		return apierr.Unavailable.Because(
			"too many passwords are being checked at this moment; repeat the request later").
			WithRetryAfter(time.Second)
	case err != nil:
		return errRequestEnded()
	}
	return nil
}

// releaseWorker releases a worker. Under a CPU quota it does so after a pause, so that the worker
// computes for its share of the time only.
func (p *Passwords) releaseWorker(tenant id.ID, elapsed time.Duration) {
	pause := time.Duration(math.Round(float64(elapsed) * (1/p.workerShare - 1)))
	if pause <= 0 {
		p.queue.Release(tenant)
		return
	}
	time.AfterFunc(pause, func() { p.queue.Release(tenant) })
}

func errRequestEnded() error {
	return apierr.Unavailable.Because("the request ended before its password could be checked").
		WithRetryAfter(time.Second)
}
