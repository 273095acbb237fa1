package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// action sends the nth operation to a site.
type action func(s *site, c *connection, n uint64) error

// load is how one run is done.
type load struct {
	connections int
	rate        float64       // operations a second; 0: as many as are answered
	warm        time.Duration // before anything counts
	length      time.Duration // in which it counts
}

// outcome is what one run found. Only operations that succeeded have a latency:
// a fast refusal must not look like a fast service.
type outcome struct {
	latencies []time.Duration
	late      []time.Duration // by how much the generator missed its own schedule
	failures  map[string]int
	example   error // the first failure
	unsent    int   // operations of the schedule that found no free connection
	usage     usage
}

func (o *outcome) count(latency time.Duration, err error) {
	if err == nil {
		o.latencies = append(o.latencies, latency)
		return
	}
	o.add(&outcome{failures: map[string]int{kindOf(err): 1}, example: err})
}

func (o *outcome) add(other *outcome) {
	o.latencies, o.late = append(o.latencies, other.latencies...), append(o.late, other.late...)
	if o.failures == nil {
		o.failures = map[string]int{}
	}
	for kind, count := range other.failures {
		o.failures[kind] += count
	}
	if o.example == nil {
		o.example = other.example
	}
	o.unsent += other.unsent
	o.usage = o.usage.plus(other.usage, 1)
}

func (o *outcome) done() int { return len(o.latencies) }

// cpu is the processor time of one operation in microseconds.
func (o *outcome) cpu() float64 {
	if o.done() == 0 {
		return 0
	}
	return float64(o.usage.server().Microseconds()) / float64(o.done())
}

// failed is an error when no operation succeeded: to go on would measure nothing.
func (o *outcome) failed(name string) error {
	if o.done() > 0 || o.example == nil {
		return nil
	}
	return fmt.Errorf("%s: no operation succeeded (%s), for example: %w", name, counts(o.failures), o.example)
}

func counts(of map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d x %s", of[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// percentile is that of times in milliseconds, 0 of none.
func percentile(times []time.Duration, percent int) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[(len(sorted)*percent+99)/100-1]) / float64(time.Millisecond)
}

// run puts load on a site. Without a rate each connection sends as soon as it was
// answered, and an operation counts when it ends in the time that counts. With a
// rate the nth operation is due at a fixed time, and its latency counts from then,
// so that a stall shows in every operation that waited behind it. What could not be
// sent within a grace period after the end is unsent.
func (l load) run(ctx context.Context, s *site, do action) *outcome {
	var next atomic.Uint64
	var workers sync.WaitGroup
	begin, found := time.Now(), make([]outcome, l.connections)
	for i := range found {
		workers.Go(func() { l.work(ctx, s, do, begin, &next, &found[i]) })
	}
	from := begin.Add(l.warm)
	sum := &outcome{usage: usedBetween(ctx, s.measured(), from, from.Add(l.length))}
	workers.Wait()
	for i := range found {
		sum.add(&found[i])
	}
	return sum
}

// work is one connection of a run. The connections take numbers in turns.
func (l load) work(ctx context.Context, s *site, do action, begin time.Time, next *atomic.Uint64, o *outcome) {
	c := connect(s.tls, s.authorization)
	defer c.close()
	from := begin.Add(l.warm)
	until := from.Add(l.length)
	grace := until.Add(max(l.length/2, time.Second))
	for ctx.Err() == nil {
		n, due := next.Add(1)-1, time.Now()
		if l.rate > 0 {
			due = begin.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
			if !due.Before(until) {
				return
			}
			if time.Now().After(grace) {
				o.unsent++
				continue
			}
			if early := time.Until(due); early > 0 {
				time.Sleep(early)
				o.late = append(o.late, time.Since(due))
			}
		}
		err := do(s, c, n)
		ended := time.Now()
		if l.rate == 0 && ended.After(until) {
			return
		}
		if l.rate > 0 && !due.Before(from) || l.rate == 0 && !ended.Before(from) {
			o.count(ended.Sub(due), err)
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // a failure must not become a flood of failures
		}
	}
}
