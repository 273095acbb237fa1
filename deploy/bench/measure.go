package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
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
	dir                   string
	config                harness.Config // of what is started
	standalone            *deployment
	distributed           *deployment
	site, apart, baseline *site // apart is the distributed shape
	openID                *providertest.Provider
	report                *report
	ends                  []func(context.Context) error // stop what was started, the last one first
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
	underLoad := append(operationNames(), "open", "storm", "steady", "waiting", "writers", "hot", "page")
	for _, part := range []struct {
		do    func(context.Context) error
		names []string // that -only has; nil: all
	}{
		{r.prepare, nil}, {r.start, nil}, {r.open, underLoad}, {r.page, []string{"page"}}, {r.operations, operationNames()},
		{r.latencies, []string{"open", "storm"}}, {r.steady, []string{"steady"}},
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
func (r *run) prepare(ctx context.Context) error {
	packages := append([]string{"./services/agent/cmd/agent"}, harness.StandalonePackages...)
	if r.Distributed {
		packages = append(packages, harness.DistributedPackages...)
	}
	log.Print("compiling")
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	bin, buildErr := harness.Build(ctx, r.dir, packages...)
	provider, setting, stop, err := startOpenID(r.dir)
	r.atEnd(func(context.Context) error { stop(); return nil })
	r.openID, r.config = provider, harness.Config{Bin: bin, Own: true, Settings: append(slices.Clone(settings), setting)}
	return errors.Join(buildErr, err)
}

// deploy starts a shape in a folder of its own until the end of the run.
func (r *run) deploy(ctx context.Context, shape, name string, config harness.Config) (*deployment, error) {
	config.Dir = filepath.Join(r.dir, name)
	d := &deployment{}
	err := d.started(func() (err error) {
		if shape == "distributed" {
			d.Shape, err = harness.StartDistributed(ctx, config)
		} else {
			d.Shape, err = harness.StartStandalone(ctx, config)
		}
		return err
	})
	if err == nil {
		r.atEnd(d.stop)
	}
	return d, err
}

// start starts standalone several times from an empty folder and from a full one,
// and leaves the last one running. It measures it while it is idle.
func (r *run) start(ctx context.Context) (err error) {
	var cold, warm []float64
	for n := range r.cold {
		if n > 0 {
			if err := r.standalone.stop(ctx); err != nil {
				return err
			}
		}
		if r.standalone, err = r.deploy(ctx, "standalone", "standalone"+strconv.Itoa(n), r.config); err != nil {
			return err
		}
		cold = append(cold, r.standalone.boot())
	}
	for range r.warm {
		if err := r.standalone.restart(ctx); err != nil {
			return err
		}
		warm = append(warm, r.standalone.boot())
	}
	log.Printf("started standalone: cold %.2f s, warm %.2f s", cold, warm)
	if r.wants("starts") {
		r.report.add("processes", "cold start", "s", "< 5", cold...)
		r.report.add("processes", "warm start", "s", "< 1", warm...)
	}
	if r.wants("idle") || r.wants("memory") {
		if err := quiet(ctx); err != nil {
			return err
		}
	}
	r.idle(ctx, "standalone with PostgreSQL", "< 1", r.standalone)
	if r.wants("memory") {
		r.memory("processes", "memory idle, standalone with PostgreSQL", "< 120", r.standalone.roots)
	}
	if r.Distributed {
		return r.startDistributed(ctx)
	}
	return nil
}

// startDistributed starts the distributed shape beside standalone.
func (r *run) startDistributed(ctx context.Context) (err error) {
	if r.distributed, err = r.deploy(ctx, "distributed", "distributed", r.config); err != nil || !r.wants("idle") {
		return err
	}
	err = quiet(ctx)
	r.idle(ctx, "distributed", "< 4", r.distributed, "postgres", "redis-server", "java", "mailbox")
	return err
}

// idle measures a deployment while nothing is asked of it, after the work of its
// start: the product's own processes, which have the aim, and the servers that it
// stands on.
func (r *run) idle(ctx context.Context, name, aim string, d *deployment, servers ...string) {
	if !r.wants("idle") {
		return
	}
	used := usedBetween(ctx, d.roots, time.Now(), time.Now().Add(r.idleFor))
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
		r.report.skip(name, err.Error())
		return
	}
	r.report.add(section, name, "MiB PSS", aim, mib)
}

