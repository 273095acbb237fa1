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

// action sends the nth operation to a system.
type action func(s *system, c *connection, n uint64) error

// load is how operations are sent in one measurement.
type load struct {
	connections int
	rate        float64       // operations a second; 0: each connection sends as soon as it was answered
	warmUp      time.Duration // before anything counts
	length      time.Duration // in which it counts
}

// outcome is what one measurement found. Only operations that succeeded have a latency:
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
	o.add(&outcome{failures: map[string]int{failureKind(err): 1}, example: err})
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

// done is how many operations succeeded.
func (o *outcome) done() int { return len(o.latencies) }

// cpu is the processor time of one operation in microseconds; 0 where none succeeded.
func (o *outcome) cpu() float64 {
	if o.done() == 0 {
		return 0
	}
	return float64(o.usage.measured().Microseconds()) / float64(o.done())
}

// failed is an error when no operation succeeded: to go on would measure nothing.
func (o *outcome) failed(name string) error {
	if o.done() > 0 || o.example == nil {
		return nil
	}
	return fmt.Errorf("%s: no operation succeeded (%s), for example: %w", name, countsText(o.failures), o.example)
}

func countsText(counts map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d x %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// percentile is that of times, in milliseconds; 0 where there are no times.
func percentile(times []time.Duration, percent int) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[(len(sorted)*percent+99)/100-1]) / float64(time.Millisecond)
}

// run puts load on a system. Without a rate each connection sends as soon as it was
// answered (closed loop), and an operation counts when it ends in the time that counts.
// With a rate (open loop) the nth operation is due at a fixed time, and its latency
// counts from then, so that a stall shows in every operation that waited behind it
// (no coordinated omission). What could not be sent within a grace period after the
// end is unsent.
func (l load) run(ctx context.Context, s *system, do action) *outcome {
	var next atomic.Uint64
	var workers sync.WaitGroup
	begin, outcomes := time.Now(), make([]outcome, l.connections)
	for i := range outcomes {
		workers.Go(func() { l.runConnection(ctx, s, do, begin, &next, &outcomes[i]) })
	}
	from := begin.Add(l.warmUp)
	sum := &outcome{usage: usageBetween(ctx, s.measuredProcesses(), from, from.Add(l.length))}
	workers.Wait()
	for i := range outcomes {
		sum.add(&outcomes[i])
	}
	return sum
}

// runConnection sends operations over one connection. The connections take the numbers of operations from next.
func (l load) runConnection(ctx context.Context, s *system, do action, begin time.Time, next *atomic.Uint64, o *outcome) {
	c := connect(s.tls, s.authorization)
	defer c.close()
	from := begin.Add(l.warmUp)
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
