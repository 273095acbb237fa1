package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/operatorlog"
)

// runRecorded is the run of a command that changes something. It sets the tenant of the event, if it is about one.
type runRecorded func(c *cobra.Command, args []string, e *operatorlog.Event) error

// isRecorded is the annotation of a command that app.Record records.
const isRecorded = "recorded"

// recorded makes a command one that changes something: app.Record records it, with the flag --reason.
func recorded(command *cobra.Command, run runRecorded) *cobra.Command {
	return recordedAs(command, app.Change{}, run)
}

func recordedAs(command *cobra.Command, change app.Change, run runRecorded) *cobra.Command {
	command.Flags().StringVar(&change.Reason, "reason", "", "why, for the record of operators")
	command.Annotations = map[string]string{isRecorded: "true"}
	command.RunE = func(c *cobra.Command, args []string) error {
		change.Command = strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		return app.Record(c.Context(), source, change, func(e *operatorlog.Event) error { return run(c, args, e) })
	}
	return command
}
