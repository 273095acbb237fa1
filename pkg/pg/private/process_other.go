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
func attributes(credential *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: credential}
}

// residents names the postmaster, if the process that the lock file names is one.
func residents(_ string, leader int) []int {
	name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(postmasterPID)).Output()
	if postmasterPID <= 1 || err != nil || !strings.Contains(string(name), "postgres") {
		return nil
	}
	return []int{postmasterPID}
}
