//go:build !linux

package pwhash

import (
	"errors"
	"os/exec"
)

const (
	lowest = 19
	enough = 5
)

// startLow starts a process. Its priority is lowered on Linux alone.
func startLow(command *exec.Cmd) error { return command.Start() }

// adviseHuge does nothing here.
func adviseHuge([]byte) {}

// setPriority fails: there are no priorities of sessions.
func setPriority(int, int) error { return errors.ErrUnsupported }
