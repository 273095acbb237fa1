package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e/loadgen"
)

// action sends the nth operation to a system.
type action func(s *system, c *connection, n uint64) error

// outcome is what one measurement found.
type outcome struct {
	loadgen.Outcome
	usage usage
}

func (o *outcome) add(other *outcome) {
	o.Add(&other.Outcome)
	o.usage = o.usage.plus(other.usage, 1)
}

// cpu is the processor time of one operation in microseconds; 0 where none succeeded.
func (o *outcome) cpu() float64 {
	if o.Done() == 0 {
		return 0
	}
	return float64(o.usage.measured().Microseconds()) / float64(o.Done())
}

// failed is an error when no operation succeeded: to go on would measure nothing.
func (o *outcome) failed(name string) error {
	if o.Done() > 0 || o.Example == nil {
		return nil
	}
	return fmt.Errorf("%s: no operation succeeded (%s), for example: %w", name, o.FailuresText(), o.Example)
}

// send puts load on a system, over a connection for each worker, and measures the processor time in
// the time that counts. What could not be sent within a grace period after the end is unsent.
func send(ctx context.Context, l loadgen.Load, s *system, do action) *outcome {
	l.Grace, l.Pause = max(l.Length/2, time.Second), 10*time.Millisecond
	found := &outcome{}
	var measured sync.WaitGroup
	from := time.Now().Add(l.WarmUp)
	measured.Go(func() { found.usage = usageBetween(ctx, s.measuredProcesses(), from, from.Add(l.Length)) })
	found.Outcome = *l.Run(ctx, func() (loadgen.Operation, func()) {
		c := connect(s.tls, s.authorization)
		return func(n uint64) (string, error) { return "", do(s, c, n) }, c.close
	})
	measured.Wait()
	return found
}
