package main

import (
	"io"
	"testing"
)

// What is missing on the command line is an error of usage, whose exit status is 2.
func TestAMissingFlagIsAnErrorOfUsage(t *testing.T) {
	for _, args := range [][]string{
		{"tenant", "suspend", "--reason", "unpaid"}, {"tenant", "show"}, {"logins"}, {"tenant", "list", "--nothing"},
	} {
		root := commands()
		root.SetArgs(args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); err == nil || exitStatus(err) != 2 {
			t.Errorf("doorward %v returns %v with exit status %d, want 2", args, err, exitStatus(err))
		}
	}
}
