package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	directorystore "github.com/doorward/doorward/services/directory/store"
)

// Change is a command that changes something, for the record of operators.
type Change struct {
	Command string // such as keys rotate
	Reason  string // empty: none was given
	// MakesDatabase says that the database is there only when the command is done.
	MakesDatabase bool
}

// recordConfig is what Record reads.
type recordConfig struct {
	Directory secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" help:"PostgreSQL of the directory service"`
	Operator  operatorConfig
}

// RecordVariables declares what Record reads.
func RecordVariables(source *env.Source) { source.Declare(new(recordConfig)) }

// Record runs a command that changes something, and records it with its outcome
// (docs/operations.md#record-of-operators). run sets the tenant of the event where the command is about one. Where
// nothing can be recorded the command does not run. One that was called wrongly is not recorded.
func Record(ctx context.Context, source *env.Source, change Change, run func(*operatorlog.Event) error) error {
	now := time.Now().UTC()
	e := operatorlog.Event{ID: id.New(now), At: now, Command: change.Command, Operator: env.Load[recordConfig](source).Operator.name()}
	if change.Reason != "" {
		e.Reason = &change.Reason
	}
	if change.MakesDatabase {
		return recordMade(ctx, source, e, run(&e))
	}
	db, closeDB, err := openRecord(ctx, source)
	if err != nil {
		return err
	}
	err = run(&e)
	if !IsUsage(err) {
		err = errors.Join(err, record(context.WithoutCancel(ctx), db, withOutcome(e, err)))
	}
	return errors.Join(err, closeDB())
}

// recordMade records a command that makes the database, with its error. Where it has made none, the audit line is all
// that there is.
func recordMade(ctx context.Context, source *env.Source, e operatorlog.Event, outcome error) error {
	if IsUsage(outcome) {
		return outcome
	}
	ctx, e = context.WithoutCancel(ctx), withOutcome(e, outcome)
	db, closeDB, err := openRecord(ctx, source)
	if err != nil && outcome != nil {
		operatorlog.Audit(ctx, e)
		return outcome
	}
	if err != nil {
		return err
	}
	return errors.Join(outcome, record(ctx, db, e), closeDB())
}

// withOutcome returns an event with the outcome of a command that has ended with an error, or with nil.
func withOutcome(e operatorlog.Event, err error) operatorlog.Event {
	e.Outcome = operatorlog.Done
	if err != nil {
		e.Outcome = operatorlog.Refused
	}
	return e
}

// openRecord opens the database of the record, whether the product runs or not. It changes no variable of the source.
func openRecord(ctx context.Context, source *env.Source) (db *pg.DB, closeDB func() error, err error) {
	url, stop := env.Load[recordConfig](source).Directory, func() error { return nil }
	if !namesADatabase(source) {
		started, _, end, err := startDatabase(ctx, FromEnv(source))
		if err != nil {
			return nil, nil, err
		}
		url, stop = secure.Secret(started), end
	}
	if url == "" {
		return nil, nil, UsageError("DATABASE_URL or DIRECTORY_DATABASE_URL is missing: what operators do is recorded there")
	}
	if db, err = pg.OpenWithoutMigrating(ctx, directorystore.Config(url)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the record of operators: %w", err), stop())
	}
	return db, func() error {
		db.Close()
		return stop()
	}, nil
}

// record records an event whose change is made.
func record(ctx context.Context, db *pg.DB, e operatorlog.Event) error {
	if err := operatorlog.Record(ctx, db, e); err != nil {
		return fmt.Errorf("record the command: %w", err)
	}
	operatorlog.Audit(ctx, e)
	return nil
}
