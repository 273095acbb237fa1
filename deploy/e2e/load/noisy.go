package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"sync"
)

// noisy measures the noisy neighbour: it sends the shares of many tenants, without and
// with one tenant that sends many times its share of one kind, in turns.
func noisy(ctx context.Context, s *system, o options) error {
	others, err := s.copyTenants(ctx, 1, o.tenants)
	if err != nil {
		return err
	}
	for _, t := range others {
		if err := s.getToken(ctx, t); err != nil {
			return err
		}
	}
	noisyTenant := s.template
	if err := s.addAccounts(ctx, noisyTenant, o.large); err != nil {
		return err
	}
	log.Printf("%d tenants at %.3g requests a second, one at %.3g with %d accounts", o.tenants, o.share, o.share*o.times, o.large)
	all := stream{tenants: others, mix: share, rate: o.share * float64(o.tenants), maxInFlight: 500}
	s.send(ctx, o.length/2, all) // fills caches and pools
	for _, kind := range o.kinds {
		if kind == "render" {
			if err := s.enlargeTemplate(ctx, noisyTenant); err != nil {
				return fmt.Errorf("change the template of the noisy tenant: %w", err)
			}
		}
		var kept, slower, alone, beside []float64
		var failed, noiseText string
		byKind := map[string][]float64{}
		for round := range o.rounds {
			var without, with, noise outcome
			for turn := range 2 {
				if (turn+round)%2 == 0 { // neither is always the first
					without = s.send(ctx, o.length, all)
					continue
				}
				var both sync.WaitGroup
				both.Go(func() { with = s.send(ctx, o.length, all) })
				both.Go(func() {
					noise = s.send(ctx, o.length, stream{
						tenants: []*tenant{noisyTenant}, mix: []string{kind}, rate: o.share * o.times, maxInFlight: 100,
					})
				})
				both.Wait()
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			kept = append(kept, with.throughput()/without.throughput())
			alone, beside = append(alone, percentile(without.all(), 0.99)), append(beside, percentile(with.all(), 0.99))
			slower = append(slower, beside[round]/alone[round])
			for kind := range with.Latencies {
				byKind[kind] = append(byKind[kind], percentile(with.of(kind), 0.99)/percentile(without.of(kind), 0.99))
			}
			failed = with.failures()
			noiseText = fmt.Sprintf("%.0f %% of %d, p50 %.0f ms, %s",
				100*noise.throughput(), noise.Due(), percentile(noise.all(), 0.5), noise.failures())
			log.Printf("%s, round %d: throughput %.3f, p99 %.0f ms alone, %.0f ms beside", kind, round+1, kept[round], alone[round], beside[round])
		}
		fmt.Printf("noise %-8s throughput kept %s; p99 ratio %s, alone %s ms, beside %s ms; failures: %s\n",
			kind, medianAndRange(kept), medianAndRange(slower), medianAndRange(alone), medianAndRange(beside), failed)
		fmt.Printf("    p99 ratio of%s\n    noisy tenant: %s; load average %s\n", ratios(byKind), noiseText, loadAverage())
	}
	return nil
}

// ratios lists the ratios of each kind of request.
func ratios(byKind map[string][]float64) (text string) {
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		text += " " + kind + " " + medianAndRange(byKind[kind])
	}
	return text
}
