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
	"github.com/doorward/doorward/deploy/e2e/loadgen"
	"github.com/doorward/doorward/pkg/providertest"
)

// run is one run of the program.
type run struct {
	options
	dir                               string
	config                            harness.Config // of every deployment
	openID                            *providertest.Provider
	standalone, distributed, baseline *system
	report                            *report
	pending                           []*measurement                // of the next rounds
	cleanups                          []func(context.Context) error // stop what was started, the last one first
}

// measurement is load that is measured once in each round. Its figures are a row of the
// report: the rate, or with a rate of the load the 99th percentile of its latency.
type measurement struct {
	*row
	operation  operation
	system     *system
	load       loadgen.Load
	background *background // nil: none
}

// background is other load on the system, which goes on from before the first operation
// of a measurement to after the last.
type background struct {
	name string
	do   action
	load loadgen.Load // how long follows from the measurement
}

// measure measures everything that -only names and leaves nothing running. An error
// beside a report says what did not stop well.
func measure(ctx context.Context, o options) (report *report, err error) {
	dir, remove, err := harness.TempFolder()
	if err != nil {
		return nil, err
	}
	r := &run{options: o, dir: dir, report: newReport(o)}
	r.atEnd(func(context.Context) error { return remove() })
	defer func() {
		for _, cleanup := range slices.Backward(r.cleanups) {
			err = errors.Join(err, cleanup(context.WithoutCancel(ctx)))
		}
	}()
	steady := func(ctx context.Context) error {
		return r.steady(ctx, r.standalone, "get at 500/s beside logins", "< 25 ms")
	}
	needApplication := append(productOperationNames(),
		"open", "storm", "steady", "waiting", "writers", "hot", "saves", "page")
	for _, part := range []struct {
		do    func(context.Context) error
		names []string // of -only; nil: always
	}{
		{r.start, nil}, {r.fill, needApplication}, {r.page, []string{"page"}}, {r.operations, productOperationNames()},
		{r.open, []string{"open"}}, {r.storm, []string{"storm"}}, {steady, []string{"steady"}},
		{r.waiting, []string{"waiting"}}, {r.memoryAfterLoad, []string{"memory"}},
		{r.writers, []string{"writers", "hot", "saves"}}, {r.sync, []string{"sync"}}, {r.scale, []string{"scale"}},
		{r.quota, []string{"quota"}},
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

func (r *run) atEnd(cleanup func(context.Context) error) { r.cleanups = append(r.cleanups, cleanup) }

// start compiles the product, starts standalone several times from an empty folder
// (cold) and from a full one (warm), and leaves the last one running. It measures the
// deployments while they are idle.
func (r *run) start(ctx context.Context) (err error) {
	packages := append([]string{"./services/agent/cmd/agent"}, harness.StandalonePackages...)
	if r.options.distributed {
		packages = append(packages, harness.DistributedPackages...)
	}
	log.Print("compiling")
	r.config = harness.Config{OwnServers: true, Settings: slices.Clone(productSettings)}
	if r.config.Bin, err = harness.Build(ctx, r.dir, packages...); err != nil {
		return err
	}
	if err := r.startOpenIDProvider(); err != nil {
		return err
	}
	var cold, warm []float64
	for n := range r.coldStarts {
		if n > 0 {
			err = r.standalone.Stop(ctx)
		}
		if err == nil {
			r.standalone, err = r.deploy(ctx, "standalone", "", "standalone"+strconv.Itoa(n), r.config)
		}
		if err != nil {
			return err
		}
		cold = append(cold, r.standalone.Deployment.(*harness.Standalone).Boot.Seconds())
	}
	for range r.warmStarts {
		if err := r.standalone.restart(ctx); err != nil {
			return err
		}
		warm = append(warm, r.standalone.Deployment.(*harness.Standalone).Boot.Seconds())
	}
	log.Printf("started standalone: cold %.2f s, warm %.2f s", cold, warm)
	if r.wants("starts") {
		r.report.add("processes", "cold start", "s", "< 5", cold...)
		r.report.add("processes", "warm start", "s", "< 1", warm...)
	}
	if r.wants("idle", "memory") {
		waitUntilIdle(ctx)
	}
	r.idle(ctx, "standalone with PostgreSQL", "< 1", r.standalone)
	if r.wants("memory") {
		r.memory("processes", "memory idle, standalone with PostgreSQL", "< 120", r.standalone.processes)
	}
	if !r.options.distributed {
		return nil
	}
	if r.distributed, err = r.deploy(ctx, "distributed", ", distributed", "distributed", r.config); err == nil &&
		r.wants("idle") {
		waitUntilIdle(ctx)
		r.idle(ctx, "distributed", "< 4", r.distributed, "postgres", "redis-server", "java", "mailbox")
	}
	return err
}

// deploy starts a deployment in a folder of its own until the end of the run.
func (r *run) deploy(ctx context.Context, mode, rowSuffix, folder string, config harness.Config) (*system, error) {
	var deployed harness.Deployment
	config.Dir = filepath.Join(r.dir, folder)
	processes, err := startedBy(func() (err error) {
		deployed, err = harness.Start(ctx, mode, config)
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
	s := newSystem(rowSuffix, client, processes)
	s.Deployment, s.openID.Provider = deployed, r.openID
	return s, nil
}

// waitUntilIdle waits until standalone has returned the memory that it does not need
// when idle, and PostgreSQL has ended the sessions that nothing uses.
func waitUntilIdle(ctx context.Context) { waitUntil(ctx, time.Now().Add(30*time.Second)) }

// idle measures the processor time of an idle deployment: that of the product's own
// processes, which has the aim, and that with the servers that it stands on.
func (r *run) idle(ctx context.Context, name, aim string, s *system, servers ...string) {
	if !r.wants("idle") {
		return
	}
	used := usageBetween(ctx, s.processes, time.Now(), time.Now().Add(r.idleFor))
	percent := func(part time.Duration) float64 { return 100 * part.Seconds() / used.took.Seconds() }
	own := used.measured()
	for _, server := range servers {
		own -= used.processes[server]
	}
	r.report.add("processes", "idle CPU, "+name, "% of a core", aim, percent(own))
	if len(servers) > 0 {
		r.report.add("processes", fmt.Sprintf("idle CPU, %s with %s", name, servers), "% of a core", "",
			percent(used.measured()))
	}
}

func (r *run) memory(section, name, aim string, processes []int) {
	mib, err := memory(processes)
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
	r.memory("processes", "memory at the end of load, standalone with PostgreSQL", "", r.standalone.processes)
	waitUntilIdle(ctx)
	r.memory("processes", "memory after load, standalone with PostgreSQL", "< 250", r.standalone.processes)
	return nil
}

// fill makes the applications to measure and starts the baseline.
func (r *run) fill(ctx context.Context) error {
	if err := errors.Join(r.fillSystem(ctx, r.standalone), r.fillSystem(ctx, r.distributed)); err != nil {
		return err
	}
	return r.startBaseline(ctx)
}

// fillSystem makes the application to measure in a deployment; nil: in none.
func (r *run) fillSystem(ctx context.Context, s *system) (err error) {
	if s == nil {
		return nil
	}
	started := time.Now()
	if err = s.addApplication(ctx, r.accounts, r.logins); err != nil {
		return fmt.Errorf("make the application to measure: %w", err)
	}
	log.Printf("made %d accounts and logged %d in, in %.1f s", r.accounts, r.logins, time.Since(started).Seconds())
	if r.wants(delegated) {
		s.ldap, err = r.startLDAPDirectory(ctx, s, r.logins, time.Minute)
	}
	return err
}

// add adds a measurement to the next rounds. What the load leaves open is as the flags say.
func (r *run) add(section string, s *system, o operation, l loadgen.Load) *measurement {
	l.Workers, l.Length = r.connections, cmp.Or(l.Length, r.duration)
	l.WarmUp = cmp.Or(l.WarmUp, r.duration/8)
	m := &measurement{row: r.report.add(section, o.name+s.rowSuffix, "/s", ""), operation: o, system: s, load: l}
	if l.Rate > 0 {
		m.unit = "ms"
	}
	r.pending = append(r.pending, m)
	return m
}

// addPair adds an operation on a system alone and with background load, whose figures are divided
// by those of the first.
func (r *run) addPair(section string, s *system, o operation, l loadgen.Load, b *background, aim string) {
	alone := r.add(section, s, operation{name: o.name + " alone", do: o.do}, l)
	beside := r.add(section, s, o, l)
	beside.reference, beside.rateAim, beside.background = alone.row, aim, b
}

// logins is background load of 32 connections that log in.
func logins() *background {
	return &background{"logins", productOperation("login").do, loadgen.Load{Workers: 32}}
}

// operations measures all operations at their highest rate.
func (r *run) operations(ctx context.Context) (err error) {
	var peer *system
	if r.peer != "" {
		if peer, err = openPeer(ctx, r.peer); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		section string
		system  *system
		list    []operation
	}{
		{"bare handlers", r.baseline, baselineOperations}, {"operations", r.standalone, productOperations},
		{"distributed", r.distributed, productOperations}, {"peer", peer, peerOperations},
	} {
		for _, o := range part.list {
			if part.system == nil || !r.wants(o.name) {
				continue
			}
			m := r.add(part.section, part.system, o, loadgen.Load{})
			m.reference, m.rateAim, m.cpuAim = r.report.row(o.ratioTo), o.rateAim, o.cpuAim
			if part.system == r.distributed {
				m.reference, m.rateAim, m.cpuAim = r.report.row(o.name), "", o.distributedAim
			}
		}
	}
	return r.rounds(ctx, r.options.rounds)
}

// halfRate is half of the highest rate of an operation; 0 where it was not measured, or
// the machine was too busy.
func (r *run) halfRate(name string) loadgen.Load {
	if measured := r.report.row(name); measured != nil {
		return loadgen.Load{Rate: median(measured.values) / 2}
	}
	return loadgen.Load{}
}

// open measures operations at half of their highest rate (open loop).
func (r *run) open(ctx context.Context) error {
	for _, o := range productOperations {
		if half := r.halfRate(o.name); half.Rate > 0 {
			m := r.add("p99 at half of the highest rate", r.standalone, o, half)
			if o.ratioTo != "hash" && o.ratioTo != "login" {
				m.rateAim = "< 10 ms"
			}
		}
	}
	return r.rounds(ctx, r.fewRounds)
}

// storm measures reads at half of their highest rate beside logins.
func (r *run) storm(ctx context.Context) error {
	const section = "p99 at half of the highest rate beside 32 connections that log in"
	for _, name := range []string{"validate", "get"} {
		if half := r.halfRate(name); half.Rate > 0 {
			r.addPair(section, r.standalone, productOperation(name), half, logins(), "<= 3")
		}
	}
	return r.rounds(ctx, r.fewRounds)
}

// steady measures reads of a system at a fixed rate beside logins.
func (r *run) steady(ctx context.Context, s *system, name, aim string) error {
	const section = "p99 at 500 a second beside 32 connections that log in"
	m := r.add(section, s, operation{name: name, do: productOperation("get").do},
		loadgen.Load{Rate: 500, Length: r.steadyFor})
	m.rateAim, m.background = aim, logins()
	return r.rounds(ctx, r.fewRounds)
}

// waiting measures logins and reads at a fixed rate without and beside 200 logins at a
// provider that accepts connections and never answers.
func (r *run) waiting(ctx context.Context) error {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = silent.Close() }()
	login, err := r.standalone.silentProviderLogin(ctx, "https://"+silent.Addr().String())
	if err != nil {
		return fmt.Errorf("make a directory of a provider that never answers: %w", err)
	}
	for name, rate := range map[string]float64{"login": 5, "get": 100} {
		o := operation{name: fmt.Sprintf("%s at %.0f/s", name, rate), do: productOperation(name).do}
		r.addPair("p99 beside 200 logins at a provider that never answers", r.standalone, o,
			loadgen.Load{Rate: rate, WarmUp: 3 * time.Second, Length: 3 * r.steadyFor},
			&background{"of these logins", login, loadgen.Load{Workers: 200}}, "")
	}
	return r.rounds(ctx, r.fewRounds)
}

// writers measures reads without and beside 50 writes a second: of one application while
// another tenant writes, and (hot) of many applications in many tenants, to which the
// writes go.
func (r *run) writers(ctx context.Context) error {
	tenants := 1
	if r.wants("hot", "saves") {
		tenants = r.hotTenants
	}
	var applications []*system
	for range tenants {
		made, err := r.standalone.newTenant(ctx, r.hotApplications)
		if err != nil {
			return fmt.Errorf("make a tenant: %w", err)
		}
		applications = append(applications, made...)
	}
	if err := r.standalone.restart(ctx); err != nil {
		return err
	}
	log.Printf("made %d applications in %d tenants", len(applications), tenants)
	hotSection := fmt.Sprintf("of %d applications in %d tenants, beside 50 writes a second to them", len(applications),
		tenants)
	for _, part := range []struct {
		name, section, aim string
		read, written      []*system
	}{
		{"writers", "beside 50 writes a second of another tenant", ">= 0.9", []*system{r.standalone},
			applications[:r.hotApplications]},
		{"hot", hotSection, ">= 0.95", applications, applications},
	} {
		if !r.wants(part.name) {
			continue
		}
		writes := &background{"writes", inTurns(part.written, (*system).write), loadgen.Load{Workers: 4, Rate: 50}}
		for _, name := range []string{"validate", "get"} {
			o := operation{name: name, do: inTurns(part.read, productOperation(name).do)}
			r.addPair(part.section, r.standalone, o, loadgen.Load{}, writes, part.aim)
		}
		if err := r.rounds(ctx, max(r.options.rounds, 2)); err != nil {
			return err
		}
	}
	if r.wants("saves") {
		return r.saves(ctx, applications)
	}
	return nil
}

// saves measures validations without and beside 50 saves of whole accounts a second: of accounts whose
// tokens come all the time, of many applications in turns, and of accounts that come seldom.
func (r *run) saves(ctx context.Context, hot []*system) error {
	var seldom, apart []*system
	for n := 0; n < len(hot); n += r.hotApplications { // the first application of each tenant
		seldom = append(seldom, hot[n])
	}
	seldom = seldom[:min(50, len(seldom))]
	if r.distributed != nil { // which has one tenant
		for range seldom {
			made := *newSystem(r.distributed.rowSuffix, r.distributed.client, r.distributed.processes)
			if err := made.addApplication(ctx, 1, 0); err != nil {
				return err
			}
			apart = append(apart, &made)
		}
	}
	if err := errors.Join(addTokenHolders(ctx, seldom, r.seldomAccounts), addTokenHolders(ctx, apart, r.seldomAccounts)); err != nil {
		return fmt.Errorf("make accounts that come seldom: %w", err)
	}
	const section = "beside 50 saves of whole accounts a second"
	save := (*system).saveAccount
	add := func(s *system, name string, do action, written []*system) {
		saves := &background{"saves", inTurns(written, save), loadgen.Load{Workers: 4, Rate: 50}}
		r.addPair(section, s, operation{name: "validate, " + name, do: do}, loadgen.Load{}, saves, ">= 0.95")
	}
	validate := productOperation("validate").do
	r.add(section, r.standalone, operation{name: "save alone, at 50/s", do: save}, loadgen.Load{Rate: 50})
	add(r.standalone, "one application", validate, []*system{r.standalone})
	add(r.standalone, "many applications", inTurns(hot, validate), hot)
	add(r.standalone, "seldom", visits(seldom), seldom)
	if r.distributed != nil {
		r.add(section, r.distributed, operation{name: "save alone, at 50/s", do: save}, loadgen.Load{Rate: 50})
		add(r.distributed, "one application", validate, []*system{r.distributed})
		add(r.distributed, "seldom", visits(apart), apart)
	}
	return r.rounds(ctx, max(r.options.rounds, 2))
}

// quota repeats steady on a standalone of its own in a control group with one processor.
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
		err = r.fillSystem(ctx, s)
	}
	if err != nil {
		return err
	}
	return r.steady(ctx, s, "the same with a quota of one processor", "< 40 ms")
}

// rounds makes every pending measurement once in each round, so that a slow minute of
// the machine is shared by all. Each round begins with another measurement.
func (r *run) rounds(ctx context.Context, count int) error {
	pending := r.pending
	r.pending = nil
	for round := range count {
		for n := range pending {
			if err := errors.Join(pending[(n+round)%len(pending)].measure(ctx), ctx.Err()); err != nil {
				return err
			}
		}
		log.Printf("round %d of %d", round+1, count)
	}
	return nil
}

// measure adds the figures of one round, and a note about the background load.
func (m *measurement) measure(ctx context.Context) error {
	if m.operation.prepare != nil {
		m.operation.prepare(m.system, m.load)
	}
	var wait sync.WaitGroup
	var others *outcome
	if b := m.background; b != nil {
		b.load.WarmUp, b.load.Length = m.load.WarmUp/2, m.load.WarmUp+m.load.Length*3/2
		wait.Go(func() { others = send(ctx, b.load, m.system, b.do) })
	}
	found := send(ctx, m.load, m.system, m.operation.do)
	wait.Wait()
	value := float64(found.Done()) / m.load.Length.Seconds()
	if m.load.Rate > 0 {
		value = loadgen.Percentile(found.All(), 99)
	}
	m.values, m.cpu = append(m.values, value), append(m.cpu, found.cpu())
	m.sum.add(found)
	if others == nil {
		return found.failed(m.name)
	}
	b := m.background
	m.note = fmt.Sprintf("beside %.1f %s a second (failed: %s). ", float64(others.Done())/b.load.Length.Seconds(), b.name,
		cmp.Or(others.FailuresText(), "none"))
	return errors.Join(found.failed(m.name), others.failed(b.name))
}
