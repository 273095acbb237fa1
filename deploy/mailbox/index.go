package mailbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// entry is one message in memory: its id and kind, which name its file, and what the list
// shows of the message once that has been read.
type entry struct {
	id       string
	kind     string
	size     int64
	envelope atomic.Pointer[envelope]
}

// index has the entries in the order of their ids and decides which of them are evicted.
// It reads and writes no files.
type index struct {
	keep      int
	keepBytes int64
	startedAt int64 // part of the version, so that no other process has the same versions

	mu      sync.RWMutex
	entries []*entry // oldest first
	bytes   int64
	lastID  int64
	changes uint64
}

func newIndex(keep int, keepBytes, startedAt int64) *index {
	return &index{keep: keep, keepBytes: keepBytes, startedAt: startedAt}
}

// nextID returns an id greater than all before: the microsecond of arrival, or
// the next free one when the clock stands still or went back.
func (x *index) nextID(now time.Time) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lastID = max(x.lastID+1, now.UnixMicro())
	return formatID(x.lastID)
}

// formatID writes ids with one width, so that their order as text is their
// order as numbers.
func formatID(n int64) string { return fmt.Sprintf("%016d", n) }

// insert adds an entry in order and returns the entries that are evicted for it.
func (x *index) insert(e *entry) (evicted []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := len(x.entries)
	for at > 0 && x.entries[at-1].id > e.id {
		at--
	}
	x.entries = slices.Insert(x.entries, at, e)
	x.bytes += e.size
	x.changes++
	id, _ := strconv.ParseInt(e.id, 10, 64) // fileName has matched it
	x.lastID = max(x.lastID, id)

	surplus, bytes := 0, x.bytes
	for len(x.entries)-surplus > x.keep || (bytes > x.keepBytes && len(x.entries)-surplus > 1) {
		bytes -= x.entries[surplus].size
		surplus++
	}
	evicted = slices.Clone(x.entries[:surplus])
	x.entries = slices.Delete(x.entries, 0, surplus)
	x.bytes = bytes
	return evicted
}

// clear removes all entries and returns them.
func (x *index) clear() []*entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	removed := x.entries
	x.entries, x.bytes = nil, 0
	x.changes++
	return removed
}

// find returns the entry with this id, or nil.
func (x *index) find(id string) *entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at, found := slices.BinarySearchFunc(x.entries, id, compareID)
	if !found {
		return nil
	}
	return x.entries[at]
}

// newest returns at most limit entries, newest first, that are older than the
// id before; an empty before is no bound, nor is a negative limit.
func (x *index) newest(before string, limit int) []*entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := len(x.entries)
	if before != "" {
		end, _ = slices.BinarySearchFunc(x.entries, before, compareID)
	}
	start := 0
	if limit >= 0 {
		start = max(0, end-limit)
	}
	out := slices.Clone(x.entries[start:end])
	slices.Reverse(out)
	return out
}

// state returns how many messages there are and a version (ETag), which changes with every
// change of the mailbox.
func (x *index) state() (count int, version string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.entries), fmt.Sprintf("%x-%x", x.startedAt, x.changes)
}

func compareID(e *entry, id string) int { return strings.Compare(e.id, id) }
