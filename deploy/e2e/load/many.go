package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// many measures one tenant alone, and again beside many others that have each sent
// requests.
func many(ctx context.Context, s *site, o options) error {
	print := func(when string) error {
		for kind, rate := range map[string]float64{"validate": 50, "get": 50, "login": 5} {
			var p50, p99 []float64
			for range o.rounds {
				found := s.send(ctx, o.length, stream{tenants: []*tenant{s.template}, mix: []string{kind}, rate: rate, most: 100})
				p50, p99 = append(p50, percentile(found.all(), 0.5)), append(p99, percentile(found.all(), 0.99))
				if failed := found.failed(); failed != "" {
					fmt.Println("    failures:", failed)
				}
			}
			fmt.Printf("%s: %-8s p50 %s ms, p99 %s ms; load average %s\n", when, kind, spread(p50), spread(p99), loadAverage())
		}
		return errors.Join(ctx.Err(), s.printMemory(when))
	}
	s.send(ctx, o.length, stream{tenants: []*tenant{s.template}, mix: share, rate: 20, most: 100})
	if err := errors.Join(s.restart(ctx, "one tenant"), print("one tenant")); err != nil {
		return err
	}
	began := time.Now()
	others, err := s.copies(ctx, 1, o.tenants)
	if err != nil {
		return err
	}
	progress("made %d tenants in %.1f s", o.tenants, time.Since(began).Seconds())
	when := fmt.Sprintf("%d tenants", o.tenants)
	if err := errors.Join(s.restart(ctx, when), print(when)); err != nil {
		return err
	}
	const rate = 200
	visited := s.send(ctx, time.Duration(float64(o.tenants)/rate*float64(time.Second)),
		stream{tenants: others, mix: []string{"get"}, rate: rate, most: 100})
	progress("each tenant has sent a request: %d of %d; failures: %s", len(visited.all()), visited.due, orNone(visited.failed()))
	return print(when + ", each seen")
}

// restart starts standalone again and says how long it took.
func (s *site) restart(ctx context.Context, when string) error {
	standalone, ok := s.shape.(*harness.Standalone)
	if !ok {
		return nil
	}
	if err := standalone.Stop(ctx); err != nil {
		return err
	}
	if err := standalone.Start(ctx); err != nil {
		return err
	}
	fmt.Printf("%s: start %.2f s\n", when, standalone.Boot.Seconds())
	return nil
}

// memory is the resident memory of the product's processes in MiB, by name. What
// they share counts for each of them.
func (s *site) memory() (map[string]float64, error) {
	found := map[string]float64{}
	all, err := procfs.AllProcs()
	if err != nil {
		return found, err
	}
	parents := map[int]procfs.ProcStat{}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil {
			parents[stat.PID] = stat
		}
	}
	for _, stat := range parents {
		if stat.PPID == self || parents[stat.PPID].PPID == self {
			found[stat.Comm] += float64(stat.ResidentMemory()) / (1 << 20)
		}
	}
	return found, nil
}

func (s *site) printMemory(when string) error {
	memory, err := s.memory()
	fmt.Printf("%s: memory in MiB, resident: %s\n", when, listed(memory, "%.0f"))
	return err
}
