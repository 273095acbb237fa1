// Package loadgen is the load generator: workers that send operations, at a rate (open loop) or each
// as soon as it was answered (closed loop), and the count of what came back. deploy/bench and
// deploy/e2e/load measure with it; the load of the end-to-end tests, which runs beside faults and
// upgrades (e2e.Load), is sent by it.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Load is how operations are sent.
type Load struct {
	Workers int           // each sends one operation after the other
	Rate    float64       // operations a second; 0: each worker sends as soon as it was answered
	WarmUp  time.Duration // before anything counts
	Length  time.Duration // in which it counts; 0: until the context ends
	Grace   time.Duration // after that, in which operations are sent that were due before
	Pause   time.Duration // of a worker after a failure, which must not become a flood of failures
}

// Operation sends the nth operation. It returns its kind, or an empty text where there is one kind
// only. An error that is a Failure is counted under its kind.
type Operation func(n uint64) (kind string, err error)

// Failure is an error with a name under which it is counted, such as the status of an answer.
type Failure interface {
	error
	Kind() string
}

// Outcome is what came back. Only operations that succeeded have a latency: a fast refusal must not
// look like a fast service.
type Outcome struct {
	Latencies map[string][]time.Duration // by kind of operation
	Late      []time.Duration            // by how much the generator missed its own schedule
	Failures  map[string]int             // by kind of operation and of failure
	Example   error                      // the first failure
	Unsent    int                        // operations of the schedule that found no free worker
}

// Count adds an operation.
func (o *Outcome) Count(kind string, latency time.Duration, err error) {
	if err != nil {
		o.Add(&Outcome{Failures: map[string]int{strings.TrimSpace(kind + " " + failureKind(err)): 1}, Example: err})
		return
	}
	if o.Latencies == nil {
		o.Latencies = map[string][]time.Duration{}
	}
	o.Latencies[kind] = append(o.Latencies[kind], latency)
}

// Add adds the operations of another outcome.
func (o *Outcome) Add(other *Outcome) {
	if o.Latencies == nil {
		o.Latencies = map[string][]time.Duration{}
	}
	if o.Failures == nil {
		o.Failures = map[string]int{}
	}
	for kind, latencies := range other.Latencies {
		o.Latencies[kind] = append(o.Latencies[kind], latencies...)
	}
	for kind, count := range other.Failures {
		o.Failures[kind] += count
	}
	o.Late = append(o.Late, other.Late...)
	if o.Example == nil {
		o.Example = other.Example
	}
	o.Unsent += other.Unsent
}

// All returns the latencies of all kinds.
func (o *Outcome) All() []time.Duration {
	return slices.Concat(slices.Collect(maps.Values(o.Latencies))...)
}

// Done returns how many operations succeeded.
func (o *Outcome) Done() (count int) {
	for _, latencies := range o.Latencies {
		count += len(latencies)
	}
	return count
}

// Due returns how many operations were to be sent.
func (o *Outcome) Due() int {
	due := o.Done() + o.Unsent
	for _, count := range o.Failures {
		due += count
	}
	return due
}

// FailuresText lists the failures; it is empty where there are none.
func (o *Outcome) FailuresText() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(o.Failures)) {
		parts = append(parts, fmt.Sprintf("%d x %s", o.Failures[kind], kind))
	}
	return strings.Join(parts, ", ")
}

func failureKind(err error) string {
	var failure Failure
	var network interface{ Timeout() bool }
	switch {
	case errors.As(err, &failure):
		return failure.Kind()
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	}
	return "connection"
}

// Percentile returns that of times, in milliseconds; 0 where there are no times.
func Percentile(times []time.Duration, percent int) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[(len(sorted)*percent+99)/100-1]) / float64(time.Millisecond)
}

// Run sends operations. open makes the operation of a worker, and what the worker closes at its end.
// Without a rate an operation counts when it ends in the time that counts. With a rate the nth
// operation is due at a fixed time, and its latency counts from then, so that a stall shows in every
// operation that waited behind it (no coordinated omission).
func (l Load) Run(ctx context.Context, open func() (do Operation, done func())) *Outcome {
	var next atomic.Uint64
	var workers sync.WaitGroup
	begin, outcomes := time.Now(), make([]Outcome, l.Workers)
	for i := range outcomes {
		workers.Go(func() {
			do, done := open()
			defer done()
			l.work(ctx, do, begin, &next, &outcomes[i])
		})
	}
	workers.Wait()
	sum := &Outcome{}
	for i := range outcomes {
		sum.Add(&outcomes[i])
	}
	return sum
}

// work is one worker. The workers take the numbers of operations from next.
func (l Load) work(ctx context.Context, do Operation, begin time.Time, next *atomic.Uint64, o *Outcome) {
	from := begin.Add(l.WarmUp)
	until := from.Add(l.Length)
	for ctx.Err() == nil {
		n, due := next.Add(1)-1, time.Now()
		if l.Rate > 0 {
			due = begin.Add(time.Duration(float64(n) / l.Rate * float64(time.Second)))
			if !due.Before(until) {
				return
			}
			if time.Now().After(until.Add(l.Grace)) {
				o.Unsent++
				continue
			}
			if early := time.Until(due); early > 0 {
				time.Sleep(early)
				o.Late = append(o.Late, time.Since(due))
			}
		}
		kind, err := do(n)
		ended := time.Now()
		if l.Rate == 0 && l.Length > 0 && ended.After(until) {
			return
		}
		if l.Rate > 0 && !due.Before(from) || l.Rate == 0 && !ended.Before(from) {
			o.Count(kind, ended.Sub(due), err)
		}
		if err != nil {
			time.Sleep(l.Pause)
		}
	}
}
