package private

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// processAttributes are those of a child process that gets a signal when this process dies.
func processAttributes(credential *syscall.Credential, death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death, Credential: credential}
}

// serverProcesses returns the process ids of the server on a data folder: the postmaster and all its
// children have the folder as their working directory.
func serverProcesses(data string, _ int) []int {
	var found []int
	entries, _ := filepath.Glob("/proc/[0-9]*/cwd") // the only error is a bad pattern
	for _, entry := range entries {
		if dir, err := os.Readlink(entry); err != nil || dir != data {
			continue
		}
		process := filepath.Dir(entry)
		if name, err := os.ReadFile(filepath.Join(process, "comm")); err != nil || string(name) != "postgres\n" {
			continue // another program, such as a shell
		}
		pid, _ := strconv.Atoi(filepath.Base(process))
		found = append(found, pid)
	}
	return found
}
