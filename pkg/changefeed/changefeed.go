// Package changefeed lets a service keep what another has answered for as long as that
// one reports no change of it. The other appends what changes to a Log; whoever keeps
// answers has a Follower, which polls for what was appended since, only while the answers
// are in use. Each replica has a log of its own, and a follower may ask any of them: every
// replica hears of every change.
//
// An answer that is to be kept must not come from a cache: a change that was reported
// before it was asked for is not reported again.
package changefeed

import (
	"sync"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// logSize is how many changes a log remembers, 32 bytes each.
const logSize = 4096

// Position is how far a follower has read: the number of changes by log.
type Position map[string]uint64

// Page is what a log has after a position.
type Page struct {
	Log     string   `json:"log,omitempty"`     // its name, which is new after each gap
	Next    uint64   `json:"next,omitempty"`    // position in the log after the page
	Changed []id.Ref `json:"changed,omitempty"` // oldest first; one may be there several times
	Gap     bool     `json:"gap,omitempty"`     // anything may have changed since the position
	Behind  bool     `json:"behind,omitempty"`  // it is not certain that all changes have been appended; nothing else is set
}

// Log is the latest changes that a process has heard of.
type Log struct {
	mu   sync.Mutex
	name string
	next uint64 // changes that were appended
	ring [logSize]id.Ref
}

// NewLog makes an empty log.
func NewLog() *Log { return &Log{name: newName()} }

func newName() string { return secure.Token(16).Reveal() }

// Append adds the change of a resource.
func (l *Log) Append(changed id.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.next%logSize] = changed
	l.next++
}

// Reset begins again, after changes that are not known one by one.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name, l.next = newName(), 0
}

// After returns what was appended after a position.
func (l *Log) After(position Position) Page {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := Page{Log: l.name, Next: l.next}
	from, known := position[l.name]
	if !known || from > l.next || l.next-from > logSize {
		page.Gap = true
		return page
	}
	for ; from < l.next; from++ {
		page.Changed = append(page.Changed, l.ring[from%logSize])
	}
	return page
}
