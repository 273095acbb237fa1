package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/pg/private"
)

const (
	// recoverLimit bounds how long requests may fail after a fault has ended (recovery time).
	recoverLimit = 2 * time.Minute
	// stableFor is how long no request may fail for the deployment to count as recovered.
	stableFor = 4 * time.Second
)

// suite is a deployment under faults, with its load.
type suite struct {
	t           *testing.T
	dir         string
	network     *network
	deployment  *harness.Distributed
	database    *harness.Postgres
	databases   int
	disks       map[string]string    // by the server whose data is there; empty where none can be made
	memory      harness.ControlGroup // with memoryAllowed; "" where none can be made
	client      *e2e.Client
	fixture     e2e.Fixture
	load        *load
	duringFault func() error // repeated while a fault lasts; nil: nothing
	results     []result
}

// result is what clients saw during one fault and after it.
type result struct {
	event

	requests, failed int
	failures         map[string]int // by kind and error
	failingSeconds   int            // in which requests failed
	recovery         time.Duration  // how long requests failed after the end of the fault
	slowest          time.Duration
}

// start starts the deployment with its load.
func start(t *testing.T, seed uint64, workers int, slack time.Duration) *suite {
	t.Helper()
	dir := harness.TestFolder(t)
	s := &suite{t: t, dir: dir, network: newNetwork(), disks: map[string]string{}}
	ctx := t.Context()
	if os.Getenv("FAULTS_FOR") != "" {
		s.prepareHost()
	}
	var err error
	if s.database, err = harness.StartPostgres(ctx, harness.PostgresConfig{
		Dir:      filepath.Join(s.disk("postgres"), "node0"),
		Settings: []string{"max_connections = 400", "fsync = off", "max_wal_size = 64MB", "wal_keep_size = 64MB", "max_wal_senders = 4"},
	}); err != nil {
		t.Fatal(err)
	}
	harness.AtEnd(t, func() error { return s.database.Kill() }) // whichever it is then
	s.deployment, s.client = harness.TestDistributed(t, harness.Config{
		Dir: filepath.Join(dir, "deployment"), OwnServers: true, Database: s.database.URL(private.Database), Route: s.network.route,
	})
	s.fixture = s.client.NewVerificationFixture(t)
	lockout := s.client.Register(t, s.fixture.Directory.Link(t, "accounts"))
	owner := s.client.Get(t, "/apiKeys/"+s.client.Key.ID).Link(t, "account")
	s.load = startLoad(ctx, newChecker(lockout.Text("email"), slack), s.client, s.fixture, owner, seed, workers)
	t.Cleanup(func() { s.load.Stop() })
	return s
}

// disk is the folder of a server's data, on a disk of its own where one can be made.
func (s *suite) disk(name string) string {
	if dir, ok := s.disks[name]; ok {
		return dir
	}
	return filepath.Join(s.dir, name)
}

// prepareHost prepares what faults of the host need, which takes root.
func (s *suite) prepareHost() {
	kafka := filepath.Join(s.dir, "deployment", "kafka")
	for name, dir := range map[string]string{"postgres": filepath.Join(s.dir, "postgres"), "kafka": kafka} {
		if err := mountDisk(dir); err != nil {
			s.t.Logf("no disk can be filled here: %v", err)
			return
		}
		harness.AtEnd(s.t, func() error { return unmountDisk(dir) })
		s.disks[name] = dir
	}
	var err error
	if s.memory, err = harness.NewControlGroup("memory", harness.Limit{File: "memory.limit_in_bytes", Value: memoryAllowed},
		harness.Limit{File: "memory.max", Value: memoryAllowed}); err != nil {
		s.t.Logf("no memory can be limited here: %v", err)
		return
	}
	harness.AtEnd(s.t, s.memory.Remove)
}

// possible returns the faults that this machine allows and whose names contain only.
func (s *suite) possible(faults []fault, only string) []fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		if !strings.Contains(f.name, only) {
			return true
		}
		impossible := strings.HasPrefix(f.name, "disk") && len(s.disks) < 2 || strings.HasPrefix(f.name, "memory") && s.memory == ""
		if impossible {
			s.t.Logf("left out: %s", f.name)
		}
		return impossible
	})
}

// run injects one fault after the other for a time: each once, in a random order, then
// each once more in another order.
func (s *suite) run(seed uint64, lasts time.Duration) {
	random := rand.New(rand.NewPCG(seed, 0))
	faults := s.possible(allFaults, os.Getenv("FAULTS_ONLY"))
	for end := time.Now().Add(lasts); ; {
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			// The fault is drawn before the time is checked, so that a seed gives the same
			// schedule whatever the length of the run.
			e := f.draw(s, random)
			if time.Now().After(end) {
				return
			}
			e.fault = f.name
			if err := s.do(e); err != nil {
				s.t.Errorf("%s, %s: %v", e.fault, e.target, err)
				return
			}
		}
	}
}

