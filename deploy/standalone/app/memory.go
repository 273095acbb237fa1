package app

import (
	"os"
	"runtime/debug"
)

// memory is the size that the process is kept near, in bytes. A password hash
// takes 19 MiB for an instant; without a limit such blocks pile up between two
// collections.
const memory = 80 << 20

// boundMemory sets the soft limit, unless the environment sets one.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
}
