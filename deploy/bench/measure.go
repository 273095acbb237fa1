package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	dir, bin    string
	d           *deployment // standalone, or one that runs already
	standalone  *site
	distributed *site
	baseline    *site
	report      *report
	log         logger
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

// measure makes the whole measurement and leaves nothing running.
func measure(ctx context.Context, o options, log logger) (report *report, err error) {
	began := time.Now()
	dir, remove, err := harness.Folder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := &run{options: o, dir: dir, report: newReport(o, began), log: log}
	if r.keyFile == "" {
		packages := harness.StandalonePackages
		if r.Distributed {
			packages = append(packages[:len(packages):len(packages)], harness.DistributedPackages...)
		}
		log("compiling")
		limited, cancel := context.WithTimeout(ctx, 15*time.Minute)
		defer cancel()
		if r.bin, err = harness.Build(limited, dir, packages...); err != nil {
			return nil, err
		}
	}
	for _, part := range []func(context.Context) error{r.product, r.quota} {
		if err := errors.Join(part(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	r.report.Took = time.Since(began).Seconds()
	return r.report, nil
}

// product measures all that is measured on one standalone and what is beside it.
func (r *run) product(ctx context.Context) (err error) {
	if len(r.Only) == 1 && r.wants("quota") {
		return nil
	}
	if r.keyFile != "" {
		r.d = &deployment{keyFile: r.keyFile}
		r.d.key, err = e2e.ReadKey(r.keyFile)
		if r.wants("starts", "idle", "memory", "writers", "hot", "quota") {
			r.report.skip("starts, idle, memory, writers, hot, quota", "-apikey names a deployment that is not to be stopped, of unknown processes")
		}
	} else {
		err = r.starts(ctx)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.d.stop(ctx)) }()
	if err := r.idle(ctx, "standalone with PostgreSQL", "< 1", r.d, 2*time.Second); err != nil {
		return err
	}
	if err := r.memory("idle", "< 120"); err != nil {
		return err
	}
	var others []e2e.Key
	if r.wants("hot", "writers") && r.d.shape != nil {
		if others, err = r.tenants(ctx); err != nil {
			return err
		}
	}
	var distributed *deployment
	if r.Distributed {
		if distributed, err = startDistributed(ctx, r.bin, filepath.Join(r.dir, "distributed")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, distributed.stop(ctx)) }()
		if err := r.idle(ctx, "distributed", "< 4", distributed, 10*time.Second, "postgres", "redis-server", "java", "mailbox"); err != nil {
			return err
		}
	}
	if r.wants(append(operationNames(), "open", "storm", "steady", "writers", "hot", "page")...) {
		if err := r.underLoad(ctx, distributed, others); err != nil {
			return err
		}
		if err := r.memory("after load", "< 250"); err != nil {
			return err
		}
	}
	if r.wants("scale") {
		return scale(ctx, r.options, r.d, r.report, r.log)
	}
	return nil
}

// starts starts standalone several times from an empty folder and from a full
// one, and leaves the last one running.
func (r *run) starts(ctx context.Context) (err error) {
	var took time.Duration
	var cold, warm []float64
	for n := range r.cold {
		if r.d != nil {
			if err := r.d.stop(ctx); err != nil {
				return err
			}
		}
		if r.d, took, err = startStandalone(ctx, r.bin, filepath.Join(r.dir, "standalone"+strconv.Itoa(n))); err != nil {
			return err
		}
		cold = append(cold, took.Seconds())
	}
	for range r.warm {
		if took, err = r.d.restart(ctx); err != nil {
			return errors.Join(err, r.d.stop(ctx))
		}
		warm = append(warm, took.Seconds())
	}
	if r.wants("starts") {
		r.add("cold start", "s", "< 5", cold...)
		r.add("warm start", "s", "< 1", warm...)
	}
	r.log("started standalone: cold %.2f s, warm %.2f s", cold, warm)
	return nil
}

// add adds a row that is compared with nothing.
func (r *run) add(name, unit, aim string, values ...float64) *row {
	r.report.Rows = append(r.report.Rows, row{Section: "processes", Name: name, Unit: unit, Value: spreadOf(values), Aims: aims{Rate: aim}})
	return &r.report.Rows[len(r.report.Rows)-1]
}

// idle measures a deployment while nothing is asked of it, after the work of its
// start: the product's own processes, which have the aim, and the servers that it
// stands on.
func (r *run) idle(ctx context.Context, name, aim string, d *deployment, rest time.Duration, servers ...string) error {
	if len(d.roots) == 0 || !r.wants("idle") {
		return nil
	}
	from := time.Now().Add(rest)
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

func (r *run) memory(when, aim string) error {
	if len(r.d.roots) == 0 || !r.wants("memory") {
		return nil
	}
	mib, err := memory(r.d.roots)
	if err != nil {
		r.report.skip("memory "+when, err.Error())
		return nil
	}
	r.add("memory "+when+", standalone with PostgreSQL", "MiB PSS", aim, mib)
	return nil
}

// tenants makes those of writers and hot.
func (r *run) tenants(ctx context.Context) (keys []e2e.Key, err error) {
	count := 1
	if r.wants("hot") {
		count = r.hotTenants
	}
	for range count {
		key, err := r.d.newTenant(ctx)
		if err != nil {
			return nil, fmt.Errorf("make a tenant: %w", err)
		}
		keys = append(keys, key)
	}
	r.log("made %d tenants", count)
	return keys, nil
}

// open makes an application in a deployment to measure it.
func (r *run) open(ctx context.Context, name string, d *deployment, accounts, logins int) (*site, error) {
	began := time.Now()
	s, err := openSite(ctx, name, d.key)
	if err != nil {
		return nil, err
	}
	s.roots = d.roots
	if err := s.fill(ctx, accounts, logins); err != nil {
		return nil, fmt.Errorf("make the application to measure: %w", err)
	}
	r.log("made %d accounts and logged %d in, in %.1f s", accounts, logins, time.Since(began).Seconds())
	return s, nil
}

// underLoad measures operations beside the baseline.
func (r *run) underLoad(ctx context.Context, distributed *deployment, others []e2e.Key) (err error) {
	if r.standalone, err = r.open(ctx, "", r.d, r.Accounts, r.logins); err != nil {
		return err
	}
	if r.d.shape == nil {
		defer func() {
			err = errors.Join(err, r.standalone.delete(context.WithoutCancel(ctx), r.standalone.application, r.standalone.directory,
				r.standalone.identity.directory))
		}()
	}
	if distributed != nil {
		if r.distributed, err = r.open(ctx, ", distributed", distributed, r.Accounts, r.logins); err != nil {
			return err
		}
	}
	folder := filepath.Join(r.dir, "baseline")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the baseline's folder: %w", err)
	}
	baseline, stop, err := startBaseline(ctx, folder, r.Accounts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	r.baseline, r.report.PostgreSQL = baseline, baseline.version
	if r.wants("page") {
		bytes, requests, err := r.standalone.pageWeight(ctx)
		if err != nil {
			return err
		}
		w := r.add("sign-in page over the wire", "kB", "< 60", float64(bytes)/1000)
		w.Section, w.Note = "hosted pages", strconv.Itoa(requests)+" requests"
	}
	rates, err := r.operations(ctx)
	if err != nil {
		return err
	}
	if err := r.latencies(ctx, rates); err != nil {
		return err
	}
	if r.wants("steady") {
		if err := r.steady(ctx, "get at 500/s beside logins", "< 25 ms", r.standalone); err != nil {
			return err
		}
	}
	return r.writers(ctx, others)
}

func (r *run) load(rate float64) load {
	return load{connections: r.Connections, rate: rate, warm: r.Duration / 8, length: r.Duration}
}

// operations measures all operations, each connection sending as soon as it was
// answered. It returns the median rates.
func (r *run) operations(ctx context.Context) (map[string]float64, error) {
	peer, err := r.openPeer(ctx)
	if err != nil {
		return nil, err
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
	add := func(section string, s *site, list []operation, change func(*turn, operation)) {
		for _, o := range list {
			if s == nil || section != "peer" && !needed[o.name] {
				continue
			}
			t := turn{section: section, name: o.name + s.name, over: o.over, aims: o.aims, load: r.load(0), site: s, do: o.do}
			if change != nil {
				change(&t, o)
			}
			turns = append(turns, t)
		}
	}
	add("bare handlers", r.baseline, bareOperations, nil)
	add("operations", r.standalone, operations, nil)
	add("distributed", r.distributed, operations, func(t *turn, o operation) { t.over, t.aims = o.name, aims{CPU: o.apart} })
	add("peer", peer, peerOperations, nil)
	if !r.wants(append(operationNames(), "open", "storm")...) && peer == nil {
		return nil, nil
	}
	return r.rounds(ctx, r.Rounds, turns)
}

func (r *run) openPeer(ctx context.Context) (*site, error) {
	file := os.Getenv(peerEnv)
	if file == "" {
		return nil, nil
	}
	s, err := openPeer(ctx, file)
	if err == nil {
		s.name = ", " + s.name
	}
	return s, err
}

// rounds does every turn once in each round, so that a slow minute of the machine
// is shared by all. Each round begins with another one. It adds a row for each turn
// and returns the medians of the figures.
func (r *run) rounds(ctx context.Context, count int, turns []turn) (map[string]float64, error) {
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
				return nil, err
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
		r.log("%s: round %d of %d", turns[0].section, round+1, count)
	}
	medians := map[string]float64{}
	for _, t := range turns {
		medians[t.name] = spreadOf(figures[t.name]).Median
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
	return medians, nil
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

func (r *run) loggingIn(s *site) *turn {
	l := r.load(0)
	l.connections = 32
	return &turn{name: "logins", load: l, site: s, do: find(operations, "login").do}
}

// latencies measures operations at half of their highest rate, and some of them
// beside logins.
func (r *run) latencies(ctx context.Context, rates map[string]float64) error {
	var open, storm []turn
	for _, o := range operations {
		if rates[o.name] == 0 {
			continue
		}
		t := turn{section: "p99 at half of the highest rate", name: o.name, millis: true, load: r.load(rates[o.name] / 2),
			site: r.standalone, do: o.do, aims: aims{Rate: "< 10 ms"}}
		if o.over == "hash" || o.name == "hosted" {
			t.aims = aims{}
		}
		open = append(open, t)
		if o.name == "validate" || o.name == "get" {
			t.section, t.name, t.aims = "the same beside 32 connections that log in", o.name+" alone", aims{}
			storm = append(storm, t)
			t.name, t.over, t.aims, t.beside = o.name, t.name, aims{Rate: "<= 3"}, r.loggingIn(r.standalone)
			storm = append(storm, t)
		}
	}
	if r.wants("open") {
		if _, err := r.rounds(ctx, r.fewRounds, open); err != nil {
			return err
		}
	}
	if r.wants("storm") {
		_, err := r.rounds(ctx, r.fewRounds, storm)
		return err
	}
	return nil
}

// steady measures account GET at 500 a second beside logins.
func (r *run) steady(ctx context.Context, name, aim string, s *site) error {
	l := r.load(500)
	l.length = r.steadyFor
	_, err := r.rounds(ctx, r.fewRounds, []turn{{section: "p99 at 500 a second beside 32 connections that log in", name: name,
		millis: true, aims: aims{Rate: aim}, load: l, site: s, do: find(operations, "get").do, beside: r.loggingIn(s)}})
	return err
}

// writers measures validation and account GET without and beside 50 writes a
// second: of one application while another tenant writes, and of many applications
// in many tenants, to which the writes go.
func (r *run) writers(ctx context.Context, others []e2e.Key) error {
	if len(others) == 0 {
		return nil
	}
	hot, err := fillHot(ctx, r.standalone, others, r.hotApplications)
	if err != nil {
		return fmt.Errorf("make applications in other tenants: %w", err)
	}
	r.log("made %d applications in %d tenants", len(hot), len(others))
	measure := func(section, aim string, to []*site, of func(action) action) error {
		writing := &turn{name: "writes", load: load{connections: 4, rate: 50}, site: r.standalone, do: writes(to)}
		var turns []turn
		for _, name := range []string{"validate", "get"} {
			t := turn{section: section, name: name + " alone", load: r.load(0), site: r.standalone, do: of(find(operations, name).do)}
			turns = append(turns, t)
			t.name, t.over, t.aims, t.beside = name, t.name, aims{Rate: aim}, writing
			turns = append(turns, t)
		}
		_, err := r.rounds(ctx, max(r.Rounds, 2), turns)
		return err
	}
	if r.wants("writers") {
		err := measure("beside 50 writes a second of another tenant", ">= 0.9", hot[:r.hotApplications], func(do action) action { return do })
		if err != nil {
			return err
		}
	}
	if r.wants("hot") {
		section := fmt.Sprintf("of %d applications in %d tenants, beside 50 writes a second to them", len(hot), len(others))
		return measure(section, ">= 0.95", hot, func(do action) action { return ofAll(hot, do) })
	}
	return nil
}

// quota measures a standalone of its own in a control group with one processor.
func (r *run) quota(ctx context.Context) (err error) {
	if !r.wants("quota") || r.keyFile != "" {
		return nil
	}
	group, err := newCPUGroup()
	if err != nil {
		r.report.skip("quota", "control groups cannot be written here: "+err.Error())
		return nil
	}
	defer func() { err = errors.Join(err, group.remove()) }()
	var d *deployment
	if err := group.start(func() error {
		d, _, err = startStandalone(ctx, r.bin, filepath.Join(r.dir, "quota"))
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop(ctx)) }()
	s, err := r.open(ctx, "", d, r.logins, r.logins)
	if err != nil {
		return err
	}
	return r.steady(ctx, "the same with a quota of one processor", "< 40 ms", s)
}
