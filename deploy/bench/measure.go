package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// stormConnections log in beside what is measured.
const stormConnections = 32

// run is one measurement.
type run struct {
	options
	dir, bin string
	d        *deployment
	site     *site
	baseline *baseline
	report   *report
	log      logger
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
	for _, part := range []func(context.Context) error{r.product, r.quota, r.idleDistributed} {
		if err := errors.Join(part(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	r.report.Took = time.Since(began).Seconds()
	return r.report, nil
}

// product measures all that is measured on one deployment.
func (r *run) product(ctx context.Context) (err error) {
	loaded := append([]string{"open", "storm", "steady", "writers"}, operationNames()...)
	if !r.wants(append(loaded, "starts", "idle", "memory", "scale")...) {
		return nil
	}
	if r.keyFile != "" {
		if r.d, err = runningDeployment(r.keyFile); err == nil && r.wants("starts", "idle", "memory", "writers", "quota") {
			r.report.skip("starts, idle, memory, writers, quota", "-apikey names a deployment that is not to be stopped, of unknown processes")
		}
	} else {
		err = r.starts(ctx)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.d.stop(ctx)) }()
	r.report.BaseURL = r.d.key.BaseURL
	if err := r.idleUsage(ctx); err != nil {
		return err
	}
	if r.wants(loaded...) {
		if err := r.compare(ctx); err != nil {
			return err
		}
	}
	if r.wants("memory") {
		r.memory("after load", "250")
	}
	if r.wants("scale") {
		return scale(ctx, r.options, r.d, r.report, r.log)
	}
	return nil
}

func operationNames() (names []string) {
	for _, o := range operations {
		names = append(names, o.name)
	}
	return names
}

// starts starts standalone several times from an empty folder and from a full
// one, and leaves the last one running.
func (r *run) starts(ctx context.Context) (err error) {
	if err := r.build(ctx, harness.StandalonePackages); err != nil {
		return err
	}
	cold, warm := r.coldN, r.warmN
	if !r.wants("starts") {
		cold, warm = 1, 0
	}
	var coldStarts, warmStarts []float64
	for n := range cold {
		if r.d != nil {
			if err := r.d.stop(ctx); err != nil {
				return err
			}
		}
		var took time.Duration
		if r.d, took, err = startStandalone(ctx, r.bin, filepath.Join(r.dir, "standalone"+strconv.Itoa(n))); err != nil {
			return err
		}
		coldStarts = append(coldStarts, took.Seconds())
	}
	for range warm {
		took, err := r.d.restart(ctx)
		if err != nil {
			return errors.Join(err, r.d.stop(ctx))
		}
		warmStarts = append(warmStarts, took.Seconds())
	}
	if r.wants("starts") {
		r.report.add(row{Section: "standalone", Name: "cold start", Unit: "s", Value: spreadOf(coldStarts), Aim: "< 5"},
			row{Section: "standalone", Name: "warm start", Unit: "s", Value: spreadOf(warmStarts), Aim: "< 1"})
	}
	r.log("started standalone: cold %.2f s, warm %.2f s", coldStarts, warmStarts)
	return nil
}

func (r *run) build(ctx context.Context, packages []string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	r.log("compiling")
	r.bin, err = harness.Build(ctx, r.dir, packages...)
	return err
}

// idle measures standalone while nothing is asked of it.
func (r *run) idleUsage(ctx context.Context) error {
	if r.d.pid == 0 || !r.wants("idle", "memory") {
		return nil
	}
	from := time.Now().Add(2 * time.Second) // after the work of a start
	if !r.wants("idle") {
		if err := await(ctx, from); err != nil {
			return err
		}
		r.memory("idle", "120")
		return nil
	}
	used, err := usedBetween(ctx, r.d.pid, from, from.Add(r.idle))
	if err != nil {
		return err
	}
	r.report.add(idleRow("idle CPU, PostgreSQL included", used.server, used.took, "< 1"))
	if r.wants("memory") {
		r.memory("idle", "120")
	}
	return nil
}

func idleRow(name string, used, took time.Duration, aim string) row {
	percent := 100 * used.Seconds() / took.Seconds()
	return row{Section: "standalone", Name: name, Unit: "% of a core", Value: spreadOf([]float64{percent}), Aim: aim}
}

func (r *run) memory(when, aim string) {
	if r.d.pid == 0 {
		return
	}
	mib, err := memory(r.d.pid)
	if err != nil {
		r.report.skip("memory "+when, err.Error())
		return
	}
	name := "memory " + when + ", PostgreSQL included"
	r.report.add(row{Section: "standalone", Name: name, Unit: "MiB PSS", Value: spreadOf([]float64{mib}), Aim: "< " + aim})
}

// compare measures operations beside the baseline.
func (r *run) compare(ctx context.Context) (err error) {
	var other e2e.Key
	if r.wants("writers") && r.d.standalone != nil {
		if other, err = r.d.secondTenant(ctx); err != nil {
			return fmt.Errorf("make a second tenant: %w", err)
		}
	}
	if r.site, err = openSite(ctx, r.d.key, r.d.pid); err != nil {
		return err
	}
	if err := r.site.fill(ctx, r.Accounts, r.logins, r.log); err != nil {
		return fmt.Errorf("make the application to measure: %w", err)
	}
	if r.d.standalone == nil {
		defer func() {
			err = errors.Join(err, r.site.delete(context.WithoutCancel(ctx), r.site.application, r.site.directory))
		}()
	}
	folder := filepath.Join(r.dir, "baseline")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the baseline's folder: %w", err)
	}
	if r.baseline, err = startBaseline(ctx, filepath.Join(folder, "postgres"), r.Accounts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.baseline.stop()) }()
	r.report.PostgreSQL = r.baseline.PostgreSQL
	rates, err := r.closed(ctx)
	if err != nil {
		return err
	}
	if r.wants("open") {
		for _, o := range operations {
			if rate := rates[o.name]; rate > 0 {
				if err := r.halfRate(ctx, o.name, rate/2); err != nil {
					return err
				}
			}
		}
	}
	if r.wants("storm") {
		if err := r.storm(ctx, rates); err != nil {
			return err
		}
	}
	if r.wants("steady") {
		if err := r.steady(ctx, "get at 500/s beside logins", "< 25 ms", r.site); err != nil {
			return err
		}
	}
	if other.ID != "" {
		return r.writers(ctx, other)
	}
	return nil
}

