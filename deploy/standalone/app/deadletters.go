package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
)

// DeadLetterSelection selects dead letters; an empty field selects all.
type DeadLetterSelection struct{ Topic, Group, ID string }

func (s DeadLetterSelection) matches(letter outbox.DeadLetter) bool {
	return (s.Topic == "" || s.Topic == letter.Topic) && (s.Group == "" || s.Group == letter.Group) &&
		(s.ID == "" || s.ID == letter.ID)
}

// DeadLetterVariables declares what the commands for dead letters read.
func DeadLetterVariables(source *env.Source) { source.Declare(new(outbox.Config)) }

// ResolveVariables declares what ResolveDeadLetters, and its record, read.
func ResolveVariables(source *env.Source) {
	RecordVariables(source)
	DeadLetterVariables(source)
}

// openInspector connects to Kafka.
func openInspector(source *env.Source) (*outbox.Inspector, error) {
	if err := resolveBroker(source); err != nil {
		return nil, err
	}
	var cfg outbox.Config
	source.Load(&cfg)
	return outbox.NewInspector(cfg)
}

// ListDeadLetters writes the selected dead letters to out, as one JSON object a line.
func ListDeadLetters(ctx context.Context, source *env.Source, selection DeadLetterSelection, out io.Writer) error {
	kafka, err := openInspector(source)
	if err != nil {
		return err
	}
	defer kafka.Close()
	letters, err := kafka.DeadLetters(ctx)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	for _, letter := range letters {
		if !selection.matches(letter) {
			continue
		}
		if err := lines.Encode(letter); err != nil {
			return err
		}
	}
	return nil
}

// ResolveDeadLetters sends the selected dead letters to their consumers once more, or
// drops them, and takes them off the list.
func ResolveDeadLetters(
	ctx context.Context, source *env.Source, retry bool, selection DeadLetterSelection, out io.Writer,
) error {
	kafka, err := openInspector(source)
	if err != nil {
		return err
	}
	defer kafka.Close()
	n, err := kafka.Resolve(ctx, retry, selection.matches)
	_, _ = fmt.Fprintf(out, "%d dead letters were %s\n", n, map[bool]string{true: "sent again", false: "dropped"}[retry])
	return err
}
