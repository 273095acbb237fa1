package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Names of what the operations are compared with.
const (
	bareName   = "bare"
	rowName    = "row"
	followName = "follow"
	insertName = "insert"
	pairName   = "pair"
	hashName   = "hash"
)

// baselines, in the order of the report.
var baselines = []string{bareName, rowName, followName, insertName, pairName, hashName}

// series is what was found about one subject over all rounds.
type series struct {
	name  string
	rates []float64 // of each round, operations a second
	count int       // operations that succeeded
	tally *tally
	usage usage
}

func newSeries(name string) *series { return &series{name: name, tally: newTally()} }

func (s *series) add(o outcome) {
	s.note(o.rate(), o.done(), o.usage)
	s.tally.add(o.tally)
}

// note adds a round of which no latencies are known.
func (s *series) note(rate float64, count int, used usage) {
	s.rates = append(s.rates, rate)
	s.count += count
	s.usage = s.usage.plus(used)
}

// cost is the processor time of one operation, in the process and its database.
func (s *series) cost() time.Duration {
	if s.count == 0 {
		return 0
	}
	return (s.usage.server + s.usage.children) / time.Duration(s.count)
}

// Ratio is the median over the rounds of a rate over another of the same round,
// and the lowest and the highest.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// over leaves out rounds in which the other did nothing.
func (s *series) over(other *series) Ratio {
	var ratios []float64
	for round, rate := range s.rates {
		if other.rates[round] > 0 {
			ratios = append(ratios, rate/other.rates[round])
		}
	}
	if len(ratios) == 0 {
		return Ratio{}
	}
	return Ratio{Median: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios)}
}

// median of nothing is 0.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// comparison is everything that takes part in the rounds.
type comparison struct {
	options    Options
	yardstick  *yardstick
	site       *site
	meter      *meter // of the product
	operations []operation
	tell       func(string, ...any)
}

func (c *comparison) load(m *meter) load {
	return load{connections: c.options.Connections, warm: c.options.warm(), duration: c.options.Duration, meter: m}
}

// closedRounds measures every baseline and every operation once in each round,
// so that a slow minute of the machine falls on all of them. Each round begins
// with another one.
func (c *comparison) closedRounds(ctx context.Context) (map[string]*series, error) {
	all := map[string]*series{}
	type turn struct {
		name string
		run  func(*series) error
	}
	closed := func(s subject, m *meter) turn {
		return turn{s.name, func(all *series) error {
			o, err := c.load(m).closed(ctx, s)
			all.add(o)
			return errors.Join(err, o.useless(s.name))
		}}
	}
	turns := []turn{
		closed(c.yardstick.bare(), c.yardstick.meter),
		closed(c.yardstick.row(), c.yardstick.meter),
		closed(c.yardstick.follow(), c.yardstick.meter),
		closed(c.yardstick.insert(), c.yardstick.meter),
		closed(c.yardstick.pair(), c.yardstick.meter),
		{hashName, func(all *series) error {
			rate, used, err := c.yardstick.hashes(c.options.Duration)
			all.note(rate.PerSecond, rate.Count, used)
			return err
		}},
	}
	for _, operation := range c.operations {
		turns = append(turns, closed(c.site.subject(operation), c.meter))
	}
	for _, turn := range turns {
		all[turn.name] = newSeries(turn.name)
	}
	for round := range c.options.Rounds {
		line := ""
		for n := range turns {
			turn := turns[(n+round)%len(turns)]
			if err := errors.Join(turn.run(all[turn.name]), ctx.Err()); err != nil {
				return nil, err
			}
			line += "  " + turn.name + " " + number(all[turn.name].rates[round])
		}
		c.tell("closed loop, round %d of %d:%s", round+1, c.options.Rounds, line)
	}
	return all, nil
}

// openSeries is an operation and the row handler at the same fixed rate.
type openSeries struct {
	rate            float64
	subject, row    *series
	offered, unsent int
	rowUnsent       int
	late            *tally
}

// maxOpenRounds bounds the rounds of the open loop, whose figures are over all
// rounds together.
const maxOpenRounds = 3

func (c *comparison) openRoundCount() int {
	if c.options.Short {
		return 1
	}
	return min(c.options.Rounds, maxOpenRounds)
}

// openRounds measures every operation at a fixed rate, in turns with the row
// handler at the same rate.
func (c *comparison) openRounds(ctx context.Context, closed map[string]*series) (map[string]*openSeries, error) {
	all := map[string]*openSeries{}
	for _, operation := range c.operations {
		rate := c.options.Rate
		if rate == 0 {
			rate = median(closed[operation.name].rates) / 2
		}
		if rate == 0 {
			c.tell("open loop: %s has no rate, because nothing succeeded in the closed loop", operation.name)
			continue
		}
		all[operation.name] = &openSeries{rate: rate, subject: newSeries(operation.name), row: newSeries(rowName), late: newTally()}
	}
	rounds := c.openRoundCount()
	for round := range rounds {
		line := ""
		for n := range c.operations {
			operation := c.operations[(n+round)%len(c.operations)]
			s, wanted := all[operation.name]
			if !wanted {
				continue
			}
			row, err := c.load(c.yardstick.meter).open(ctx, c.yardstick.row(), s.rate, pause)
			if err != nil {
				return nil, err
			}
			subject, err := c.load(c.meter).open(ctx, c.site.subject(operation), s.rate, pause)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(row.useless(rowName), subject.useless(operation.name)); err != nil {
				return nil, err
			}
			s.row.add(row.outcome)
			s.subject.add(subject.outcome)
			s.offered += subject.offered
			s.unsent += subject.unsent
			s.rowUnsent += row.unsent
			s.late.add(subject.late)
			line += "  " + operation.name + " " + number(subject.rate()) + " of " + number(s.rate)
		}
		c.tell("open loop, round %d of %d:%s", round+1, rounds, line)
	}
	return all, nil
}
