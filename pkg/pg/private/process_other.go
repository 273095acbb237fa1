//go:build unix && !linux

package private

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes are those of a child process in a process group of its own. It is not stopped when
// this process is killed; the next start stops it (stopOrphanedServer).
func processAttributes(credential *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: credential}
}

// serverProcesses returns the process id of the lock file, if that process is a postmaster.
func serverProcesses(_ string, postmasterPID int) []int {
	name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(postmasterPID)).Output()
	if postmasterPID <= 1 || err != nil || !strings.Contains(string(name), "postgres") {
		return nil
	}
	return []int{postmasterPID}
}