func (r *run) memoryAfterLoad(ctx context.Context) error {
	if r.site == nil { // there was no load
		return nil
	}
	r.memory("processes", "memory at the end of load, standalone with PostgreSQL", "", r.standalone.roots)
	if err := quiet(ctx); err != nil {
		return err
	}
	r.memory("processes", "memory after load, standalone with PostgreSQL", "< 250", r.standalone.roots)
	return nil
}

// quiet waits until standalone has returned what it does not need at rest, and
// PostgreSQL has ended the sessions that nothing uses.
func quiet(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(30 * time.Second):
		return nil
	}
}

// openSite makes an application in a deployment to measure it.
func (r *run) openSite(ctx context.Context, name string, d *deployment) (*site, error) {
	began := time.Now()
	s, err := openSite(name, d.key, d.roots)
	if err != nil {
		return nil, err
	}
	s.openID.Provider = r.openID
	if err := s.fill(ctx, r.Accounts, r.logins); err != nil {
		return nil, fmt.Errorf("make the application to measure: %w", err)
	}
	if r.wants(delegated) {
		if s.ldap, err = r.startMirror(ctx, s, r.logins, time.Minute); err == nil {
			_, err = s.ldap.synced(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("start a directory agent: %w", err)
		}
		s.roots = append(slices.Clone(s.roots), s.ldap.agent.PID())
	}
	log.Printf("made %d accounts and logged %d in, in %.1f s", r.Accounts, r.logins, time.Since(began).Seconds())
	return s, nil
}

// open makes the applications to measure and starts the baseline.
func (r *run) open(ctx context.Context) (err error) {
	r.site, err = r.openSite(ctx, "", r.standalone)
	if r.Distributed && err == nil {
		r.apart, err = r.openSite(ctx, ", distributed", r.distributed)
	}
	if err != nil {
		return err
	}
	folder := filepath.Join(r.dir, "baseline")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the baseline's folder: %w", err)
	}
	baseline, stop, err := startBaseline(ctx, folder, r.Accounts)
	if err != nil {
		return err
	}
	r.atEnd(stop)
	r.baseline, r.report.postgresql = baseline, baseline.version
	return nil
}

// turn is what is measured once in each round, and a row of the report.
type turn struct {
	operation
	section string
	p99     bool // the figure is the 99th percentile, not the rate
	load    load
	site    *site
	beside  *turn // puts load from before the first operation to after the last
}

// turn is that of an operation of standalone; without a rate each connection sends
// as soon as it was answered.
func (r *run) turn(section string, o operation, rate float64) turn {
	return turn{operation: o, section: section, p99: rate > 0, site: r.site,
		load: load{connections: r.Connections, rate: rate, warm: r.Duration / 8, length: r.Duration}}
}

// compared returns the turn with another one that its figures are divided by, and an aim.
func (t turn) compared(over string, aims aims) turn {
	t.over, t.aims = over, aims
	return t
}

// andAlone returns the turn without what is beside it and the turn, divided by that.
func (t turn) andAlone(aim string) []turn {
	alone := t.compared("", aims{})
	alone.name, alone.beside = t.name+" alone", nil
	return []turn{alone, t.compared(alone.name, aims{rate: aim})}
}

func loggingIn(s *site) *turn {
	return &turn{operation: operation{name: "logins", do: find(operations, "login").do}, load: load{connections: 32}, site: s}
}

