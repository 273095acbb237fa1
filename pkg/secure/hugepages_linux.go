package secure

import (
	"runtime"
	"syscall"
)

// smallObjects is what the heap of a process has besides hashes, in bytes. It stays
// without huge pages, because a page of which a part is used takes all of its memory.
const smallObjects = 48 << 20

// adviseHugePages asks the kernel to back the size bytes of the heap above smallObjects
// with huge pages. argon2 allocates its memory for each hash and reads each 4 KiB of it
// before it writes there, which are two page faults where the memory is fresh
// (docs/performance.md#huge-pages-for-the-memory-of-hashes). The advice belongs to
// addresses and stays when this function has freed them; the allocator takes the lowest
// free addresses first, which makes later hashes use them. No memory is touched here,
// and without huge pages nothing changes.
func adviseHugePages(size int) {
	reserve := make([]byte, smallObjects+size)
	_ = syscall.Madvise(reserve[smallObjects:], syscall.MADV_HUGEPAGE)
	runtime.KeepAlive(reserve)
	runtime.GC() // frees the reserve
}
