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

	"github.com/HdrHistogram/hdrhistogram-go"
)

// subject is something that load is put on.
type subject struct {
	name    string
	pid     int // of its process; 0 where it is unknown
	connect func() (do func(n uint64) error, done func())
}

// load is how one run is done.
type load struct {
	connections int
	rate        float64       // operations a second; 0: as many as are answered
	warm        time.Duration // before anything counts
	length      time.Duration // in which it counts
	sleep       func(time.Duration)
}

// outcome is what one run found. Only operations that succeeded have a latency:
// a fast refusal must not look like a fast service.
type outcome struct {
	latencies *hdrhistogram.Histogram // in nanoseconds
	late      *hdrhistogram.Histogram // how much the generator missed its own schedule
	failures  map[string]int
	example   error // the first failure
	unsent    int   // operations of the schedule that found no free connection
	length    time.Duration
	usage     usage
}

func newOutcome(length time.Duration) *outcome {
	histogram := func() *hdrhistogram.Histogram {
		return hdrhistogram.New(100, int64(10*time.Minute), 3)
	}
	return &outcome{latencies: histogram(), late: histogram(), failures: map[string]int{}, length: length}
}

func (o *outcome) count(latency time.Duration, err error) {
	if err == nil {
		record(o.latencies, latency)
		return
	}
	o.failures[kindOf(err)]++
	if o.example == nil {
		o.example = err
	}
}

func (o *outcome) add(other *outcome) {
	o.latencies.Merge(other.latencies)
	o.late.Merge(other.late)
	for kind, count := range other.failures {
		o.failures[kind] += count
	}
	if o.example == nil {
		o.example = other.example
	}
	o.unsent += other.unsent
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), h.LowestTrackableValue()), h.HighestTrackableValue())) // it is within the limits
}

func (o *outcome) done() int { return int(o.latencies.TotalCount()) }

// perSecond is the rate of the operations that succeeded.
func (o *outcome) perSecond() float64 { return float64(o.done()) / o.length.Seconds() }

// millis is a percentile of the latencies in milliseconds, 0 without any.
func (o *outcome) millis(percentile float64) float64 { return millis(o.latencies, percentile) }

func millis(h *hdrhistogram.Histogram, percentile float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.ValueAtQuantile(percentile)) / float64(time.Millisecond)
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

// run puts load on the subject. Without a rate each connection sends as soon as
// it was answered, and an operation counts when it ends in the time that counts.
// With a rate the nth operation is due at a fixed time, and its latency counts
// from then, so that a stall shows in every operation that waited behind it.
// What could not be sent within a grace period after the end is unsent.
func (l load) run(ctx context.Context, s subject) (*outcome, error) {
	var (
		sum     = newOutcome(l.length)
		begin   = time.Now()
		from    = begin.Add(l.warm)
		until   = from.Add(l.length)
		grace   = until.Add(max(l.length/2, time.Second))
		next    atomic.Uint64
		workers sync.WaitGroup
		mu      sync.Mutex
	)
	work := func(own *outcome) {
		do, done := s.connect()
		defer done()
		for ctx.Err() == nil {
			n := next.Add(1) - 1
			due := time.Now()
			if l.rate > 0 {
				due = begin.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
				counts := !due.Before(from)
				if !due.Before(until) {
					return
				}
				if counts && time.Now().After(grace) {
					own.unsent++
					continue
				}
				if l.wait(due) && counts {
					record(own.late, time.Since(due))
				}
			}
			err := do(n)
			ended := time.Now()
			if l.rate == 0 && ended.After(until) {
				return
			}
			if l.rate > 0 && !due.Before(from) || l.rate == 0 && !ended.Before(from) {
				own.count(ended.Sub(due), err)
			}
			if err != nil {
				l.sleep(10 * time.Millisecond) // a failure must not become a flood of failures
			}
		}
	}
	for range l.connections {
		workers.Go(func() {
			own := newOutcome(0)
			work(own)
			mu.Lock()
			defer mu.Unlock()
			sum.add(own)
		})
	}
	used, err := usedBetween(ctx, s.pid, from, until)
	workers.Wait()
	sum.usage = used
	return sum, err
}

// wait sleeps until a time and reports whether it was still to come.
func (l load) wait(until time.Time) bool {
	left := time.Until(until)
	early := left > 0
	for ; left > 0; left = time.Until(until) {
		l.sleep(min(left, 100*time.Millisecond))
	}
	return early
}

// spread is the median of some rounds, with the lowest and the highest.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spreadOf returns zeros for no rounds.
func spreadOf(rounds []float64) spread {
	if len(rounds) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(rounds))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{median, sorted[0], sorted[len(sorted)-1]}
}

// ratio compares figures of the same rounds. A round in which the other is 0 is
// left out.
func ratio(rounds, others []float64) spread {
	var ratios []float64
	for i, value := range rounds {
		if others[i] > 0 {
			ratios = append(ratios, value/others[i])
		}
	}
	return spreadOf(ratios)
}
