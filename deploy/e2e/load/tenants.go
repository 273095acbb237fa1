package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// manyTenants measures one tenant alone, then beside many other tenants that exist, and again after
// each of those has sent a request.
func manyTenants(ctx context.Context, s *system, o options) error {
	report := func(when string) error {
		for kind, rate := range map[string]float64{"validate": 50, "get": 50, "login": 5} {
			var p50, p99, used []float64
			for range o.rounds {
				before := s.processorTime()
				found := s.send(ctx, o.length, stream{tenants: []*tenant{s.template}, mix: []string{kind}, rate: rate, maxInFlight: 100})
				used = append(used, 1e6*(s.processorTime()-before)/float64(found.Due()))
				p50, p99 = append(p50, percentile(found.all(), 0.5)), append(p99, percentile(found.all(), 0.99))
				if failed := found.failures(); failed != "none" {
					fmt.Println("    failures:", failed)
				}
			}
			fmt.Printf("%s: %-8s processor time %s µs, p50 %s ms, p99 %s ms; load average %s\n",
				when, kind, medianAndRange(used), medianAndRange(p50), medianAndRange(p99), loadAverage())
		}
		fmt.Printf("%s: memory in MiB, resident: %s\n", when, listed(s.memory(), "%.0f"))
		return ctx.Err()
	}
	s.send(ctx, o.length, stream{tenants: []*tenant{s.template}, mix: share, rate: 20, maxInFlight: 100})
	if err := errors.Join(s.restart(ctx, "one tenant"), report("one tenant")); err != nil {
		return err
	}
	began := time.Now()
	others, err := s.copyTenants(ctx, 1, o.tenants)
	if err != nil {
		return err
	}
	log.Printf("made %d tenants in %.1f s", o.tenants, time.Since(began).Seconds())
	when := fmt.Sprintf("%d tenants", o.tenants)
	if err := errors.Join(s.restart(ctx, when), report(when)); err != nil {
		return err
	}
	const rate = 200
	warmUp := s.send(ctx, time.Duration(float64(o.tenants)/rate*float64(time.Second)),
		stream{tenants: others, mix: []string{"get"}, rate: rate, maxInFlight: 100})
	log.Printf("each tenant has sent a request: %d of %d; failures: %s", warmUp.Done(), warmUp.Due(), warmUp.failures())
	return report(when + ", each seen")
}

// restart starts standalone again and says how long it took.
func (s *system) restart(ctx context.Context, when string) error {
	standalone, ok := s.deployment.(*harness.Standalone)
	if !ok {
		return nil
	}
	if err := standalone.Restart(ctx); err != nil {
		return err
	}
	fmt.Printf("%s: start %.2f s\n", when, standalone.Boot.Seconds())
	return nil
}

// memory is the resident memory (RSS) of the product's processes in MiB, by name. Shared
// pages count for each process.
func (s *system) memory() map[string]float64 {
	found := map[string]float64{}
	for _, stat := range processes() {
		found[stat.Comm] += float64(stat.ResidentMemory()) / (1 << 20)
	}
	return found
}

// processorTime is the processor time of the product's processes until now, in seconds.
func (s *system) processorTime() (seconds float64) {
	for _, stat := range processes() {
		seconds += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/100
	}
	return seconds
}

// processes are the descendants of this process.
func processes() []procfs.ProcStat {
	own := os.Getpid()
	return slices.DeleteFunc(harness.Processes(own), func(p procfs.ProcStat) bool { return p.PID == own })
}
