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
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// run is one measurement.
type run struct {
	options
	dir, bin                          string
	deployment                        *deployment // standalone, or one that runs already
	standalone, distributed, baseline *site
	others                            []e2e.Key // of the tenants of writers and hot
	report                            *report
	ends                              []func(context.Context) error // stop what was started, the last one first
}

// turn is what is measured once in each round, and a row of the report.
type turn struct {
	section, name string
	millis        bool   // the figure is the 99th percentile, not the rate
	over          string // name of another turn
	aims          aims
	load          load
	site          *site
	do            action
	beside        *turn // puts load from before the first operation to after the last
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
	defer func() { err = errors.Join(err, r.end(ctx)) }()
	for _, part := range []func(context.Context) error{
		r.compile, r.start, r.startDistributed, r.open, r.page, r.operations, r.latencies, r.steady, r.writers,
		r.memoryAfterLoad, r.scale, r.quota,
	} {
		if err := errors.Join(part(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	r.report.Took = time.Since(began).Seconds()
	return r.report, nil
}

func (r *run) atEnd(end func(context.Context) error) { r.ends = append(r.ends, end) }

// end stops all that was started, also when the run was interrupted.
func (r *run) end(ctx context.Context) (failures error) {
	for _, end := range slices.Backward(r.ends) {
		failures = errors.Join(failures, end(context.WithoutCancel(ctx)))
	}
	return failures
}

func (r *run) compile(ctx context.Context) (err error) {
	if r.keyFile != "" {
		return nil
	}
	packages := slices.Clone(harness.StandalonePackages)
	if r.Distributed {
		packages = append(packages, harness.DistributedPackages...)
	}
	log.Print("compiling")
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	r.bin, err = harness.Build(ctx, r.dir, packages...)
	return err
}

// start starts standalone several times from an empty folder and from a full one,
// and leaves the last one running. It measures it while it is idle.
func (r *run) start(ctx context.Context) (err error) {
	if r.keyFile != "" {
		r.deployment = &deployment{keyFile: r.keyFile}
		r.deployment.key, err = e2e.ReadKey(r.keyFile)
		if r.wants("starts", "idle", "memory", "writers", "hot", "quota") {
			r.report.skip("starts, idle, memory, writers, hot, quota", "-apikey names a deployment that is not to be stopped, of unknown processes")
		}
		return err
	}
	if len(r.Only) == 1 && r.wants("quota") {
		return nil
	}
	var cold, warm []float64
	for n := range r.cold {
		if n > 0 {
			if err := r.deployment.stop(ctx); err != nil {
				return err
			}
		}
		r.deployment, err = startDeployment(ctx, harness.StartStandalone, r.bin, filepath.Join(r.dir, "standalone"+strconv.Itoa(n)))
		if err != nil {
			return errors.Join(err, r.deployment.stop(ctx))
		}
		cold = append(cold, r.deployment.boot())
	}
	r.atEnd(r.deployment.stop)
	for range r.warm {
		if err := r.deployment.restart(ctx); err != nil {
			return err
		}
		warm = append(warm, r.deployment.boot())
	}
	log.Printf("started standalone: cold %.2f s, warm %.2f s", cold, warm)
	if r.wants("starts") {
		r.add("cold start", "s", "< 5", cold...)
		r.add("warm start", "s", "< 1", warm...)
	}
	if err := r.idle(ctx, "standalone with PostgreSQL", "< 1", r.deployment, 2*time.Second); err != nil {
		return err
	}
	r.memory("idle", "< 120")
	return r.tenants(ctx)
}

func (r *run) startDistributed(ctx context.Context) error {
	if !r.Distributed {
		return nil
	}
	d, err := startDeployment(ctx, harness.StartDistributed, r.bin, filepath.Join(r.dir, "distributed"))
	r.atEnd(d.stop)
	if err == nil {
		err = r.idle(ctx, "distributed", "< 4", d, 10*time.Second, "postgres", "redis-server", "java", "mailbox")
	}
	if err == nil && r.underLoad() {
		r.distributed, err = r.openSite(ctx, ", distributed", d, r.Accounts, r.logins)
	}
	return err
}

// add adds a row that is compared with nothing.
func (r *run) add(name, unit, aim string, values ...float64) *row {
	r.report.Rows = append(r.report.Rows, row{Section: "processes", Name: name, Unit: unit, Value: spreadOf(values), Aims: aims{Rate: aim}})
	return &r.report.Rows[len(r.report.Rows)-1]
}

// idle measures a deployment while nothing is asked of it, after the work of its
// start: the product's own processes, which have the aim, and the servers that it
// stands on.
func (r *run) idle(ctx context.Context, name, aim string, d *deployment, delay time.Duration, servers ...string) error {
	if !r.wants("idle") {
		return nil
	}
	from := time.Now().Add(delay)
	used, err := usedBetween(ctx, d.roots, from, from.Add(r.idleFor))
	if err != nil {
		return err
	}
	percent := func(of time.Duration) float64 { return 100 * of.Seconds() / used.took.Seconds() }
	own := used.server()
	for _, server := range servers {
		own -= used.servers[server]
	}
	r.add("idle CPU, "+name, "% of a core", aim, percent(own))
	if len(servers) > 0 {
		r.add("idle CPU, "+name+" with "+strings.Join(servers, ", "), "% of a core", "", percent(used.server()))
	}
	return nil
}

func (r *run) memory(when, aim string) {
	if !r.wants("memory") {
		return
	}
	mib, err := memory(r.deployment.roots)
	if err != nil {
		r.report.skip("memory "+when, err.Error())
		return
	}
	r.add("memory "+when+", standalone with PostgreSQL", "MiB PSS", aim, mib)
}

func (r *run) memoryAfterLoad(context.Context) error {
	if r.underLoad() && r.keyFile == "" {
		r.memory("after load", "< 250")
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
		key, err := r.deployment.newTenant(ctx)
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
	s, err := openSite(ctx, name, d.key)
	if err != nil {
		return nil, err
	}
	s.roots = d.roots
	if err := s.fill(ctx, accounts, logins); err != nil {
		return nil, fmt.Errorf("make the application to measure: %w", err)
	}
	log.Printf("made %d accounts and logged %d in, in %.1f s", accounts, logins, time.Since(began).Seconds())
	return s, nil
}

// open makes the application of standalone and starts the baseline.
func (r *run) open(ctx context.Context) (err error) {
	if !r.underLoad() {
		return nil
	}
	if r.standalone, err = r.openSite(ctx, "", r.deployment, r.Accounts, r.logins); err != nil {
		return err
	}
	if r.keyFile != "" {
		r.atEnd(func(ctx context.Context) error {
			return r.standalone.delete(ctx, r.standalone.application, r.standalone.directory, r.standalone.identity.directory)
		})
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

func (r *run) page(ctx context.Context) error {
	if !r.wants("page") {
		return nil
	}
	bytes, requests, err := r.standalone.pageWeight(ctx)
	w := r.add("sign-in page over the wire", "kB", "< 60", float64(bytes)/1000)
	w.Section, w.Note = "hosted pages", strconv.Itoa(requests)+" requests"
	return err
}

// load is that of one turn; without a rate each connection sends as soon as it was
// answered.
func (r *run) load(rate float64) load {
	return load{connections: r.Connections, rate: rate, warm: r.Duration / 8, length: r.Duration}
}

// operations measures all operations at their highest rate.
func (r *run) operations(ctx context.Context) (err error) {
	var peer *site
	if file := os.Getenv(peerEnv); file != "" {
		if peer, err = openPeer(ctx, file); err != nil {
			return err
		}
	}
	if !r.wants(append(operationNames(), "open", "storm")...) && peer == nil {
		return nil
	}
	needed := map[string]bool{"bare": true, "row": true}
	for _, o := range slices.Backward(operations) { // one that others are divided by stands before them
		forLatency := r.wants("open", "storm") && (o.name == "validate" || o.name == "get")
		forPeer := peer != nil && (o.name == "validate" || o.name == "client")
		if r.wants(o.name) || needed[o.name] || forLatency || forPeer {
			needed[o.name], needed[o.over] = true, true
		}
	}
	var turns []turn
	for _, part := range []struct {
		section string
		site    *site
		list    []operation
	}{
		{"bare handlers", r.baseline, bareOperations},
		{"operations", r.standalone, operations},
		{"distributed", r.distributed, operations},
		{"peer", peer, peerOperations},
	} {
		for _, o := range part.list {
			if part.site == nil || part.site != peer && !needed[o.name] {
				continue
			}
			t := turn{section: part.section, name: o.name + part.site.name, over: o.over, aims: o.aims, load: r.load(0), site: part.site, do: o.do}
			if part.site == r.distributed {
				t.over, t.aims = o.name, aims{CPU: o.apart}
			}
			turns = append(turns, t)
		}
	}
	return r.rounds(ctx, r.Rounds, turns)
}

// rounds does every turn once in each round, so that a slow minute of the machine
// is shared by all. Each round begins with another one. It adds a row for each turn.
func (r *run) rounds(ctx context.Context, count int, turns []turn) error {
	figures, cpu := map[string][]float64{}, map[string][]float64{}
	sums, notes := map[string]*outcome{}, map[string]string{}
	for round := range count {
		for n := range turns {
			t := turns[(n+round)%len(turns)]
			o, note, err := t.run(ctx)
			if err == nil {
				err = errors.Join(o.failed(t.name), ctx.Err())
			}
			if err != nil {
				return err
			}
			figure := float64(o.done()) / t.load.length.Seconds()
			if t.millis {
				figure = o.millis(99)
			}
			figures[t.name], cpu[t.name] = append(figures[t.name], figure), append(cpu[t.name], o.cpu())
			if sums[t.name] == nil {
				sums[t.name] = newOutcome()
			}
			sums[t.name].add(o)
			notes[t.name] = note
		}
		log.Printf("round %d of %d", round+1, count)
	}
	for _, t := range turns {
		w := row{Section: t.section, Name: t.name, Unit: "/s", Over: t.over, Aims: t.aims, Note: notes[t.name],
			Value: spreadOf(figures[t.name]), CPU: spreadOf(cpu[t.name])}
		if t.millis {
			w.Unit = "ms"
		}
		if t.over != "" {
			w.Ratio, w.CPURatio = ratio(figures[t.name], figures[t.over]), ratio(cpu[t.name], cpu[t.over])
		}
		r.report.Rows = append(r.report.Rows, w.figures(sums[t.name]))
	}
	return nil
}

// run measures the turn while what is beside it goes on, which the note is about.
func (t turn) run(ctx context.Context) (measured *outcome, note string, err error) {
	if t.beside == nil {
		measured, err = t.load.run(ctx, t.site, t.do)
		return measured, "", err
	}
	l := t.beside.load
	l.warm, l.length = t.load.warm/2, t.load.warm+t.load.length*3/2
	var others *outcome
	var failure error
	var wait sync.WaitGroup
	wait.Go(func() { others, failure = l.run(ctx, t.beside.site, t.beside.do) })
	measured, err = t.load.run(ctx, t.site, t.do)
	wait.Wait()
	if err = errors.Join(err, failure); err != nil {
		return nil, "", err
	}
	note = fmt.Sprintf("beside %.1f %s a second (failed: %s). ", float64(others.done())/l.length.Seconds(), t.beside.name,
		cmp.Or(counts(others.failures), "none"))
	return measured, note, others.failed(t.beside.name)
}

// andAlone returns the turn without what is beside it and the turn, divided by that.
func (t turn) andAlone() []turn {
	alone := t
	alone.name, alone.aims, alone.beside = t.name+" alone", aims{}, nil
	t.over = alone.name
	return []turn{alone, t}
}

func loggingIn(s *site) *turn {
	return &turn{name: "logins", load: load{connections: 32}, site: s, do: find(operations, "login").do}
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
		t := turn{section: "p99 at half of the highest rate", name: o.name, millis: true,
			load: r.load(r.report.Rows[measured].Value.Median / 2), site: r.standalone, do: o.do}
		if o.name == "validate" || o.name == "get" {
			beside := t
			beside.section, beside.aims, beside.beside = "the same beside 32 connections that log in", aims{Rate: "<= 3"}, loggingIn(r.standalone)
			storm = append(storm, beside.andAlone()...)
		}
		if o.over != "hash" && o.name != "hosted" {
			t.aims = aims{Rate: "< 10 ms"}
		}
		open = append(open, t)
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
	return r.atFixedRate(ctx, "get at 500/s beside logins", "< 25 ms", r.standalone)
}

// atFixedRate measures account GET at 500 a second beside logins.
func (r *run) atFixedRate(ctx context.Context, name, aim string, s *site) error {
	l := r.load(500)
	l.length = r.steadyFor
	return r.rounds(ctx, r.fewRounds, []turn{{section: "p99 at 500 a second beside 32 connections that log in", name: name,
		millis: true, aims: aims{Rate: aim}, load: l, site: s, do: find(operations, "get").do, beside: loggingIn(s)}})
}

// writers measures validation and account GET without and beside 50 writes a
// second: of one application while another tenant writes, and of many applications
// in many tenants, to which the writes go.
func (r *run) writers(ctx context.Context) error {
	if len(r.others) == 0 {
		return nil
	}
	hot, err := fillHot(ctx, r.standalone, r.others, r.hotApplications)
	if err != nil {
		return fmt.Errorf("make applications in other tenants: %w", err)
	}
	log.Printf("made %d applications in %d tenants", len(hot), len(r.others))
	for _, part := range []struct {
		name, section, aim string
		readers, written   []*site
	}{
		{"writers", "beside 50 writes a second of another tenant", ">= 0.9", []*site{r.standalone}, hot[:r.hotApplications]},
		{"hot", fmt.Sprintf("of %d applications in %d tenants, beside 50 writes a second to them", len(hot), len(r.others)), ">= 0.95", hot, hot},
	} {
		if !r.wants(part.name) {
			continue
		}
		writing := &turn{name: "writes", load: load{connections: 4, rate: 50}, site: r.standalone, do: writes(part.written)}
		var turns []turn
		for _, name := range []string{"validate", "get"} {
			turns = append(turns, turn{section: part.section, name: name, aims: aims{Rate: part.aim}, load: r.load(0), site: r.standalone,
				do: ofAll(part.readers, find(operations, name).do), beside: writing}.andAlone()...)
		}
		if err := r.rounds(ctx, max(r.Rounds, 2), turns); err != nil {
			return err
		}
	}
	return nil
}

// quota measures a standalone of its own in a control group with one processor.
func (r *run) quota(ctx context.Context) error {
	if !r.wants("quota") || r.keyFile != "" {
		return nil
	}
	group, err := newCPUGroup()
	if err != nil {
		r.report.skip("quota", "control groups cannot be written here: "+err.Error())
		return nil
	}
	r.atEnd(func(context.Context) error { return group.remove() })
	var d *deployment
	err = group.start(func() error {
		d, err = startDeployment(ctx, harness.StartStandalone, r.bin, filepath.Join(r.dir, "quota"))
		r.atEnd(d.stop)
		return err
	})
	if err != nil {
		return err
	}
	s, err := r.openSite(ctx, "", d, r.logins, r.logins)
	if err != nil {
		return err
	}
	return r.atFixedRate(ctx, "the same with a quota of one processor", "< 40 ms", s)
}