// operations measures all operations at their highest rate.
func (r *run) operations(ctx context.Context) (err error) {
	var other *site
	if r.peer != "" {
		if other, err = openPeer(r.peer); err != nil {
			return err
		}
	}
	var turns []turn
	for _, part := range []struct {
		section string
		site    *site
		list    []operation
	}{
		{"bare handlers", r.baseline, bareOperations},
		{"operations", r.site, operations},
		{"distributed", r.apart, operations},
		{"peer", other, peerOperations},
	} {
		for _, o := range part.list {
			if part.site == nil || part.site != other && !r.wants(o.name) {
				continue
			}
			t := r.turn(part.section, o, 0)
			t.site = part.site
			if t.site == r.apart {
				t = t.compared(o.name, aims{cpu: o.apart})
			}
			t.name += t.site.name
			turns = append(turns, t)
		}
	}
	return r.rounds(ctx, r.Rounds, turns)
}

// latencies measures operations at half of their highest rate, and some of them
// beside logins.
func (r *run) latencies(ctx context.Context) (err error) {
	var open, storm []turn
	for _, o := range operations {
		measured := slices.IndexFunc(r.report.rows, func(w *row) bool { return w.section == "operations" && w.name == o.name })
		if measured < 0 || median(r.report.rows[measured].values) == 0 { // on a machine that is too busy
			continue
		}
		t := r.turn("p99 at half of the highest rate", o, median(r.report.rows[measured].values)/2)
		if o.name == "validate" || o.name == "get" {
			beside := t
			beside.section, beside.beside = "the same beside 32 connections that log in", loggingIn(r.site)
			storm = append(storm, beside.andAlone("<= 3")...)
		}
		aim := aims{rate: "< 10 ms"}
		if o.over == "hash" || o.over == "login" {
			aim.rate = ""
		}
		open = append(open, t.compared("", aim))
	}
	if r.wants("open") {
		err = r.rounds(ctx, r.fewRounds, open)
	}
	if r.wants("storm") && err == nil {
		err = r.rounds(ctx, r.fewRounds, storm)
	}
	return err
}

func (r *run) steady(ctx context.Context) error {
	return r.atFixedRate(ctx, "get at 500/s beside logins", "< 25 ms", r.site)
}

// atFixedRate measures account GET at 500 a second beside logins.
func (r *run) atFixedRate(ctx context.Context, name, aim string, s *site) error {
	t := r.turn("p99 at 500 a second beside 32 connections that log in", find(operations, "get"), 500).compared("", aims{rate: aim})
	t.name, t.site, t.load.length, t.beside = name, s, r.steadyFor, loggingIn(s)
	return r.rounds(ctx, r.fewRounds, []turn{t})
}

// waiting measures logins and account GET at a fixed rate without and beside 200
// logins at a provider that accepts connections and never answers.
func (r *run) waiting(ctx context.Context) error {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = silent.Close() }()
	login, err := r.site.silentLogin(ctx, "https://"+silent.Addr().String())
	if err != nil {
		return fmt.Errorf("make a directory of a provider that never answers: %w", err)
	}
	var turns []turn
	for name, rate := range map[string]float64{"login": 5, "get": 100} {
		t := r.turn("p99 beside 200 logins at a provider that never answers", find(operations, name), rate)
		t.name = fmt.Sprintf("%s at %.0f/s", name, rate)
		t.load.warm, t.load.length = 3*time.Second, 3*r.steadyFor
		t.beside = &turn{operation: operation{name: "of these logins", do: login}, load: load{connections: 200}, site: r.site}
		turns = append(turns, t.andAlone("")...)
	}
	return r.rounds(ctx, r.fewRounds, turns)
}

