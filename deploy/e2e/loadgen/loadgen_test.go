package loadgen

import (
	"context"
	"errors"
	"maps"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// always is an operation that takes the same time whenever it is done.
func always(length time.Duration, err error) Operation {
	return func(uint64) (string, error) { time.Sleep(length); return "", err }
}

// status is a failure of a kind.
type status string

func (s status) Error() string { return "the answer is " + string(s) }

func (s status) Kind() string { return string(s) }

// run runs a load as deploy/bench does.
func run(t *testing.T, l Load, do Operation) *Outcome {
	l.Grace, l.Pause = max(l.Length/2, time.Second), 10*time.Millisecond
	return l.Run(t.Context(), func() (Operation, func()) { return do, func() {} })
}

func TestLoad(t *testing.T) {
	stalls := func(n uint64) (string, error) {
		if n == 10 {
			return always(time.Second, nil)(n)
		}
		return always(time.Millisecond, nil)(n)
	}
	fails := func(n uint64) (string, error) {
		return []Operation{
			always(time.Millisecond, status("503")), always(time.Millisecond, errors.New("broken pipe")),
			always(90*time.Millisecond, nil), always(90*time.Millisecond, nil),
		}[n%4](n)
	}
	for name, try := range map[string]struct {
		load         Load
		do           Operation
		done, unsent int
		failures     map[string]int
		percentiles  map[int]float64
	}{
		// 4 connections, ends at 0.3, 0.6, … 3.0 of 3.1 seconds
		"without a rate every operation that ends in the time counts": {
			load: Load{Workers: 4, WarmUp: 100 * time.Millisecond, Length: 3 * time.Second}, do: always(300*time.Millisecond, nil),
			done: 40, percentiles: map[int]float64{50: 300},
		},
		"failures have no latency and are counted by kind": {
			load: Load{Workers: 1, Length: 1010 * time.Millisecond}, do: fails,
			done: 10, failures: map[string]int{"503": 5, "connection": 5}, percentiles: map[int]float64{1: 90},
		},
		"failures of all connections add up": {
			load: Load{Workers: 2, Length: 1010 * time.Millisecond}, do: always(91*time.Millisecond, status("429")),
			failures: map[string]int{"429": 20},
		},
		// What was due during the stall waited too: 991 ms, 982 ms, and so on, by
		// 9 ms less each, for 110 operations. A generator that counts from when it
		// sends would see one long operation and 1 ms here.
		"a stall shows in every operation that waited behind it": {
			load: Load{Workers: 1, Rate: 100, Length: 10 * time.Second}, do: stalls,
			done: 1000, percentiles: map[int]float64{50: 1, 90: 1000 - 9*100, 99: 1000 - 9*10, 100: 1000},
		},
		// Seven by each connection in four seconds and two of grace; what begins then ends.
		"what could not be sent is unsent": {
			load: Load{Workers: 2, Rate: 10, Length: 4 * time.Second}, do: always(900*time.Millisecond, nil),
			done: 14, unsent: 26, percentiles: map[int]float64{1: 900},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, try.load, try.do)
				if o.Done() != try.done || o.Unsent != try.unsent || !maps.Equal(o.Failures, try.failures) {
					t.Errorf("%d done, %d unsent, failures %v", o.Done(), o.Unsent, o.Failures)
				}
				for percent, want := range try.percentiles {
					if got := Percentile(o.All(), percent); math.Abs(got-want) > 0.002*want {
						t.Errorf("percentile %d is %g, want %g", percent, got, want)
					}
				}
			})
		})
	}
}

func TestWithARateEachOperationIsSentWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sent []time.Duration
		subject := func(uint64) (string, error) {
			sent = append(sent, time.Since(begin))
			time.Sleep(time.Millisecond)
			return "", nil
		}
		o := run(t, Load{Workers: 1, Rate: 50, WarmUp: time.Second, Length: 2 * time.Second}, subject)
		if o.Done() != 100 || o.Unsent != 0 { // 50 more during the warm-up
			t.Fatalf("%d operations count, %d unsent", o.Done(), o.Unsent)
		}
		for n, at := range sent {
			if want := time.Duration(n) * 20 * time.Millisecond; at != want {
				t.Fatalf("operation %d was sent at %s, want %s", n, at, want)
			}
		}
		if late := Percentile(o.Late, 100); late > 0.002 {
			t.Errorf("the generator was %g ms late", late)
		}
	})
}

func TestKindsAreCountedApartAndALoadWithoutLengthEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		o := Load{Workers: 2}.Run(ctx, func() (Operation, func()) {
			return func(n uint64) (string, error) {
				time.Sleep(time.Second - time.Nanosecond)
				switch n % 4 {
				case 0:
					return "read", nil
				case 1:
					return "read", status("429")
				}
				return "write", nil
			}, func() {}
		})
		if len(o.Latencies["read"]) != 6 || len(o.Latencies["write"]) != 10 || o.Failures["read 429"] != 6 || o.Due() != 22 {
			t.Errorf("the outcome is %+v", o)
		}
	})
}