func (r *run) load(rate float64) load {
	return load{connections: r.Connections, rate: rate, warm: r.warm, length: r.Duration, sleep: sleep}
}

// rounds is what was found about one subject.
type rounds struct {
	rates []float64
	all   *outcome
}

// closed measures every baseline and every operation once in each round, each
// connection sending as soon as it was answered, so that a slow minute of the
// machine is shared by all. Each round begins with another one. It returns the
// median rates of the operations.
func (r *run) closed(ctx context.Context) (map[string]float64, error) {
	type turn struct {
		name string
		run  func() (*outcome, error)
	}
	var turns []turn
	needed := map[string]bool{"bare": true, "row": true}
	var wanted []operation
	for _, o := range operations {
		// The storm and the open loop need rates.
		if r.wants(o.name) || o.name == "validate" && r.wants("storm") || o.name == "get" && r.wants("storm") {
			wanted = append(wanted, o)
			needed[o.baseline] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	for _, o := range bareOperations {
		if needed[o.name] {
			turns = append(turns, turn{o.name, func() (*outcome, error) { return r.load(0).run(ctx, r.baseline.subject(o.name)) }})
		}
	}
	if needed["hash"] {
		turns = append(turns, turn{"hash", func() (*outcome, error) { return r.baseline.hashes(r.Duration) }})
	}
	for _, o := range wanted {
		turns = append(turns, turn{o.name, func() (*outcome, error) { return r.load(0).run(ctx, r.site.operation(o.name)) }})
	}
	all := map[string]*rounds{}
	for round := range r.Rounds {
		for n := range turns {
			turn := turns[(n+round)%len(turns)]
			o, err := turn.run()
			if err == nil {
				err = errors.Join(o.failed(turn.name), ctx.Err())
			}
			if err != nil {
				return nil, err
			}
			if all[turn.name] == nil {
				all[turn.name] = &rounds{all: newOutcome(0)}
			}
			all[turn.name].add(o)
		}
		r.log("round %d of %d", round+1, r.Rounds)
	}
	for _, o := range bareOperations {
		if found := all[o.name]; found != nil {
			r.report.add(row{Section: "bare handlers", Name: o.name, Unit: "/s", Value: spreadOf(found.rates)}.figures(found.all))
		}
	}
	if found := all["hash"]; found != nil {
		r.report.add(row{Section: "bare handlers", Name: "hash", Unit: "/s", Value: spreadOf(found.rates)}.figures(found.all))
	}
	rates := map[string]float64{}
	for _, o := range wanted {
		found := all[o.name]
		rates[o.name] = spreadOf(found.rates).Median
		r.report.add(row{Section: "operations", Name: o.name, Unit: "/s", Value: spreadOf(found.rates),
			Against: o.baseline, Ratio: ratio(found.rates, all[o.baseline].rates), Aim: o.aim}.figures(found.all))
	}
	return rates, nil
}

func (s *rounds) add(o *outcome) {
	s.rates = append(s.rates, o.perSecond())
	s.all.add(o)
	s.all.usage = s.all.usage.plus(o.usage)
}

// halfRate measures latencies at half of the highest rate.
func (r *run) halfRate(ctx context.Context, name string, rate float64) error {
	aim := "< 10 ms"
	if name == "login" || name == "create" {
		aim = ""
	}
	w := row{Section: "p99 at half of the highest rate", Name: name, Aim: aim}
	return r.latency(ctx, w, func() (*outcome, *outcome, error) {
		o, err := r.load(rate).run(ctx, r.site.operation(name))
		return o, nil, err
	})
}

// latency adds a row of the 99th percentiles of some rounds, and of their ratio
// to those of the same rounds without what is meant to disturb them.
func (r *run) latency(ctx context.Context, w row, round func() (during, without *outcome, err error)) error {
	all := newOutcome(0)
	var slow, quiet []float64
	for range r.fewRounds {
		during, without, err := round()
		if err == nil {
			err = errors.Join(during.failed(w.Name), ctx.Err())
		}
		if err != nil {
			return err
		}
		all.add(during)
		all.usage = all.usage.plus(during.usage)
		slow = append(slow, during.millis(99))
		if without != nil {
			quiet = append(quiet, without.millis(99))
		}
	}
	w.Unit, w.Value = "ms", spreadOf(slow)
	if len(quiet) > 0 {
		w.Against, w.Ratio = "without", ratio(slow, quiet)
	}
	w.Note = fmt.Sprintf("%d unsent; the generator was at most %.2f ms late in 99 of 100", all.unsent, millis(all.late, 99))
	r.report.add(w.figures(all))
	r.log("%s, %s: p99 %s ms", w.Section, w.Name, number(w.Value.Median))
	return nil
}

// beside measures a subject while another one is under load, from before its
// first request to after its last.
func beside(ctx context.Context, l load, s subject, other load, o subject) (measured, disturbing *outcome, err error) {
	other.warm, other.length = l.warm/2, l.warm+l.length*3/2
	var failure error
	var wait sync.WaitGroup
	wait.Go(func() { disturbing, failure = other.run(ctx, o) })
	measured, err = l.run(ctx, s)
	wait.Wait()
	if err = errors.Join(err, failure); err == nil {
		err = disturbing.failed(o.name)
	}
	return measured, disturbing, err
}

func (r *run) loginLoad() load {
	l := r.load(0)
	l.connections = stormConnections
	return l
}

// storm measures validation and account GET at half of their highest rate,
// without logins and beside connections that log in as fast as they are answered.
func (r *run) storm(ctx context.Context, rates map[string]float64) error {
	for _, name := range []string{"validate", "get"} {
		subject, l := r.site.operation(name), r.load(rates[name]/2)
		w := row{Section: "p99 at half of the highest rate beside logins", Name: name, Aim: "<= 3"}
		if err := r.latency(ctx, w, func() (*outcome, *outcome, error) {
			quiet, err := l.run(ctx, subject)
			if err != nil {
				return nil, nil, err
			}
			during, _, err := beside(ctx, l, subject, r.loginLoad(), r.site.operation("login"))
			return during, quiet, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// steady measures account GET at 500 a second beside logins.
func (r *run) steady(ctx context.Context, name, aim string, s *site) error {
	l := r.load(500)
	l.length = r.steadyDuration
	var logins []float64
	w := row{Section: "p99 at 500 a second beside 32 connections that log in", Name: name, Aim: aim}
	if err := r.latency(ctx, w, func() (*outcome, *outcome, error) {
		during, others, err := beside(ctx, l, s.operation("get"), r.loginLoad(), s.operation("login"))
		if err == nil {
			logins = append(logins, others.perSecond())
		}
		return during, nil, err
	}); err != nil {
		return err
	}
	last := &r.report.Rows[len(r.report.Rows)-1]
	last.Note = fmt.Sprintf("%.1f logins a second; %s", spreadOf(logins).Median, last.Note)
	return nil
}

// writers measures validation and account GET while another tenant creates and
// changes applications and organizations 50 times a second.
func (r *run) writers(ctx context.Context, key e2e.Key) error {
	s, err := openSite(ctx, key, r.d.pid)
	if err != nil {
		return err
	}
	next, err := s.writes()
	if err != nil {
		return err
	}
	write := func(_ *site, c *connection, n uint64) error { return c.send(next(n)) }
	subject, writing := s.subject("writers", write), load{connections: 4, rate: 50, sleep: sleep}
	for _, name := range []string{"validate", "get"} {
		var with, without []float64
		all := newOutcome(0)
		for round := range max(r.Rounds, 2) {
			quiet := func() error {
				o, err := r.load(0).run(ctx, r.site.operation(name))
				if err == nil {
					without = append(without, o.perSecond())
				}
				return err
			}
			during := func() error {
				o, others, err := beside(ctx, r.load(0), r.site.operation(name), writing, subject)
				if err == nil {
					with = append(with, o.perSecond())
					all.add(o)
					all.usage = all.usage.plus(o.usage)
					all.example = errors.Join(all.example, others.example)
				}
				return err
			}
			steps := []func() error{quiet, during}
			for i := range steps {
				if err := errors.Join(steps[(i+round)%2](), ctx.Err()); err != nil {
					return err
				}
			}
		}
		r.report.add(row{Section: "while another tenant writes 50 a second", Name: name, Unit: "/s", Value: spreadOf(with),
			Against: "without", Ratio: ratio(with, without), Aim: ">= 0.9"}.figures(all))
		r.log("%s beside writers: %s of the rate without", name, number(ratio(with, without).Median))
	}
	return nil
}

// writes makes an application and an organization and returns requests that
// change them and, every tenth time, create others.
func (s *site) writes() (func(n uint64) request, error) {
	c := s.connect()
	defer c.close()
	addresses := make([]string, 2)
	collections := []string{"/applications", "/organizations"}
	body := func(n uint64) e2e.Object {
		name := "writes " + s.run + " " + strconv.FormatUint(n, 10)
		return e2e.Object{"name": name, "description": name}
	}
	create := func(n uint64) request {
		b := body(n)
		if n%2 == 1 {
			b["nameKey"] = "writes-" + strconv.FormatUint(n, 10)
		}
		return postJSON(s.client.Key.BaseURL+collections[n%2], b, 201)
	}
	const first = 1 << 32 // of names that no request uses
	for i := range addresses {
		if err := c.send(create(first + uint64(i))); err != nil {
			return nil, fmt.Errorf("make something to change: %w", err)
		}
		var made e2e.Object
		if err := json.Unmarshal(c.response.Body(), &made); err != nil {
			return nil, err
		}
		addresses[i] = made.Href()
	}
	var created atomic.Uint64
	return func(n uint64) request {
		if n/2%10 == 0 {
			return create(2*created.Add(1) + n%2)
		}
		return postJSON(addresses[n%2], e2e.Object{"description": "change " + strconv.FormatUint(n, 10)}, 200)
	}, nil
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
	if r.bin == "" {
		if err := r.build(ctx, harness.StandalonePackages); err != nil {
			return err
		}
	}
	var d *deployment
	if err := group.start(func() error {
		d, _, err = startStandalone(ctx, r.bin, filepath.Join(r.dir, "quota"))
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop(ctx)) }()
	s, err := openSite(ctx, d.key, d.pid)
	if err != nil {
		return err
	}
	if err := s.fill(ctx, r.logins, r.logins, r.log); err != nil {
		return fmt.Errorf("fill the deployment with a quota: %w", err)
	}
	return r.steady(ctx, "the same with a quota of one processor", "< 40 ms", s)
}

// distributed measures the idle processes of the distributed shape.
func (r *run) idleDistributed(ctx context.Context) (err error) {
	if !r.Distributed {
		return nil
	}
	if err := r.build(ctx, harness.DistributedPackages); err != nil {
		return err
	}
	d, err := harness.StartDistributed(ctx, harness.Config{Dir: filepath.Join(r.dir, "distributed"), Bin: r.bin, Own: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop(context.WithoutCancel(ctx))) }()
	var pids []int
	for _, main := range harness.DistributedPackages {
		if name := path.Base(main); name != "mailbox" {
			pids = append(pids, d.Replica(name, 0).PID(), d.Replica(name, 1).PID())
		}
	}
	used := func() (product, all time.Duration, err error) {
		table, err := processes()
		for _, pid := range pids {
			product += table[pid].used
		}
		for _, pid := range table.tree(os.Getpid()) {
			all += table[pid].used
		}
		return product, all - table[os.Getpid()].used, err
	}
	if err := await(ctx, time.Now().Add(10*time.Second)); err != nil { // after the work of a start
		return err
	}
	began := time.Now()
	product, all, err := used()
	if err == nil {
		err = await(ctx, began.Add(r.idle))
	}
	if err != nil {
		return err
	}
	productAfter, allAfter, err := used()
	took := time.Since(began)
	r.report.add(idleRow("idle CPU, distributed: gateways and services", productAfter-product, took, "< 4"),
		idleRow("idle CPU, distributed: with PostgreSQL, Redis and Kafka", allAfter-all, took, ""))
	return err
}