// writers measures validation and account GET without and beside 50 writes a
// second: of one application while another tenant writes, and of many applications
// in many tenants, to which the writes go.
func (r *run) writers(ctx context.Context) error {
	tenants := 1
	if r.wants("hot") {
		tenants = r.hotTenants
	}
	var keys []e2e.Key
	for range tenants {
		key, err := r.standalone.newTenant(ctx)
		if err != nil {
			return fmt.Errorf("make a tenant: %w", err)
		}
		keys = append(keys, key)
	}
	if err := r.standalone.restart(ctx); err != nil {
		return err
	}
	r.site.roots = r.standalone.roots
	hot, err := fillTenants(ctx, r.site, keys, r.hotApplications)
	if err != nil {
		return fmt.Errorf("make applications in other tenants: %w", err)
	}
	log.Printf("made %d applications in %d tenants", len(hot), tenants)
	for _, part := range []struct {
		name, section, aim string
		readers, written   []*site
	}{
		{"writers", "beside 50 writes a second of another tenant", ">= 0.9", []*site{r.site}, hot[:r.hotApplications]},
		{"hot", fmt.Sprintf("of %d applications in %d tenants, beside 50 writes a second to them", len(hot), tenants), ">= 0.95", hot, hot},
	} {
		if !r.wants(part.name) {
			continue
		}
		var turns []turn
		for _, name := range []string{"validate", "get"} {
			t := r.turn(part.section, operation{name: name, do: ofAll(part.readers, find(operations, name).do)}, 0)
			t.beside = &turn{operation: operation{name: "writes", do: writes(part.written)}, load: load{connections: 4, rate: 50}, site: r.site}
			turns = append(turns, t.andAlone(part.aim)...)
		}
		if err := r.rounds(ctx, max(r.Rounds, 2), turns); err != nil {
			return err
		}
	}
	return nil
}

// quota measures a standalone of its own in a control group with one processor.
func (r *run) quota(ctx context.Context) error {
	group, err := newCPUGroup()
	if err != nil {
		r.report.skip("quota", "control groups cannot be written here: "+err.Error())
		return nil
	}
	r.atEnd(func(context.Context) error { return group.remove() })
	config := r.config
	config.Bin = filepath.Join(r.dir, "quota-bin")
	if err := group.wrap(filepath.Join(r.config.Bin, "doorward"), config.Bin); err != nil {
		return fmt.Errorf("wrap the program: %w", err)
	}
	d, err := r.deploy(ctx, "standalone", "quota", config)
	if err != nil {
		return err
	}
	s, err := r.openSite(ctx, "", d)
	if err != nil {
		return err
	}
	return r.atFixedRate(ctx, "the same with a quota of one processor", "< 40 ms", s)
}

// rounds does every turn once in each round, so that a slow minute of the machine
// is shared by all. Each round begins with another one. It adds a row for each turn.
func (r *run) rounds(ctx context.Context, count int, turns []turn) error {
	rows := map[string]*row{}
	for _, t := range turns {
		rows[t.name] = r.report.add(t.section, t.name, "/s", "")
		if t.p99 {
			rows[t.name].unit = "ms"
		}
	}
	for _, t := range turns {
		rows[t.name].aims, rows[t.name].over = t.aims, rows[t.over]
	}
	for round := range count {
		for n := range turns {
			t := turns[(n+round)%len(turns)]
			o, note, err := t.run(ctx)
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			value := float64(o.done()) / t.load.length.Seconds()
			if t.p99 {
				value = percentile(o.latencies, 99)
			}
			w := rows[t.name]
			w.values, w.cpu, w.note = append(w.values, value), append(w.cpu, o.cpu()), note
			w.sum.add(o)
		}
		log.Printf("round %d of %d", round+1, count)
	}
	return nil
}

// run measures the turn while what is beside it goes on, which the note is about.
func (t turn) run(ctx context.Context) (measured *outcome, note string, err error) {
	if t.setup != nil {
		t.setup(t.site, t.load)
	}
	if t.beside == nil {
		measured = t.load.run(ctx, t.site, t.do)
		return measured, "", measured.failed(t.name)
	}
	l := t.beside.load
	l.warm, l.length = t.load.warm/2, t.load.warm+t.load.length*3/2
	var others *outcome
	var wait sync.WaitGroup
	wait.Go(func() { others = l.run(ctx, t.beside.site, t.beside.do) })
	measured = t.load.run(ctx, t.site, t.do)
	wait.Wait()
	note = fmt.Sprintf("beside %.1f %s a second (failed: %s). ", float64(others.done())/l.length.Seconds(), t.beside.name,
		cmp.Or(counts(others.failures), "none"))
	return measured, note, errors.Join(measured.failed(t.name), others.failed(t.beside.name))
}
