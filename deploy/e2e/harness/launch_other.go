//go:build !linux

package harness

import (
	"os/exec"
	"syscall"
)

// launch starts the command in a process group of its own, so that a Ctrl-C in
// the terminal reaches only us and we stop our children in order. Without
// Linux there is no way to have children die when we are killed.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
