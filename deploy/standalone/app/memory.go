package app

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/doorward/doorward/pkg/run"
	directory "github.com/doorward/doorward/services/directory/app"
)

// resting is what the process needs besides the password hashes that it computes at
// once, in bytes, with room for the memory of some ten hashes that are done. With
// 72 MiB the process collected after every third login, which cost a third of a hash
// (docs/performance.md); returnMemory returns what a quiet process does not need.
const resting = 192 << 20

// boundMemory sets a soft limit, unless the environment sets one: what the
// process needs at rest, and the password hashes that it computes at once. Without
// it the memory of hashes that are done piles up between two collections.
func boundMemory(hashes directory.Config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	workers := hashes.HashWorkers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	debug.SetMemoryLimit(resting + int64(workers)*int64(hashes.Argon2Memory)<<10)
}

// returnMemory returns the memory of the start, and later that of password hashes
// and requests, to the operating system as soon as the process has been quiet for
// quietFor. By itself the runtime keeps it until its next collection, for two minutes
// where little is allocated.
func returnMemory(p *run.Process) {
	p.Go("return memory", func(ctx context.Context) error {
		ticker := time.NewTicker(quietFor)
		defer ticker.Stop()
		allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		var g garbage
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			metrics.Read(allocated)
			if g.worthReturning(allocated[0].Value.Uint64()) {
				debug.FreeOSMemory()
			}
		}
	})
}

const (
	quietFor   = 5 * time.Second
	quietBytes = 4 << 20 // a quiet process allocates less in this time; one login allocates more
	worthwhile = 6 << 20 // less garbage than this is not worth a collection
)

// garbage knows how much the process had allocated, in bytes since its start.
type garbage struct {
	earlier  uint64 // at the last look
	returned uint64 // when memory was returned last
}

// worthReturning reports whether the process has been quiet since the last call, and
// has allocated enough before to make a collection worthwhile. It is called once in
// quietFor.
func (g *garbage) worthReturning(allocated uint64) bool {
	quiet := allocated-g.earlier < quietBytes
	g.earlier = allocated
	if !quiet || allocated-g.returned < worthwhile {
		return false
	}
	g.returned = allocated
	return true
}
