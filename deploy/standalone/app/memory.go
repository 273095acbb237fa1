package app

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/doorward/doorward/pkg/secure"
)

// resting is what the process needs while no password is checked, in bytes.
const resting = 32 << 20

// boundMemory sets a soft limit, unless the environment sets one: what the
// process needs at rest, and one password hash for each processor. Without it
// the memory of hashes that are done piles up between two collections.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(resting + int64(runtime.GOMAXPROCS(0))*int64(secure.DefaultCost.Memory)<<10)
	}
}