// runFew injects each of some faults once.
func (s *suite) runFew(seed uint64, names ...string) {
	random := rand.New(rand.NewPCG(seed, 0))
	for _, name := range names {
		f := allFaults[slices.IndexFunc(allFaults, func(f fault) bool { return strings.HasPrefix(f.name, name) })]
		e := f.draw(s, random)
		e.fault, e.lasts = f.name, min(e.lasts, 5*time.Second)
		if err := s.do(e); err != nil {
			s.t.Errorf("%s, %s: %v", e.fault, e.target, err)
			return
		}
	}
}

// do injects a fault, ends it, and waits until no request fails any more.
func (s *suite) do(e event) error {
	ctx := s.t.Context()
	began := time.Now()
	if err := e.begin(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for until := time.Now().Add(e.lasts); time.Now().Before(until); {
		if s.duringFault != nil {
			if err := s.duringFault(); err != nil {
				return err
			}
		}
		<-time.After(min(500*time.Millisecond, time.Until(until)))
	}
	if err := e.end(ctx); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	ended := time.Now()
	err := e2e.AwaitFor(ctx, recoverLimit, "the deployment to recover", func(ctx context.Context) error {
		if err := s.ready(ctx); err != nil {
			return err
		}
		if time.Since(ended) < stableFor {
			return errors.New("the fault has just ended")
		}
		if failed := s.load.FailedSince(time.Now().Add(-stableFor)); len(failed) > 0 {
			return fmt.Errorf("a request failed: %s", failed[0])
		}
		return nil
	})
	r := s.result(e, began, ended)
	s.results = append(s.results, r)
	s.t.Logf("%s  %-42s %-34s %3.0f s: %s", began.Format(time.TimeOnly), e.fault, e.target, ended.Sub(began).Seconds(), r)
	return err
}

// ready restarts processes that have ended by themselves, as a supervisor does, and
// returns nil when all processes are ready.
func (s *suite) ready(ctx context.Context) error {
	for _, service := range append(slices.Clone(deployment.Services), "gateway") {
		for i := range 2 {
			process := s.deployment.Replica(service, i)
			if process.Ended() {
				s.load.violation("%s has ended by itself:\n%s", process.Name, process.Tail())
				if err := errors.Join(process.Kill(), process.Start(ctx)); err != nil {
					return err
				}
			}
			if err := process.Ready(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *suite) result(e event, began, ended time.Time) result {
	r := result{event: e, failures: map[string]int{}}
	failing := map[int64]bool{}
	for _, c := range s.load.Since(began) {
		r.requests++
		r.slowest = max(r.slowest, c.Took)
		if c.Err == nil {
			continue
		}
		r.failed++
		r.failures[c.Kind+": "+c.Err.Error()]++
		failing[c.Ended().Unix()] = true
		r.recovery = max(r.recovery, c.Ended().Sub(ended))
	}
	r.failingSeconds = len(failing)
	return r
}

// String is the result as one line.
func (r result) String() string {
	return fmt.Sprintf("%4d requests, %3d failed %v, errors in %d s and until %.1f s after its end, slowest %.1f s",
		r.requests, r.failed, r.failures, r.failingSeconds, r.recovery.Seconds(), r.slowest.Seconds())
}

// table is the results of each fault, in the form of docs/faults.md.
func (s *suite) table() string {
	var b strings.Builder
	fmt.Fprintln(&b, "| Fault | Times | Requests | Failed | Errors, longest | After the end, longest | Slowest answer |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|")
	for _, f := range allFaults {
		var sum result
		times := 0
		for _, r := range s.results {
			if r.fault == f.name {
				times++
				sum.requests, sum.failed = sum.requests+r.requests, sum.failed+r.failed
				sum.failingSeconds, sum.recovery = max(sum.failingSeconds, r.failingSeconds), max(sum.recovery, r.recovery)
				sum.slowest = max(sum.slowest, r.slowest)
			}
		}
		if times > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d s | %.1f s | %.1f s |\n",
				f.name, times, sum.requests, sum.failed, sum.failingSeconds, sum.recovery.Seconds(), sum.slowest.Seconds())
		}
	}
	return b.String()
}

// settings are FAULTS_FOR and FAULTS_SEED.
func settings(t *testing.T) (lasts time.Duration, seed uint64) {
	t.Helper()
	lasts, err := time.ParseDuration(os.Getenv("FAULTS_FOR"))
	if err != nil {
		t.Fatal(err)
	}
	seed = uint64(time.Now().UnixNano())
	if given := os.Getenv("FAULTS_SEED"); given != "" {
		if _, err := fmt.Sscan(given, &seed); err != nil {
			t.Fatal(err)
		}
	}
	return lasts, seed
}
