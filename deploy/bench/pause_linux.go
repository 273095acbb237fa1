package main

import (
	"syscall"
	"time"
)

// pause asks the kernel, because the runtime's own timers wake up to a
// millisecond late when the process is idle, and that would be measured as
// latency. It holds an operating-system thread; one goroutine uses it.
func pause(length time.Duration) {
	request := syscall.NsecToTimespec(int64(length))
	_ = syscall.Nanosleep(&request, nil) // woken early, the caller asks again
}
