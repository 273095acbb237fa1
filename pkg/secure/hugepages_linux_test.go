package secure

import (
	"os"
	"strings"
	"testing"
)

// TestHugePagesBackTheMemoryOfHashes looks for the advice in the memory map of the
// process, which it keeps when the reserve is freed. Kernels without huge pages take no advice.
func TestHugePagesBackTheMemoryOfHashes(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		return
	}
	adviseHugePages(64 << 20)
	regions, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(regions), " hg") {
		t.Error("no region of the process has the advice")
	}
}
