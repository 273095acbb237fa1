package secure

import (
	"os/exec"
	"runtime"
	"syscall"
)

// niceness is the priority of a child: a tenth of a usual process's share, and
// what nothing else uses.
const niceness = 10

// startLow starts a process of low priority in a process group of its own, so
// that a Ctrl-C reaches the parent alone. A thread that is thrown away
// afterwards lowers its priority, which on Linux is that of the thread, and
// which the process and all its threads inherit.
func startLow(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
		started <- command.Start()
	}()
	return <-started
}
