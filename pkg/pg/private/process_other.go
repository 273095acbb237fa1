//go:build unix && !linux

package private

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes make a child in a group of its own. It outlives a killed launcher
// here; the next one stops it.
func attributes(credential *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: credential}
}

// residents names the postmaster, if the process that the lock file names is one.
func residents(_ string, leader int) []int {
	name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(leader)).Output()
	if leader <= 1 || err != nil || !strings.Contains(string(name), "postgres") {
		return nil
	}
	return []int{leader}
}
