package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// stormed are the operations that logins must not hold up, and stormTarget is
// how much slower their 99th percentile may be while many log in.
var stormed = []string{"validate", "get"}

const stormTarget = 3.0

// Storm is an operation at a fixed rate while many log in. Its Figures are those
// in the storm.
type Storm struct {
	Figures
	Rate   float64     `json:"rate"`
	Quiet  Percentiles `json:"quietLatency"` // without logins
	Ratio  float64     `json:"ratio"`        // of the 99th percentiles
	Logins float64     `json:"loginsPerSecond"`
	Others int         `json:"connectionsLoggingIn"`
	Unsent int         `json:"unsent"`
}

// stormRounds measures each of the stormed operations at half of its highest
// rate, without logins and in a storm of them, in turns.
func (c *comparison) stormRounds(ctx context.Context, closed map[string]*series) (storms []Storm, err error) {
	var login operation
	for _, operation := range c.operations {
		if operation.name == "login" {
			login = operation
		}
	}
	if login.do == nil {
		return nil, nil // nobody asked for logins
	}
	for _, operation := range c.operations {
		if !slices.Contains(stormed, operation.name) {
			continue
		}
		storm, err := c.storm(ctx, operation, login, median(closed[operation.name].rates)/2)
		if err != nil {
			return nil, err
		}
		storms = append(storms, storm)
		c.tell("storm of logins: p99 of %s %s ms, %s ms without", storm.Name, millis(storm.Latency.P99), millis(storm.Quiet.P99))
	}
	return storms, nil
}

func (c *comparison) storm(ctx context.Context, operation, login operation, rate float64) (Storm, error) {
	calm, stormy, logins := newSeries(operation.name), newSeries(operation.name), newSeries(login.name)
	unsent := 0
	for range c.openRoundCount() {
		quiet, err := c.load(c.meter).open(ctx, c.site.subject(operation), rate, pause)
		if err != nil {
			return Storm{}, err
		}
		calm.add(quiet.outcome)
		during, logged, err := c.inStorm(ctx, operation, login, rate)
		if err := errors.Join(err, during.useless(operation.name), logged.useless(login.name)); err != nil {
			return Storm{}, fmt.Errorf("storm of logins: %w", err)
		}
		stormy.add(during.outcome)
		logins.add(logged)
		unsent += during.unsent
	}
	s := Storm{
		Figures: figures(stormy), Rate: rate, Quiet: percentiles(calm.tally.latencies), Logins: median(logins.rates), Unsent: unsent, Others: c.stormConnections(),
	}
	if s.Quiet.P99 > 0 {
		s.Ratio = s.Latency.P99 / s.Quiet.P99
	}
	return s, nil
}

// stormConnections is how many log in: with those that are measured they stay
// below the requests that a tenant may have in flight.
func (c *comparison) stormConnections() int { return min(c.options.Connections, maxConnections/2) }

// inStorm measures an operation at a fixed rate while others log in. The storm
// begins before and ends after what is measured.
func (c *comparison) inStorm(ctx context.Context, operation, login operation, rate float64) (during openOutcome, logged outcome, err error) {
	around := c.load(c.meter)
	around.connections = c.stormConnections()
	around.warm, around.duration = around.warm/2, around.warm+around.duration*3/2
	var others sync.WaitGroup
	var failure error
	others.Go(func() { logged, failure = around.closed(ctx, c.site.subject(login)) })
	during, err = c.load(c.meter).open(ctx, c.site.subject(operation), rate, pause)
	others.Wait()
	return during, logged, errors.Join(err, failure)
}
