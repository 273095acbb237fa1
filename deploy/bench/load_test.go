package main

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// script is a subject whose nth operation takes a time and has an outcome.
func script(takes func(n uint64) (time.Duration, error)) subject {
	return subject{"script", func() line { return scripted(takes) }}
}

type scripted func(n uint64) (time.Duration, error)

func (s scripted) do(n uint64) error {
	takes, err := s(n)
	<-time.After(takes)
	return err
}

func (s scripted) close() {}

// nap is a pause on the clock of a bubble.
func nap(length time.Duration) { <-time.After(length) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want*0.998 || got > want*1.002 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestAClosedLoopCountsWhatEndsInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script(func(uint64) (time.Duration, error) { return 300 * time.Millisecond, nil })
		l := load{connections: 4, warm: 100 * time.Millisecond, duration: 3 * time.Second, meter: &meter{}}
		o, err := l.closed(t.Context(), slow)
		if err != nil {
			t.Fatal(err)
		}
		if o.done() != 40 { // 4 connections, ends at 0.3, 0.6, … 3.0 of 3.1 seconds
			t.Errorf("%d operations, want 40", o.done())
		}
		near(t, "the rate", o.rate(), 40.0/3)
		near(t, "the median", percentiles(o.latencies).P50, 300)
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
		l := load{connections: 1, duration: 1010 * time.Millisecond, meter: &meter{}}
		o, err := l.closed(t.Context(), mixed)
		if err != nil {
			t.Fatal(err)
		}
		if o.failures["503"] != 5 || o.failures["connection"] != 5 || o.done() != 10 {
			t.Errorf("%d succeeded and failed were %v, want 10 and 5 of each", o.done(), o.failures)
		}
		if p := percentiles(o.latencies); p.P50 < 89 {
			t.Errorf("a failure has made the median %g ms", p.P50)
		}
	})
}

func TestAScheduleKeepsItsTimesWhoeverTakesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(time.Now().Add(time.Second), 50, 2*time.Second)
		var late []time.Duration
		due := s.play(t.Context(), nap, func(by time.Duration) { late = append(late, by) })
		<-time.After(time.Hour) // nobody takes anything
		var got []time.Time
		for intended := range due {
			got = append(got, intended)
		}
		if len(got) != 100 || len(late) != 100 {
			t.Fatalf("%d operations were handed out, %d on record, want 100", len(got), len(late))
		}
		for n, intended := range got {
			if want := s.begin.Add(time.Duration(n) * 20 * time.Millisecond); !intended.Equal(want) || late[n] != 0 {
				t.Fatalf("operation %d is meant for %s and handed out %s late, want %s", n, intended, late[n], want)
			}
		}
	})
}

func TestAnOpenLoopSeesAStallInEveryOperationBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stall = 11 // the first operation only opens the connection
		stalls := script(func(n uint64) (time.Duration, error) {
			if n == stall {
				return time.Second, nil
			}
			return time.Millisecond, nil
		})
		l := load{connections: 1, duration: 10 * time.Second, meter: &meter{}}
		o, err := l.open(t.Context(), stalls, 100, nap)
		if err != nil {
			t.Fatal(err)
		}
		if o.done() != 1000 || o.offered != 1000 || o.unsent != 0 {
			t.Fatalf("%d of %d operations, %d unsent", o.done(), o.offered, o.unsent)
		}
		p := percentiles(o.latencies)
		near(t, "the longest", p.Max, 1000)
		near(t, "the median", p.P50, 1)
		// What was due during the stall waited too: 991 ms, 982 ms, and so on,
		// by 9 ms less each, for 110 operations. A generator that waits with the stalled
		// connection would count one long operation and see 1 ms here.
		near(t, "the 99th percentile", p.P99, 1000-9*10)
		near(t, "the 90th percentile", p.P90, 1000-9*100)
	})
}

func TestAnOpenLoopTellsWhatItCouldNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script(func(uint64) (time.Duration, error) { return time.Second, nil })
		l := load{connections: 2, duration: 4 * time.Second, meter: &meter{}}
		o, err := l.open(t.Context(), slow, 10, nap)
		if err != nil {
			t.Fatal(err)
		}
		// Two a second for four seconds and two of grace; what begins then ends.
		if o.done()+o.unsent != 40 || o.unsent < 26 || o.unsent > 28 {
			t.Errorf("%d done and %d unsent of %d", o.done(), o.unsent, o.offered)
		}
	})
}

func TestPauseLastsAtLeastItsTime(t *testing.T) {
	const length = 3 * time.Millisecond
	began := time.Now()
	for time.Since(began) < length {
		pause(length - time.Since(began))
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a pause of %s took %s", length, took)
	}
}

func TestLatenciesKeepThreeDigitsAndTheirBounds(t *testing.T) {
	for _, want := range []time.Duration{2 * time.Microsecond, 123456 * time.Nanosecond, 17 * time.Millisecond, 3 * time.Second, 9 * time.Minute} {
		one := newTally()
		one.count(want, nil)
		got := percentiles(one.latencies).P50 * float64(time.Millisecond)
		if difference := got/float64(want) - 1; difference < -0.001 || difference > 0.001 && want > time.Millisecond || difference > 0.3 {
			t.Errorf("%s is kept as %s", want, time.Duration(got))
		}
	}
	outside := newTally()
	outside.count(-time.Second, nil)
	outside.count(0, nil)
	outside.count(time.Hour, nil)
	if outside.done() != 3 {
		t.Fatalf("%d of 3 operations were kept", outside.done())
	}
	if p := percentiles(outside.latencies); p.P50 > 0.01 || p.Max < 599_000 {
		t.Errorf("what lies outside is kept as %+v", p)
	}
}

func TestTalliesAddUpToOne(t *testing.T) {
	sum, whole := newTally(), newTally()
	var mu sync.Mutex
	var workers sync.WaitGroup
	for part := range 4 {
		for n := range 1000 {
			whole.count(time.Duration(part*1000+n)*time.Microsecond, nil)
		}
		workers.Go(func() {
			mine := newTally()
			for n := range 1000 {
				mine.count(time.Duration(part*1000+n)*time.Microsecond, nil)
			}
			mine.count(0, refusal{429, "too many"})
			mu.Lock()
			defer mu.Unlock()
			sum.add(mine)
		})
	}
	workers.Wait()
	if got, want := percentiles(sum.latencies), percentiles(whole.latencies); got != want || sum.done() != 4000 {
		t.Errorf("%d operations with %+v, want 4000 with %+v", sum.done(), got, want)
	}
	if sum.failures["429"] != 4 {
		t.Errorf("failures are %v, want 4 x 429", sum.failures)
	}
}
