package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script is an action whose nth operation takes a time and has an outcome.
func script(takes func(n uint64) (time.Duration, error)) action {
	return func(_ *site, _ *connection, n uint64) error {
		length, err := takes(n)
		time.Sleep(length)
		return err
	}
}

func perSecond(l load, o *outcome) float64 { return float64(o.done()) / l.length.Seconds() }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want*0.998 || got > want*1.002 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestWithoutARateEveryOperationThatEndsInTheTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script(func(uint64) (time.Duration, error) { return 300 * time.Millisecond, nil })
		l := load{connections: 4, warm: 100 * time.Millisecond, length: 3 * time.Second}
		o := l.run(t.Context(), &site{}, slow)
		if o.done() != 40 { // 4 connections, ends at 0.3, 0.6, … 3.0 of 3.1 seconds
			t.Errorf("%d operations, want 40", o.done())
		}
		near(t, "the rate", perSecond(l, o), 40.0/3)
		near(t, "the median", percentile(o.latencies, 50), 300)
	})
}

func TestFailuresHaveNoLatencyAndAreCountedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mixed := script(func(n uint64) (time.Duration, error) {
			switch n % 4 {
			case 0:
				return time.Millisecond, refusal{503, "busy"}
			case 1:
				return time.Millisecond, errors.New("broken pipe")
			default:
				return 90 * time.Millisecond, nil
			}
		})
		o := load{connections: 1, length: 1010 * time.Millisecond}.run(t.Context(), &site{}, mixed)
		if o.failures["503"] != 5 || o.failures["connection"] != 5 || o.done() != 10 {
			t.Errorf("%d succeeded and failed were %v, want 10 and 5 of each", o.done(), o.failures)
		}
		if percentile(o.latencies, 50) < 89 {
			t.Errorf("a failure has made the median %g ms", percentile(o.latencies, 50))
		}
	})
}

func TestARunWithoutSuccessIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := script(func(uint64) (time.Duration, error) { return time.Millisecond, refusal{429, "too many"} })
		o := load{connections: 1, length: time.Second}.run(t.Context(), &site{}, refused)
		if o.failed("script") == nil {
			t.Error("it is none")
		}
	})
}

func TestWithARateEachOperationIsSentWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sent []time.Duration
		subject := script(func(uint64) (time.Duration, error) {
			sent = append(sent, time.Since(begin))
			return time.Millisecond, nil
		})
		l := load{connections: 1, rate: 50, warm: time.Second, length: 2 * time.Second}
		o := l.run(t.Context(), &site{}, subject)
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

func TestAStallShowsInEveryOperationThatWaitedBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := script(func(n uint64) (time.Duration, error) {
			if n == 10 {
				return time.Second, nil
			}
			return time.Millisecond, nil
		})
		o := load{connections: 1, rate: 100, length: 10 * time.Second}.run(t.Context(), &site{}, stalls)
		if o.done() != 1000 || o.unsent != 0 {
			t.Fatalf("%d operations, %d unsent", o.done(), o.unsent)
		}
		near(t, "the longest", percentile(o.latencies, 100), 1000)
		near(t, "the median", percentile(o.latencies, 50), 1)
		// What was due during the stall waited too: 991 ms, 982 ms, and so on, by
		// 9 ms less each, for 110 operations. A generator that counts from when it
		// sends would see one long operation and 1 ms here.
		near(t, "the 99th percentile", percentile(o.latencies, 99), 1000-9*10)
		near(t, "the 90th percentile", percentile(o.latencies, 90), 1000-9*100)
	})
}

func TestWhatCouldNotBeSentIsUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script(func(uint64) (time.Duration, error) { return time.Second, nil })
		o := load{connections: 2, rate: 10, length: 4 * time.Second}.run(t.Context(), &site{}, slow)
		// Two a second for four seconds and two of grace; what begins then ends.
		if o.done()+o.unsent != 40 || o.unsent < 26 || o.unsent > 28 {
			t.Errorf("%d done and %d unsent", o.done(), o.unsent)
		}
	})
}

func TestAPercentileIsATimeOfTheRun(t *testing.T) {
	var times []time.Duration
	for n := range 200 {
		times = append(times, time.Duration(200-n)*time.Millisecond)
	}
	for percent, want := range map[int]float64{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(times, percent); got != want {
			t.Errorf("the %dth is %g, want %g", percent, got, want)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("of nothing it is %g", got)
	}
}

func TestOutcomesAddUpToOne(t *testing.T) {
	sum, whole := &outcome{}, &outcome{}
	for part := range 4 {
		own := &outcome{}
		for n := range 1000 {
			latency := time.Duration(part*1000+n) * time.Microsecond
			whole.count(latency, nil)
			own.count(latency, nil)
		}
		own.count(0, refusal{429, "too many"})
		own.unsent = 2
		sum.add(own)
	}
	if sum.done() != 4000 {
		t.Errorf("%d operations, want 4000", sum.done())
	}
	for _, percent := range []int{50, 99} {
		if got, want := percentile(sum.latencies, percent), percentile(whole.latencies, percent); got != want {
			t.Errorf("the %dth percentile is %g, want %g", percent, got, want)
		}
	}
	if sum.failures["429"] != 4 || sum.unsent != 8 || sum.example == nil {
		t.Errorf("failures are %v, unsent %d", sum.failures, sum.unsent)
	}
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
	for _, try := range []struct {
		of   []float64
		want string
	}{
		{nil, "  "}, {[]float64{3}, "3.00 3.00 3.00"}, {[]float64{9, 1, 5}, "5.00 1.00 9.00"}, {[]float64{4, 1, 3, 2}, "2.50 1.00 4.00"},
	} {
		if got := strings.Join(cells(try.of), " "); got != try.want {
			t.Errorf("%v is shown as %q, want %q", try.of, got, try.want)
		}
	}
}
