package secure

import (
	"runtime"
	"syscall"
)

// smallObjects is the size in bytes of the heap without the memory of hashes. This part gets no huge
// pages, because a huge page of which a part is used takes all of its memory.
const smallObjects = 48 << 20

// adviseHugePages asks the kernel to back the size bytes of the heap above smallObjects
// with huge pages. argon2 allocates its memory for each hash, and reads each 4 KiB of it
// before it writes there, which costs two page faults in new memory
// (docs/decisions/huge-pages.md). The advice applies to
// addresses, also after this function has freed them; the allocator uses the lowest
// free addresses first, so that later hashes use these. No memory is touched here,
// and without huge pages nothing changes.
func adviseHugePages(size int) {
	reserve := make([]byte, smallObjects+size)
	_ = syscall.Madvise(reserve[smallObjects:], syscall.MADV_HUGEPAGE)
	runtime.KeepAlive(reserve)
	runtime.GC() // frees the reserve
}
