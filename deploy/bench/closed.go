package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// load is how one run is done.
type load struct {
	connections int
	warm        time.Duration // before anything counts
	duration    time.Duration // in which it counts
	meter       *meter
}

// outcome is what one run found.
type outcome struct {
	*tally
	took  time.Duration // the time that counted
	usage usage         // of processors in that time
}

// rate is in operations a second.
func (o outcome) rate() float64 { return float64(o.done()) / o.took.Seconds() }

// useless is an error when everything failed: to go on would measure nothing.
func (o outcome) useless(name string) error {
	if o.done() > 0 || o.example == nil {
		return nil
	}
	return fmt.Errorf("%s: not one operation succeeded (%s), for example: %w", name, failures(o.failures), o.example)
}

// closed puts load on the subject with a number of connections of which each
// sends as soon as it was answered. An operation counts when it ends within
// the time that counts: with slow operations, what was begun before makes up
// for what is cut off at the end.
func (l load) closed(ctx context.Context, s subject) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		sum     = outcome{tally: newTally(), took: l.duration}
		turn    atomic.Uint64
		workers sync.WaitGroup
		mu      sync.Mutex
		from    = time.Now().Add(l.warm)
		until   = from.Add(l.duration)
	)
	for range l.connections {
		workers.Go(func() {
			mine := newTally()
			line := s.open()
			defer line.close()
			for ctx.Err() == nil {
				began := time.Now()
				err := line.do(turn.Add(1) - 1)
				ended := time.Now()
				if ended.After(until) {
					break
				}
				if !ended.Before(from) {
					mine.count(ended.Sub(began), err)
				}
				if err != nil && !rest(ctx) {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			sum.add(mine)
		})
	}
	usage, err := l.meter.between(ctx, from, until)
	workers.Wait()
	sum.usage = usage
	return sum, err
}

// rest keeps a connection whose operation failed from turning into a flood of
// failures. It tells whether there is more to do.
func rest(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(10 * time.Millisecond):
		return true
	}
}
