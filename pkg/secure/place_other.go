//go:build !linux

package secure

import "os/exec"

// startLow starts a process. Its priority is lowered on Linux alone.
func startLow(command *exec.Cmd) error { return command.Start() }
