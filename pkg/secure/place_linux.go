package secure

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// niceness is the priority of a child: so low that the requests of others hardly
// wait for hashes, and not the lowest, which gets less than a hundredth of a busy
// machine, so that one login takes seconds there.
const niceness = 10

// startLow starts a process of low priority in a session of its own, so that a
// Ctrl-C reaches the parent alone. Two things share the processors out. One is
// the priority of a thread: a thread that is thrown away afterwards lowers its
// own, which the process and all its threads inherit. The other is that of the
// session, where the kernel groups processes by it (sched(7), autogroup): without
// it a hash would count as much as PostgreSQL, which is in another session, and
// each query of anybody would wait for the processor that a hash has.
func startLow(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
		started <- command.Start()
	}()
	if err := <-started; err != nil {
		return err
	}
	// Where there are no such groups, there is nothing to write to.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", command.Process.Pid), []byte(fmt.Sprint(niceness)), 0)
	return nil
}
