package app

import (
	"os"
	"runtime"
	"runtime/debug"

	directory "github.com/doorward/doorward/services/directory/app"
)

// resting is what the process needs while no password is checked, in bytes, with
// room for what requests throw away. With 32 MiB it collected without pause while
// passwords were checked: a login took twice the processor time of its hash.
const resting = 72 << 20

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
