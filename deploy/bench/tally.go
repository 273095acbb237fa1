package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in nanoseconds, from a microsecond to ten minutes, with an
// error below one in a thousand. What is longer counts as the longest.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(10 * time.Minute)
	digits   = 3
)

// tally is the outcome of operations: one worker's, or the sum of many. Only
// operations that were answered as they should be have a latency: a fast
// refusal must not look like a fast service.
type tally struct {
	latencies *hdrhistogram.Histogram
	failures  map[string]int
	example   error // the first failure
}

func newTally() *tally {
	return &tally{latencies: hdrhistogram.New(shortest, longest, digits), failures: map[string]int{}}
}

func (t *tally) count(latency time.Duration, err error) {
	if err != nil {
		t.failures[kindOf(err)]++
		if t.example == nil {
			t.example = err
		}
		return
	}
	_ = t.latencies.RecordValue(min(max(int64(latency), shortest), longest)) // it is within the bounds
}

func (t *tally) add(other *tally) {
	t.latencies.Merge(other.latencies)
	for kind, count := range other.failures {
		t.failures[kind] += count
	}
	if t.example == nil {
		t.example = other.example
	}
}

func (t *tally) done() int { return int(t.latencies.TotalCount()) }

// Percentiles are latencies in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50Millis"`
	P90 float64 `json:"p90Millis"`
	P99 float64 `json:"p99Millis"`
	Max float64 `json:"maxMillis"`
}

// percentiles of nothing are all zero.
func percentiles(h *hdrhistogram.Histogram) Percentiles {
	if h.TotalCount() == 0 {
		return Percentiles{}
	}
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / float64(time.Millisecond) }
	return Percentiles{P50: at(50), P90: at(90), P99: at(99), Max: float64(h.Max()) / float64(time.Millisecond)}
}
