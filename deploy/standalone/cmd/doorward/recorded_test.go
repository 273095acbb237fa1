package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// notRecorded are the commands that change nothing for the record of operators, or are a step of each start, and those
// that are recorded in the transaction of their change (services/directory/operator).
var notRecorded = []string{
	"doorward audit operator", "doorward cells", "doorward deadletters list", "doorward doctor", "doorward explain", "doorward logins",
	"doorward migrate", "doorward tenant key", "doorward tenant list", "doorward tenant show", "doorward tenant usage", "doorward version",
	"doorward tenant delete", "doorward tenant resume", "doorward tenant suspend",
}

// A new command is recorded, or is named above.
func TestEachCommandThatChangesSomethingIsRecorded(t *testing.T) {
	var names []string
	var look func(command *cobra.Command)
	look = func(command *cobra.Command) {
		isRecorded := command.Annotations[isRecorded] != ""
		if command.RunE != nil && isRecorded == slices.Contains(notRecorded, command.CommandPath()) {
			t.Errorf("%s is recorded: %t", command.CommandPath(), isRecorded)
		}
		if isRecorded {
			names = append(names, command.CommandPath())
		}
		for _, child := range command.Commands() {
			look(child)
		}
	}
	look(commands())
	want := []string{
		"doorward admin key", "doorward backup", "doorward deadletters drop", "doorward deadletters retry", "doorward events rewind",
		"doorward keys rotate", "doorward restore", "doorward tenant create", "doorward tenant export", "doorward tenant import",
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("these commands are recorded: %q, want %q", names, want)
	}
}
