package cache

import (
	"sync"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// logSize is the number of changes that a log keeps, 16 bytes each.
const logSize = 4096

// Position is the position up to which a follower has read: the number of changes, by log.
type Position map[string]uint64

// Page has the changes of a log after a position.
type Page struct {
	Log     string  `json:"log,omitempty"`     // name of the log, which changes with each Reset
	Next    uint64  `json:"next,omitempty"`    // position in the log after the page
	Changed []id.ID `json:"changed,omitempty"` // oldest first; a resource may occur several times
	Gap     bool    `json:"gap,omitempty"`     // changes since the position are missing: any resource may have changed
	Behind  bool    `json:"behind,omitempty"`  // changes may not have been appended yet; no other field is set
}

// Log has the latest changes of a service that this process was notified of (change feed). Each replica
// has a log of its own, and a follower may ask any replica, because PostgreSQL notifies every replica of
// every change (pkg/pg/cache/feed.go).
type Log struct {
	mu   sync.Mutex
	name string
	next uint64 // changes that were appended
	ring [logSize]id.ID
}

// NewLog makes an empty log.
func NewLog() *Log { return &Log{name: newName()} }

func newName() string { return secure.Token(16).Reveal() }

// Append adds the change of a resource.
func (l *Log) Append(changed id.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.next%logSize] = changed
	l.next++
}

// Reset empties the log under a new name, after unknown changes: followers see a gap.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name, l.next = newName(), 0
}

// After returns the changes that were appended after a position.
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
