package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/providertest"
)

// run is one measurement.
type run struct {
	options
	dir                               string
	config                            harness.Config // of what is started
	openID                            *providertest.Provider
	standalone, distributed, baseline *site
	report                            *report
	turns                             []*turn                       // of the next rounds
	ends                              []func(context.Context) error // stop what was started, the last one first
}

// measure makes the whole measurement and leaves nothing running. With a report it
// returns what did not stop well.
func measure(ctx context.Context, o options) (report *report, err error) {
	dir, remove, err := harness.Folder()
	if err != nil {
		return nil, err
	}
	r := &run{options: o, dir: dir, report: newReport(o)}
	r.atEnd(func(context.Context) error { return remove() })
	defer func() {
		for _, end := range slices.Backward(r.ends) {
			err = errors.Join(err, end(context.WithoutCancel(ctx)))
		}
	}()
	steady := func(ctx context.Context) error {
		return r.steady(ctx, "get at 500/s beside logins", "< 25 ms", r.standalone)
	}
	underLoad := append(operationNames(), "open", "storm", "steady", "waiting", "writers", "hot", "page")
	for _, part := range []struct {
		do    func(context.Context) error
		names []string // that -only has; nil: all
	}{
		{r.start, nil}, {r.fill, underLoad}, {r.page, []string{"page"}}, {r.operations, operationNames()},
		{r.open, []string{"open"}}, {r.storm, []string{"storm"}}, {steady, []string{"steady"}},
		{r.waiting, []string{"waiting"}}, {r.memoryAfterLoad, []string{"memory"}},
		{r.writers, []string{"writers", "hot"}}, {r.sync, []string{"sync"}}, {r.scale, []string{"scale"}}, {r.quota, []string{"quota"}},
	} {
		if part.names != nil && !r.wants(part.names...) {
			continue
		}
		if err := errors.Join(part.do(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

func (r *run) atEnd(end func(context.Context) error) { r.ends = append(r.ends, end) }

// prepare compiles the product and starts the OpenID provider that it asks.
func (r *run) prepare(ctx context.Context) (err error) {
	packages := append([]string{"./services/agent/cmd/agent"}, harness.StandalonePackages...)
	if r.options.distributed {
		packages = append(packages, harness.DistributedPackages...)
	}
	log.Print("compiling")
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	r.config = harness.Config{Own: true, Settings: slices.Clone(settings)}
	if r.config.Bin, err = harness.Build(ctx, r.dir, packages...); err != nil {
		return err
	}
	return r.startOpenID()
}

// deploy starts a shape in a folder of its own until the end of the run. The name
// stands behind those of its operations in the report.
func (r *run) deploy(ctx context.Context, shape, name, folder string, config harness.Config) (*site, error) {
	var deployed harness.Shape
	config.Dir = filepath.Join(r.dir, folder)
	roots, err := started(func() (err error) {
		deployed, err = harness.Start(ctx, shape, config)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.atEnd(deployed.Stop)
	client, err := e2e.OpenClient(deployed.KeyFile())
	if err != nil {
		return nil, err
	}
	s := newSite(name, client, roots)
	s.Shape, s.openID.Provider = deployed, r.openID
	return s, nil
}

// start compiles the product, starts standalone several times from an empty folder
// and from a full one, and leaves the last one running. It measures it while it is
// idle.
func (r *run) start(ctx context.Context) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	var cold, warm []float64
	for n := range r.cold {
		if n > 0 {
			if err := r.standalone.Stop(ctx); err != nil {
				return err
			}
		}
		if r.standalone, err = r.deploy(ctx, "standalone", "", "standalone"+strconv.Itoa(n), r.config); err != nil {
			return err
		}
		cold = append(cold, r.standalone.Shape.(*harness.Standalone).Boot.Seconds())
	}
	for range r.warm {
		if err := r.standalone.restart(ctx); err != nil {
			return err
		}
		warm = append(warm, r.standalone.Shape.(*harness.Standalone).Boot.Seconds())
	}
	log.Printf("started standalone: cold %.2f s, warm %.2f s", cold, warm)
	if r.wants("starts") {
		r.report.add("processes", "cold start", "s", "< 5", cold...)
		r.report.add("processes", "warm start", "s", "< 1", warm...)
	}
	if r.wants("idle", "memory") {
		rest(ctx)
	}
	r.idle(ctx, "standalone with PostgreSQL", "< 1", r.standalone)
	if r.wants("memory") {
		r.memory("processes", "memory idle, standalone with PostgreSQL", "< 120", r.standalone.roots)
	}
	if !r.options.distributed {
		return nil
	}
	if r.distributed, err = r.deploy(ctx, "distributed", ", distributed", "distributed", r.config); err == nil && r.wants("idle") {
		rest(ctx)
		r.idle(ctx, "distributed", "< 4", r.distributed, "postgres", "redis-server", "java", "mailbox")
	}
	return err
}

// rest waits until standalone has returned what it does not need at rest, and
// PostgreSQL has ended the sessions that nothing uses.
func rest(ctx context.Context) { waitUntil(ctx, time.Now().Add(30*time.Second)) }

// idle measures a deployment while nothing is asked of it, after the work of its
// start: the product's own processes, which have the aim, and the servers that it
// stands on.
func (r *run) idle(ctx context.Context, name, aim string, s *site, servers ...string) {
	if !r.wants("idle") {
		return
	}
	used := usedBetween(ctx, s.roots, time.Now(), time.Now().Add(r.idleFor))
	percent := func(of time.Duration) float64 { return 100 * of.Seconds() / used.took.Seconds() }
	own := used.server()
	for _, server := range servers {
		own -= used.servers[server]
	}
	r.report.add("processes", "idle CPU, "+name, "% of a core", aim, percent(own))
	if len(servers) > 0 {
		r.report.add("processes", fmt.Sprintf("idle CPU, %s with %s", name, servers), "% of a core", "", percent(used.server()))
	}
}

func (r *run) memory(section, name, aim string, roots []int) {
	mib, err := memory(roots)
	if err != nil {
		r.report.skip(name, err)
		return
	}
	r.report.add(section, name, "MiB PSS", aim, mib)
}

func (r *run) memoryAfterLoad(ctx context.Context) error {
	if r.baseline == nil { // there was no load
		return nil
	}
	r.memory("processes", "memory at the end of load, standalone with PostgreSQL", "", r.standalone.roots)
	rest(ctx)
	r.memory("processes", "memory after load, standalone with PostgreSQL", "< 250", r.standalone.roots)
	return nil
}

// fill makes the applications to measure and starts the baseline.
func (r *run) fill(ctx context.Context) error {
	for _, s := range []*site{r.standalone, r.distributed} {
		if s == nil {
			continue
		}
		if err := r.fillSite(ctx, s); err != nil {
			return err
		}
	}
	return r.startBaseline(ctx)
}

// fillSite makes an application in a deployment to measure it.
func (r *run) fillSite(ctx context.Context, s *site) (err error) {
	began := time.Now()
	if err = s.fill(ctx, r.accounts, r.logins); err != nil {
		return fmt.Errorf("make the application to measure: %w", err)
	}
	log.Printf("made %d accounts and logged %d in, in %.1f s", r.accounts, r.logins, time.Since(began).Seconds())
	if r.wants(delegated) {
		s.ldap, err = r.startMirror(ctx, s, r.logins, time.Minute)
	}
	return err
}

// work is load on a site.
type work struct {
	operation
	site *site
	load load
}

// turn is work that is measured once in each round. Its figures are a row of the
// report.
type turn struct {
	*row
	work
	beside *work // goes on from before the first operation to after the last
}

// turn adds a turn of the next rounds: the rate of an operation, or the 99th percentile
// of its latency at a rate.
func (r *run) turn(section string, s *site, o operation, rate float64) *turn {
	l := load{connections: r.connections, rate: rate, warm: r.duration / 8, length: r.duration}
	t := &turn{row: r.report.add(section, o.name+s.name, "/s", ""), work: work{o, s, l}}
	if rate > 0 {
		t.unit = "ms"
	}
	r.turns = append(r.turns, t)
	return t
}

// turnsBeside adds a turn of an operation alone and one beside other work, which is
// divided by the first.
func (r *run) turnsBeside(section string, s *site, o operation, rate float64, other *work, aim string) {
	alone, beside := r.turn(section, s, operation{name: o.name + " alone", do: o.do}, rate), r.turn(section, s, o, rate)
	beside.over, beside.aims.rate, beside.beside = alone.row, aim, other
}

func loggingIn(s *site) *work {
	return &work{operation{name: "logins", do: find("login").do}, s, load{connections: 32}}
}

// operations measures all operations at their highest rate.
func (r *run) operations(ctx context.Context) (err error) {
	var other *site
	if r.peer != "" {
		if other, err = openPeer(r.peer); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		section string
		site    *site
		list    []operation
	}{
		{"bare handlers", r.baseline, bareOperations},
		{"operations", r.standalone, operations},
		{"distributed", r.distributed, operations},
		{"peer", other, peerOperations},
	} {
		for _, o := range part.list {
			if part.site == nil || !r.wants(o.name) {
				continue
			}
			t := r.turn(part.section, part.site, o, 0)
			t.over, t.aims = r.report.row(o.over), o.aims
			if part.site == r.distributed {
				t.over, t.aims = r.report.row(o.name), aims{cpu: o.apart}
			}
		}
	}
	return r.rounds(ctx, r.options.rounds)
}

// half of the highest rate of an operation; 0 where it was not measured, or the
// machine was too busy.
func (r *run) half(name string) float64 {
	if measured := r.report.row(name); measured != nil {
		return median(measured.values) / 2
	}
	return 0
}

// open measures operations at half of their highest rate.
func (r *run) open(ctx context.Context) error {
	for _, o := range operations {
		if half := r.half(o.name); half > 0 {
			t := r.turn("p99 at half of the highest rate", r.standalone, o, half)
			if o.over != "hash" && o.over != "login" {
				t.aims.rate = "< 10 ms"
			}
		}
	}
	return r.rounds(ctx, r.fewRounds)
}

// storm measures some operations at half of their highest rate beside logins.
func (r *run) storm(ctx context.Context) error {
	for _, name := range []string{"validate", "get"} {
		if half := r.half(name); half > 0 {
			r.turnsBeside("p99 at half of the highest rate beside 32 connections that log in", r.standalone, find(name),
				half, loggingIn(r.standalone), "<= 3")
		}
	}
	return r.rounds(ctx, r.fewRounds)
}

// steady measures account GET at 500 a second beside logins.
func (r *run) steady(ctx context.Context, name, aim string, s *site) error {
	t := r.turn("p99 at 500 a second beside 32 connections that log in", s, operation{name: name, do: find("get").do}, 500)
	t.aims.rate, t.beside, t.load.length = aim, loggingIn(s), r.steadyFor
	return r.rounds(ctx, r.fewRounds)
}

// waiting measures logins and account GET at a fixed rate without and beside 200
// logins at a provider that accepts connections and never answers.
func (r *run) waiting(ctx context.Context) error {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = silent.Close() }()
	login, err := r.standalone.silentLogin(ctx, "https://"+silent.Addr().String())
	if err != nil {
		return fmt.Errorf("make a directory of a provider that never answers: %w", err)
	}
	other := &work{operation{name: "of these logins", do: login}, r.standalone, load{connections: 200}}
	for name, rate := range map[string]float64{"login": 5, "get": 100} {
		o := operation{name: fmt.Sprintf("%s at %.0f/s", name, rate), do: find(name).do}
		r.turnsBeside("p99 beside 200 logins at a provider that never answers", r.standalone, o, rate, other, "")
	}
	for _, t := range r.turns {
		t.load.warm, t.load.length = 3*time.Second, 3*r.steadyFor
	}
	return r.rounds(ctx, r.fewRounds)
}

// writers measures validation and account GET without and beside 50 writes a
// second: of one application while another tenant writes, and of many applications
// in many tenants, to which the writes go.
func (r *run) writers(ctx context.Context) error {
	tenants := 1
	if r.wants("hot") {
		tenants = r.hotTenants
	}
	var hot []*site
	for range tenants {
		sites, err := r.standalone.newTenant(ctx, r.hotApplications)
		if err != nil {
			return fmt.Errorf("make a tenant: %w", err)
		}
		hot = append(hot, sites...)
	}
	if err := r.standalone.restart(ctx); err != nil {
		return err
	}
	log.Printf("made %d applications in %d tenants", len(hot), tenants)
	for _, part := range []struct {
		name, section, aim string
		readers, written   []*site
	}{
		{"writers", "beside 50 writes a second of another tenant", ">= 0.9", []*site{r.standalone}, hot[:r.hotApplications]},
		{"hot", fmt.Sprintf("of %d applications in %d tenants, beside 50 writes a second to them", len(hot), tenants), ">= 0.95", hot, hot},
	} {
		if !r.wants(part.name) {
			continue
		}
		other := &work{operation{name: "writes", do: writes(part.written)}, r.standalone, load{connections: 4, rate: 50}}
		for _, name := range []string{"validate", "get"} {
			o := operation{name: name, do: ofAll(part.readers, find(name).do)}
			r.turnsBeside(part.section, r.standalone, o, 0, other, part.aim)
		}
		if err := r.rounds(ctx, max(r.options.rounds, 2)); err != nil {
			return err
		}
	}
	return nil
}

// quota measures a standalone of its own in a control group with one processor.
func (r *run) quota(ctx context.Context) error {
	group, err := newCPUGroup()
	if err != nil {
		r.report.skip("quota", fmt.Errorf("control groups cannot be written here: %w", err))
		return nil
	}
	r.atEnd(func(context.Context) error { return group.Remove() })
	config := r.config
	config.Wrap = group.Wrapper()
	s, err := r.deploy(ctx, "standalone", "", "quota", config)
	if err == nil {
		err = r.fillSite(ctx, s)
	}
	if err != nil {
		return err
	}
	return r.steady(ctx, "the same with a quota of one processor", "< 40 ms", s)
}

// rounds does every turn that was added once in each round, so that a slow minute of
// the machine is shared by all. Each round begins with another one.
func (r *run) rounds(ctx context.Context, count int) error {
	turns := r.turns
	r.turns = nil
	for round := range count {
		for n := range turns {
			if err := errors.Join(turns[(n+round)%len(turns)].measure(ctx), ctx.Err()); err != nil {
				return err
			}
		}
		log.Printf("round %d of %d", round+1, count)
	}
	return nil
}

// measure does the turn while what is beside it goes on, which the note is about.
func (t *turn) measure(ctx context.Context) error {
	if t.setup != nil {
		t.setup(t.site, t.load)
	}
	var others *outcome
	var wait sync.WaitGroup
	beside := load{warm: t.load.warm / 2, length: t.load.warm + t.load.length*3/2}
	if t.beside != nil {
		beside.connections, beside.rate = t.beside.load.connections, t.beside.load.rate
		wait.Go(func() { others = beside.run(ctx, t.beside.site, t.beside.do) })
	}
	found := t.load.run(ctx, t.site, t.do)
	wait.Wait()
	value := float64(found.done()) / t.load.length.Seconds()
	if t.load.rate > 0 {
		value = percentile(found.latencies, 99)
	}
	t.values, t.cpu = append(t.values, value), append(t.cpu, found.cpu())
	t.sum.add(found)
	if others == nil {
		return found.failed(t.name)
	}
	t.note = fmt.Sprintf("beside %.1f %s a second (failed: %s). ", float64(others.done())/beside.length.Seconds(), t.beside.name,
		cmp.Or(counts(others.failures), "none"))
	return errors.Join(found.failed(t.name), others.failed(t.beside.name))
}
