package pwhash

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages in a part of the heap that nothing was written to
// yet, and to which the hashes come when it is collected: argon2 reads all over its
// memory, and looking up the addresses of small pages costs it a tenth of its time.
// Where the kernel has none, nothing is lost.
func adviseHuge(part []byte) { _ = unix.Madvise(part, unix.MADV_HUGEPAGE) }

const (
	// niceness is the priority of the threads of a child, which nobody may raise
	// again: low, and not the lowest, which gets less than a hundredth of a busy
	// machine.
	niceness = 10
	// lowest is the priority of its session, which can be raised to enough.
	lowest = 19
	enough = 5
)

// startLow starts a process of low priority in a session of its own, so that a
// Ctrl-C reaches the parent alone. Two things share the processors out. One is that
// of the session, where the kernel groups processes by it (sched(7), autogroup):
// without it a hash would count as much as PostgreSQL, which is in another session,
// and each query of anybody would wait for the processor that a hash has. The other,
// where there are no such groups, is the priority of a thread: one that is thrown
// away afterwards lowers its own, which the process and all its threads inherit.
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
	_ = setPriority(command.Process.Pid, lowest)
	return nil
}

// setPriority sets the priority of a process's session. It fails where the kernel
// does not group by sessions, and where it was set a moment ago.
func setPriority(process, niceness int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", process), []byte(strconv.Itoa(niceness)), 0)
}
