package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want*0.998 || got > want*1.002 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// always is an action that takes the same time whenever it is done.
func always(length time.Duration, err error) action {
	return func(*site, *connection, uint64) error { time.Sleep(length); return err }
}

func TestLoad(t *testing.T) {
	stalls := func(_ *site, _ *connection, n uint64) error {
		if n == 10 {
			return always(time.Second, nil)(nil, nil, n)
		}
		return always(time.Millisecond, nil)(nil, nil, n)
	}
	fails := func(_ *site, _ *connection, n uint64) error {
		return []action{
			always(time.Millisecond, refusal{503, "busy"}), always(time.Millisecond, errors.New("broken pipe")),
			always(90*time.Millisecond, nil), always(90*time.Millisecond, nil),
		}[n%4](nil, nil, n)
	}
	for name, try := range map[string]struct {
		load         load
		do           action
		done, unsent int
		failures     map[string]int
		percentiles  map[int]float64
	}{
		// 4 connections, ends at 0.3, 0.6, … 3.0 of 3.1 seconds
		"without a rate every operation that ends in the time counts": {
			load: load{connections: 4, warm: 100 * time.Millisecond, length: 3 * time.Second}, do: always(300*time.Millisecond, nil),
			done: 40, percentiles: map[int]float64{50: 300},
		},
		"failures have no latency and are counted by kind": {
			load: load{connections: 1, length: 1010 * time.Millisecond}, do: fails,
			done: 10, failures: map[string]int{"503": 5, "connection": 5}, percentiles: map[int]float64{1: 90},
		},
		"failures of all connections add up": {
			load: load{connections: 2, length: 1010 * time.Millisecond}, do: always(91*time.Millisecond, refusal{429, "too many"}),
			failures: map[string]int{"429": 20},
		},
		// What was due during the stall waited too: 991 ms, 982 ms, and so on, by
		// 9 ms less each, for 110 operations. A generator that counts from when it
		// sends would see one long operation and 1 ms here.
		"a stall shows in every operation that waited behind it": {
			load: load{connections: 1, rate: 100, length: 10 * time.Second}, do: stalls,
			done: 1000, percentiles: map[int]float64{50: 1, 90: 1000 - 9*100, 99: 1000 - 9*10, 100: 1000},
		},
		// Seven by each connection in four seconds and two of grace; what begins then ends.
		"what could not be sent is unsent": {
			load: load{connections: 2, rate: 10, length: 4 * time.Second}, do: always(900*time.Millisecond, nil),
			done: 14, unsent: 26, percentiles: map[int]float64{1: 900},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := try.load.run(t.Context(), &site{}, try.do)
				if o.done() != try.done || o.unsent != try.unsent || !maps.Equal(o.failures, try.failures) {
					t.Errorf("%d done, %d unsent, failures %v", o.done(), o.unsent, o.failures)
				}
				if failed := o.failed("script") != nil; failed != (try.done == 0) {
					t.Errorf("that no operation succeeded is an error: %v", failed)
				}
				for percent, want := range try.percentiles {
					near(t, "a percentile", percentile(o.latencies, percent), want)
				}
			})
		})
	}
}

func TestWithARateEachOperationIsSentWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sent []time.Duration
		subject := func(*site, *connection, uint64) error {
			sent = append(sent, time.Since(begin))
			time.Sleep(time.Millisecond)
			return nil
		}
		o := load{connections: 1, rate: 50, warm: time.Second, length: 2 * time.Second}.run(t.Context(), &site{}, subject)
		if o.done() != 100 || o.unsent != 0 { // 50 more during the warm-up
			t.Fatalf("%d operations count, %d unsent", o.done(), o.unsent)
		}
		for n, at := range sent {
			if want := time.Duration(n) * 20 * time.Millisecond; at != want {
				t.Fatalf("operation %d was sent at %s, want %s", n, at, want)
			}
		}
		if late := percentile(o.late, 100); late > 0.002 {
			t.Errorf("the generator was %g ms late", late)
		}
	})
}

func TestARatioComparesTheSameRounds(t *testing.T) {
	// The machine was fast in the second round, and the last one has no baseline.
	if got := ratios([]float64{10, 50, 30, 8}, []float64{100, 1000, 100, 0}); !slices.Equal(got, []float64{0.1, 0.05, 0.3}) {
		t.Errorf("the ratios are %v", got)
	}
	if got := ratios([]float64{1, 2}, []float64{0, 0}); got != nil {
		t.Errorf("the ratios to nothing are %v", got)
	}
}

func TestARowShowsTheMedianWithTheLowestAndTheHighest(t *testing.T) {
	for want, values := range map[string][]float64{
		"  ": nil, "3.00 3.00 3.00": {3}, "5.00 1.00 9.00": {9, 1, 5}, "2.50 1.00 4.00": {4, 1, 3, 2},
		"0.277 6.17e-05 31176": {0.2771, 0.0000617, 31176.4}, "104 31.2 200": {31.25, 104, 200},
	} {
		if got := strings.Join(cells(values), " "); got != want {
			t.Errorf("%v is shown as %q, want %q", values, got, want)
		}
	}
}
