package main

import (
	"context"
	"time"
)

// schedule is when the operations of an open loop are meant to be sent: at even
// distances, however slow the answers are.
type schedule struct {
	begin time.Time
	rate  float64 // operations a second
	count int
}

// newSchedule fills the time from begin on.
func newSchedule(begin time.Time, rate float64, length time.Duration) schedule {
	return schedule{begin: begin, rate: rate, count: max(1, int(rate*length.Seconds()))}
}

// at is the intended time of the nth operation.
func (s schedule) at(n int) time.Time {
	return s.begin.Add(time.Duration(float64(n) / s.rate * float64(time.Second)))
}

// play hands out every intended time when it has come, and closes the channel
// after the last. The channel holds all of them: whoever takes them late, or
// not at all, does not hold up the schedule.
func (s schedule) play(ctx context.Context, pause func(time.Duration), late func(time.Duration)) <-chan time.Time {
	due := make(chan time.Time, s.count)
	go func() {
		defer close(due)
		for n := range s.count {
			intended := s.at(n)
			for wait := time.Until(intended); wait > 0; wait = time.Until(intended) {
				pause(min(wait, 100*time.Millisecond))
				if ctx.Err() != nil {
					return
				}
			}
			late(time.Since(intended))
			due <- intended
		}
	}()
	return due
}
