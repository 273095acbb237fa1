package harness

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// launch starts the command in a process group of its own, so that a Ctrl-C in
// the terminal reaches only us and we stop our children in order, and has the
// kernel kill it when we die without having stopped it.
//
// The kernel kills the child when the operating-system thread that started it ends, not
// when the process does: all children start on one thread that never ends.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	launcher() <- func() { result <- cmd.Start() }
	return <-result
}

var launcher = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})
