// Package clocktest has a fake clock for tests, which stands still until it is moved.
package clocktest

import (
	"sync"
	"time"
)

// Start is the time of a new Clock.
var Start = time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)

// Clock is a clock at Start.
type Clock struct {
	mu    sync.Mutex
	since time.Duration
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Start.Add(c.since)
}

// Move moves the clock.
func (c *Clock) Move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since += by
}

// Tick moves the clock by a millisecond, so that later ids sort behind earlier ids.
func (c *Clock) Tick() { c.Move(time.Millisecond) }
