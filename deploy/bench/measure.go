package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// run is one measurement.
type run struct {
	options
	dir                   string
	config                harness.Config // of what is started
	standalone            *deployment
	site, apart, baseline *site     // apart is the distributed shape
	others                []e2e.Key // of the tenants of writers and hot
	openID                openIDProvider
	report                *report
	ends                  []func(context.Context) error // stop what was started, the last one first
}

// measure makes the whole measurement and leaves nothing running. With a report it
// returns what did not stop well.
func measure(ctx context.Context, o options) (report *report, err error) {
	began := time.Now()
	dir, remove, err := harness.Folder()
	if err != nil {
		return nil, err
	}
	r := &run{options: o, dir: dir, report: newReport(o, began)}
	r.atEnd(func(context.Context) error { return remove() })
	defer func() {
		for _, end := range slices.Backward(r.ends) {
			err = errors.Join(err, end(context.WithoutCancel(ctx)))
		}
	}()
	for _, part := range []func(context.Context) error{
		r.prepare, r.start, r.startDistributed, r.open, r.page, r.operations, r.latencies, r.steady, r.writers,
		r.memoryAfterLoad, r.sync, r.scale, r.quota,
	} {
		if err := errors.Join(part(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	r.report.Took = time.Since(began).Seconds()
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
	r.openID.Provider, r.config = provider, harness.Config{Bin: bin, Own: true, Settings: append(slices.Clone(settings), setting)}
	return errors.Join(buildErr, err)
}

// in is the configuration of a deployment in a folder of its own.
func (r *run) in(name string) harness.Config {
	config := r.config
	config.Dir = filepath.Join(r.dir, name)
	return config
}

// start starts standalone several times from an empty folder and from a full one,
// and leaves the last one running. It measures it while it is idle.
func (r *run) start(ctx context.Context) (err error) {
	if len(r.Only) == 1 && r.wants("quota") {
		return nil
	}
	var cold, warm []float64
	for n := range r.cold {
		if n > 0 {
			if err := r.standalone.stop(ctx); err != nil {
				return err
			}
		}
		r.standalone, err = startDeployment(ctx, harness.StartStandalone, r.in("standalone"+strconv.Itoa(n)))
		if err != nil {
			return errors.Join(err, r.standalone.stop(ctx))
		}
		cold = append(cold, r.standalone.boot())
	}
	r.atEnd(func(ctx context.Context) error { return r.standalone.stop(ctx) })
	for range r.warm {
		if err := r.standalone.restart(ctx); err != nil {
			return err
		}
		warm = append(warm, r.standalone.boot())
	}
	log.Printf("started standalone: cold %.2f s, warm %.2f s", cold, warm)
	if r.wants("starts") {
		r.add("processes", "cold start", "s", "< 5", cold...)
		r.add("processes", "warm start", "s", "< 1", warm...)
	}
	r.idle(ctx, "standalone with PostgreSQL", "< 1", r.standalone, 2*time.Second)
	r.memory("processes", "memory idle, standalone with PostgreSQL", "< 120", r.standalone.roots)
	return r.tenants(ctx)
}

func (r *run) startDistributed(ctx context.Context) error {
	if !r.Distributed {
		return nil
	}
	d, err := startDeployment(ctx, harness.StartDistributed, r.in("distributed"))
	r.atEnd(d.stop)
	if err != nil {
		return err
	}
	r.idle(ctx, "distributed", "< 4", d, 10*time.Second, "postgres", "redis-server", "java", "mailbox")
	if r.underLoad() {
		r.apart, err = r.openSite(ctx, ", distributed", d, r.Accounts, r.logins)
	}
	return err
}

// add adds a row of values that are compared with nothing.
func (r *run) add(section, name, unit, aim string, values ...float64) *row {
	r.report.Rows = append(r.report.Rows, row{Section: section, Name: name, Unit: unit, Value: spreadOf(values), Aims: aims{Rate: aim}})
	return &r.report.Rows[len(r.report.Rows)-1]
}

// idle measures a deployment while nothing is asked of it, after the work of its
// start: the product's own processes, which have the aim, and the servers that it
// stands on.
func (r *run) idle(ctx context.Context, name, aim string, d *deployment, delay time.Duration, servers ...string) {
	if !r.wants("idle") {
		return
	}
	from := time.Now().Add(delay)
	used := usedBetween(ctx, d.roots, from, from.Add(r.idleFor))
	percent := func(of time.Duration) float64 { return 100 * of.Seconds() / used.took.Seconds() }
	own := used.server()
	for _, server := range servers {
		own -= used.servers[server]
	}
	r.add("processes", "idle CPU, "+name, "% of a core", aim, percent(own))
	if len(servers) > 0 {
		r.add("processes", fmt.Sprintf("idle CPU, %s with %s", name, servers), "% of a core", "", percent(used.server()))
	}
}

func (r *run) memory(section, name, aim string, roots []int) {
	mib, err := memory(roots)
	switch {
	case section == "processes" && !r.wants("memory"):
	case err != nil:
		r.report.skip(name, err.Error())
	default:
		r.add(section, name, "MiB PSS", aim, mib)
	}
}

func (r *run) memoryAfterLoad(context.Context) error {
	if r.underLoad() {
		r.memory("processes", "memory after load, standalone with PostgreSQL", "< 250", r.standalone.roots)
	}
	return nil
}

// tenants makes those of writers and hot.
func (r *run) tenants(ctx context.Context) error {
	count := 0
	if r.wants("hot") {
		count = r.hotTenants
	} else if r.wants("writers") {
		count = 1
	}
	for range count {
		key, err := r.standalone.newTenant(ctx)
		if err != nil {
			return fmt.Errorf("make a tenant: %w", err)
		}
		r.others = append(r.others, key)
	}
	return nil
}

// underLoad reports whether operations are measured beside the baseline.
func (r *run) underLoad() bool {
	return r.wants(append(operationNames(), "open", "storm", "steady", "writers", "hot", "page")...)
}

// openSite makes an application in a deployment to measure it.
func (r *run) openSite(ctx context.Context, name string, d *deployment, accounts, logins int) (*site, error) {
	began := time.Now()
	s, err := openSite(name, d.key, d.roots)
	if err != nil {
		return nil, err
	}
	s.openID.Provider = r.openID.Provider
	if err := s.fill(ctx, accounts, logins); err != nil {
		return nil, fmt.Errorf("make the application to measure: %w", err)
	}
	if r.wants(delegated) {
		if s.ldap, err = startMirror(ctx, s, r.config.Bin, r.dir, logins, time.Minute); err == nil {
			r.atEnd(s.ldap.stop)
			_, err = s.ldap.synced(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("start a directory agent: %w", err)
		}
		s.roots = append(slices.Clone(s.roots), s.ldap.agent.PID())
	}
	log.Printf("made %d accounts and logged %d in, in %.1f s", accounts, logins, time.Since(began).Seconds())
	return s, nil
}

// open makes the application of standalone and starts the baseline.
func (r *run) open(ctx context.Context) (err error) {
	if !r.underLoad() {
		return nil
	}
	if r.site, err = r.openSite(ctx, "", r.standalone, r.Accounts, r.logins); err != nil {
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
	r.baseline, r.report.PostgreSQL = baseline, baseline.version
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
	return []turn{alone, t.compared(alone.name, aims{Rate: aim})}
}

func loggingIn(s *site) *turn {
	return &turn{operation: operation{name: "logins", do: find(operations, "login").do}, load: load{connections: 32}, site: s}
}

// operations measures all operations at their highest rate.
func (r *run) operations(ctx context.Context) (err error) {
	var other *site
	if file := os.Getenv("BENCH_PEER"); file != "" {
		if other, err = openPeer(file); err != nil {
			return err
		}
	}
	needed := map[string]bool{"bare": true, "row": true}
	chosen := false
	for _, o := range slices.Backward(operations) { // one that others are divided by stands before them
		forLatency := r.wants("open", "storm") && (o.name == "validate" || o.name == "get")
		forPeer := other != nil && (o.name == "validate" || o.name == "client")
		if r.wants(o.name) || needed[o.name] || forLatency || forPeer {
			needed[o.name], needed[o.over], chosen = true, true, true
		}
	}
	if !chosen {
		return nil
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
			if part.site == nil || part.site != other && !needed[o.name] {
				continue
			}
			t := r.turn(part.section, o, 0)
			t.site = part.site
			if t.site == r.apart {
				t = t.compared(o.name, aims{CPU: o.apart})
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
		measured := slices.IndexFunc(r.report.Rows, func(w row) bool { return w.Section == "operations" && w.Name == o.name })
		if measured < 0 {
			continue
		}
		t := r.turn("p99 at half of the highest rate", o, r.report.Rows[measured].Value.Median/2)
		if o.name == "validate" || o.name == "get" {
			beside := t
			beside.section, beside.beside = "the same beside 32 connections that log in", loggingIn(r.site)
			storm = append(storm, beside.andAlone("<= 3")...)
		}
		aim := aims{Rate: "< 10 ms"}
		if o.over == "hash" || o.over == "login" {
			aim.Rate = ""
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
	if !r.wants("steady") {
		return nil
	}
	return r.atFixedRate(ctx, "get at 500/s beside logins", "< 25 ms", r.site)
}

// atFixedRate measures account GET at 500 a second beside logins.
func (r *run) atFixedRate(ctx context.Context, name, aim string, s *site) error {
	t := r.turn("p99 at 500 a second beside 32 connections that log in", find(operations, "get"), 500).compared("", aims{Rate: aim})
	t.name, t.site, t.load.length, t.beside = name, s, r.steadyFor, loggingIn(s)
	return r.rounds(ctx, r.fewRounds, []turn{t})
}

// writers measures validation and account GET without and beside 50 writes a
// second: of one application while another tenant writes, and of many applications
// in many tenants, to which the writes go.
func (r *run) writers(ctx context.Context) error {
	if len(r.others) == 0 {
		return nil
	}
	hot, err := fillTenants(ctx, r.site, r.others, r.hotApplications)
	if err != nil {
		return fmt.Errorf("make applications in other tenants: %w", err)
	}
	log.Printf("made %d applications in %d tenants", len(hot), len(r.others))
	for _, part := range []struct {
		name, section, aim string
		readers, written   []*site
	}{
		{"writers", "beside 50 writes a second of another tenant", ">= 0.9", []*site{r.site}, hot[:r.hotApplications]},
		{"hot", fmt.Sprintf("of %d applications in %d tenants, beside 50 writes a second to them", len(hot), len(r.others)), ">= 0.95", hot, hot},
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
	if !r.wants("quota") {
		return nil
	}
	group, err := newCPUGroup()
	if err != nil {
		r.report.skip("quota", "control groups cannot be written here: "+err.Error())
		return nil
	}
	r.atEnd(func(context.Context) error { return group.remove() })
	config := r.in("quota")
	config.Bin = filepath.Join(r.dir, "quota-bin")
	if err := group.wrap(filepath.Join(r.config.Bin, "doorward"), config.Bin); err != nil {
		return fmt.Errorf("wrap the program: %w", err)
	}
	d, err := startDeployment(ctx, harness.StartStandalone, config)
	r.atEnd(d.stop)
	if err != nil {
		return err
	}
	s, err := openSite("", d.key, d.roots)
	if err == nil {
		s.openID.Provider = r.openID.Provider
		err = s.fill(ctx, r.logins, r.logins)
	}
	if err != nil {
		return err
	}
	return r.atFixedRate(ctx, "the same with a quota of one processor", "< 40 ms", s)
}

// rounds does every turn once in each round, so that a slow minute of the machine
// is shared by all. Each round begins with another one. It adds a row for each turn.
func (r *run) rounds(ctx context.Context, count int, turns []turn) error {
	type figures struct {
		values, cpu []float64
		sum         *outcome
		note        string
	}
	all := map[string]*figures{}
	for _, t := range turns {
		all[t.name] = &figures{sum: newOutcome()}
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
				value = o.millis(99)
			}
			f := all[t.name]
			f.values, f.cpu, f.note = append(f.values, value), append(f.cpu, o.cpu()), note
			f.sum.add(o)
		}
		log.Printf("round %d of %d", round+1, count)
	}
	for _, t := range turns {
		f := all[t.name]
		w := row{Section: t.section, Name: t.name, Unit: "/s", Over: t.over, Aims: t.aims, Note: f.note,
			Value: spreadOf(f.values), CPU: spreadOf(f.cpu)}
		if t.p99 {
			w.Unit = "ms"
		}
		if over := all[t.over]; over != nil {
			w.Ratio, w.CPURatio = ratio(f.values, over.values), ratio(f.cpu, over.cpu)
		}
		r.report.Rows = append(r.report.Rows, w.figures(f.sum))
	}
	return nil
}

// run measures the turn while what is beside it goes on, which the note is about.
func (t turn) run(ctx context.Context) (measured *outcome, note string, err error) {
	if t.setup != nil {
		if err := t.setup(t.site, t.load); err != nil {
			return nil, "", fmt.Errorf("%s: %w", t.name, err)
		}
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
