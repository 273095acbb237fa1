package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/pkg/env"
)

// RewindVariables declares what RewindEvents reads.
func RewindVariables(source *env.Source) {
	RotateVariables(source)
	DeadLetterVariables(source)
}

// RewindEvents sets the offsets of the consumer groups to what fits databases that were
// restored as they were at a time (point-in-time recovery, docs/backup.md).
func RewindEvents(ctx context.Context, source *env.Source, to string, out io.Writer) (err error) {
	at, err := time.Parse(time.RFC3339Nano, to)
	if err != nil {
		return UsageError(fmt.Sprintf("--to %s: use a time such as 2026-11-22T16:00:00Z", to))
	}
	d, err := OpenDeployment(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	kafka, err := openInspector(source)
	if err != nil {
		return err
	}
	defer kafka.Close()
	reread, skipped, err := kafka.Rewind(ctx, at, d.DBs)
	_, _ = fmt.Fprintf(out, "%d events are read again, %d are passed over\n", reread, skipped)
	return err
}
