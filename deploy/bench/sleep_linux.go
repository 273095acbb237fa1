package main

import (
	"syscall"
	"time"
)

// sleep asks the kernel, because the runtime's own timers wake up to a
// millisecond late when the process is idle, and that would be measured as
// latency. It holds an operating-system thread.
func sleep(length time.Duration) {
	request := syscall.NsecToTimespec(int64(length))
	_ = syscall.Nanosleep(&request, nil) // the caller asks again when it wakes early
}
