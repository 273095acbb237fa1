package run

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// returnMemory returns the memory of the start, and later that of password hashes
// and requests, to the operating system as soon as the process has been idle for
// idleInterval. By itself the runtime keeps that memory until its next collection, for
// two minutes where little is allocated (docs/decisions/memory-of-hashes.md).
func returnMemory(ctx context.Context) error {
	ticker := time.NewTicker(idleInterval)
	defer ticker.Stop()
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var a allocations
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		metrics.Read(allocated)
		if a.shouldReturn(allocated[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}

const (
	idleInterval = 5 * time.Second
	idleBytes    = 4 << 20 // an idle process allocates less than this in idleInterval; one login allocates more
	minAllocated = 6 << 20 // a collection is worth its cost when so much was allocated since the last one
)

// allocations are bytes that the process had allocated since its start.
type allocations struct {
	atLastCall   uint64 // of shouldReturn
	atLastReturn uint64 // of memory to the operating system
}

// shouldReturn reports whether the process has been idle since the last call, and has
// allocated enough before that to make a collection worth its cost. The caller calls it
// once in idleInterval.
func (a *allocations) shouldReturn(allocated uint64) bool {
	idle := allocated-a.atLastCall < idleBytes
	a.atLastCall = allocated
	if !idle || allocated-a.atLastReturn < minAllocated {
		return false
	}
	a.atLastReturn = allocated
	return true
}
