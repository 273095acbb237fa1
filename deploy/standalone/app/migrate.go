package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
)

// ErrMigrationsToDo is returned by CheckMigrations when a schema lacks migrations.
var ErrMigrationsToDo = errors.New("there are migrations to do: run doorward migrate")

// MigrateVariables declares what Migrate reads.
func MigrateVariables(source *env.Source) { source.Declare(new(Databases)) }

// Migrate runs the schema migrations of every service (pkg/pg/migrate.go). Each schema is
// migrated under an advisory lock, so that a second command, and a service that starts, wait.
func Migrate(ctx context.Context, source *env.Source, out io.Writer) error {
	return eachSchema(ctx, source, func(schema pg.Config, state pg.MigrationState) error {
		if len(state.Pending) == 0 {
			_, _ = fmt.Fprintf(out, "%s: up to date\n", schema.Schema)
			return nil
		}
		done, err := pg.Migrate(ctx, schema)
		switch {
		case err != nil:
			return err
		case done == 0: // another command has done them
			_, _ = fmt.Fprintf(out, "%s: up to date\n", schema.Schema)
		default:
			_, _ = fmt.Fprintf(out, "%s: %d migrations done\n", schema.Schema, done)
		}
		return nil
	})
}

// CheckMigrations says how many migrations of each service are to be done, and changes nothing. If there are any it
// returns ErrMigrationsToDo.
func CheckMigrations(ctx context.Context, source *env.Source, out io.Writer) error {
	lacks := false
	err := eachSchema(ctx, source, func(schema pg.Config, state pg.MigrationState) error {
		if len(state.Pending) == 0 {
			_, _ = fmt.Fprintf(out, "%s: up to date\n", schema.Schema)
			return nil
		}
		lacks = true
		_, _ = fmt.Fprintf(out, "%s: %d to do\n", schema.Schema, len(state.Pending))
		return nil
	})
	if err == nil && lacks {
		return ErrMigrationsToDo
	}
	return err
}

// eachSchema calls do for the schema of each service with the state of its migrations. A schema that is newer than
// this release is an error that names the migrations which are not known.
func eachSchema(ctx context.Context, source *env.Source, do func(pg.Config, pg.MigrationState) error) (err error) {
	cfg, stop, err := LoadWithDatabase[Databases](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, schema := range cfg.Configs() {
		state, err := pg.ReadMigrations(ctx, schema)
		if err != nil {
			return fmt.Errorf("%s: %w", schema.Schema, err)
		}
		if len(state.Unknown) > 0 {
			return fmt.Errorf("the schema %s is newer than this release, which does not know its migrations %s",
				schema.Schema, strings.Join(state.Unknown, ", "))
		}
		if err := do(schema, state); err != nil {
			return err
		}
	}
	return nil
}
