package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// openOutcome is what one run at a fixed rate found.
type openOutcome struct {
	outcome
	offered int    // operations that the schedule holds
	unsent  int    // of these, how many found no free connection to the end
	late    *tally // how late the generator itself was to hand out an operation
}

// open puts load on the subject at a fixed rate. A latency counts from the time
// at which the operation was meant to be sent, not from when a connection was
// free for it, so that a stall is seen by all who would have come during it.
// What could not be sent within grace after the end stays unsent and is told.
func (l load) open(ctx context.Context, s subject, rate float64, pause func(time.Duration)) (openOutcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plan := newSchedule(time.Now().Add(l.warm), rate, l.duration)
	var (
		sum     = openOutcome{outcome: outcome{tally: newTally(), took: l.duration}, offered: plan.count, late: newTally()}
		turn    atomic.Uint64
		workers sync.WaitGroup
		mu      sync.Mutex
		ready   sync.WaitGroup
		lines   = make([]line, l.connections)
	)
	// Each connection is made, and used once, before the schedule begins.
	for i := range lines {
		ready.Go(func() {
			lines[i] = s.open()
			if err := lines[i].do(turn.Add(1) - 1); err != nil {
				mu.Lock()
				defer mu.Unlock()
				sum.count(0, err)
			}
		})
	}
	ready.Wait()
	plan.begin = later(plan.begin, time.Now())
	end := plan.begin.Add(l.duration)
	grace := end.Add(max(l.duration/2, time.Second))
	due := plan.play(ctx, pause, func(by time.Duration) { sum.late.count(by, nil) })
	for _, line := range lines {
		workers.Go(func() {
			mine, unsent := newTally(), 0
			defer line.close()
			for intended := range due {
				if time.Now().After(grace) || ctx.Err() != nil {
					unsent++
					continue
				}
				err := line.do(turn.Add(1) - 1)
				mine.count(time.Since(intended), err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.add(mine)
			sum.unsent += unsent
		})
	}
	usage, err := l.meter.between(ctx, plan.begin, end)
	if err != nil {
		cancel()
	}
	workers.Wait()
	sum.usage = usage
	return sum, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
