// Command load is a load test with many tenants, standalone or distributed. It prints what
// the tenants saw and asserts nothing; docs/sizing.md has figures. deploy/bench measures
// one tenant.
//
//	make load                                        a noisy neighbour: one tenant at 50 times its share beside 50 others
//	make load LOAD=tenants LOAD_ARGS='-tenants 10000' one tenant alone, and beside 10,000 others
//	make load LOAD=soak LOAD_FOR=6h                  the same load for a long time: memory, tables, latencies
//
// traffic.go sends requests at a rate, tenantcopies.go copies a tenant in the database;
// noisy.go, tenants.go and soak.go are the measurements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetPrefix("load ")
	log.SetFlags(log.Ltime | log.Lmsgprefix)
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

// options are the flags of the command.
type options struct {
	mode    string
	tenants int
	share   float64 // requests of a tenant in a second
	times   float64 // how many shares the noisy tenant sends
	length  time.Duration
	rounds  int
	kinds   []string
	large   int // accounts of the noisy tenant
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return errors.New("usage: load noisy|tenants|soak [flags]")
	}
	measurements := map[string]func(context.Context, *system, options) error{"noisy": noisy, "tenants": manyTenants, "soak": soak}
	measure, known := measurements[args[0]]
	if !known {
		return fmt.Errorf("there is no measurement %q", args[0])
	}
	var o options
	flags := flag.NewFlagSet("load "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.mode, "shape", "standalone", "standalone, or distributed, which needs redis-server and Kafka")
	flags.IntVar(&o.tenants, "tenants", map[string]int{"noisy": 50, "tenants": 10_000, "soak": 50}[args[0]], "tenants beside the first")
	flags.Float64Var(&o.share, "share", 1, "requests of a tenant in a second")
	flags.Float64Var(&o.times, "times", 50, "shares that the noisy tenant sends")
	flags.DurationVar(&o.length, "for", map[string]time.Duration{"noisy": 20 * time.Second, "tenants": 10 * time.Second,
		"soak": 30 * time.Minute}[args[0]], "length of one run")
	flags.IntVar(&o.rounds, "rounds", 3, "how many times every run is repeated, in turns")
	kinds := flags.String("noise", "login,search,body,mail,render,get", "what the noisy tenant sends, one after the other")
	flags.IntVar(&o.large, "large", 50_000, "accounts of the noisy tenant")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	o.kinds = strings.Split(*kinds, ",")
	dir, remove, err := harness.TempFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	s, err := start(ctx, o.mode, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.deployment.Stop(context.WithoutCancel(ctx))) }()
	return measure(ctx, s, o)
}

// system is the system under test: a deployment that the command has started.
type system struct {
	deployment harness.Deployment
	client     *e2e.Client
	database   string
	master     string
	template   *tenant // the first tenant, of which the others are copies
}

// start starts a deployment with an application, a directory and an account. The rate
// limit of an address is off, because all load comes from one address.
func start(ctx context.Context, mode, dir string) (s *system, err error) {
	s = &system{}
	if s.deployment, err = harness.Start(ctx, mode, harness.Config{
		Dir: dir, OwnServers: true, Settings: []string{"DOORWARD_ADDRESS_RATE=0", "DOORWARD_ADDRESS_CONCURRENCY=1000"},
	}); err != nil {
		return nil, err
	}
	if s.database, s.master, err = s.deployment.Database(); err == nil {
		s.client, err = e2e.OpenClient(s.deployment.KeyFile())
	}
	if err == nil {
		s.client = s.client.Unchecked()
		s.template, err = s.makeTemplate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.deployment.Stop(ctx))
	}
	return s, nil
}

// medianAndRange is the median of rounds with the lowest and the highest value.
func medianAndRange(values []float64) string {
	return fmt.Sprintf("%.3g (%.3g to %.3g)", percentile(values, 0.5), percentile(values, 0), percentile(values, 1))
}

// loadAverage is the load average of the machine.
func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(raw))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
