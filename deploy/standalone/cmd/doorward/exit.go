package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/app"
)

// The exit statuses of commands that fail (docs/operations.md#commands).
const (
	exitRefused     = 1 // a check failed, or what was asked for is refused or unknown: nothing has changed
	exitUsage       = 2 // a wrong call, variables of the environment, or no data folder
	exitUnreachable = 6 // a server is out of reach
)

// execute runs the command that the arguments of the process name, writes its error to stderr, and returns its exit status.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	called := false // with the arguments that it takes
	markCalled(root, &called)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(stderr, "doorward:", err)
	switch {
	case !called || app.IsUsage(err):
		return exitUsage
	case app.IsUnreachable(err):
		return exitUnreachable
	}
	return exitRefused
}

// markCalled makes each command set called when it runs. One that only has commands below it shows its help, and
// refuses a name that none of them has.
func markCalled(command *cobra.Command, called *bool) {
	for _, child := range command.Commands() {
		markCalled(child, called)
	}
	if command.RunE == nil {
		command.Args = cobra.NoArgs
		command.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		return
	}
	run := command.RunE
	command.RunE = func(c *cobra.Command, args []string) error {
		*called = true
		return run(c, args)
	}
}
