package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
)

// MigrateVariables declares what Migrate reads.
func MigrateVariables(source *env.Source) { source.Declare(new(databases)) }

// Migrate runs the schema migrations of every service (pkg/pg/migrate.go). Each schema is
// migrated under an advisory lock, so that a second command, and a service that starts, wait.
func Migrate(ctx context.Context, source *env.Source, out io.Writer) (err error) {
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var cfg databases
	source.Load(&cfg)
	if err := source.Err(); err != nil {
		return err
	}
	for _, schema := range cfg.configs() {
		db, err := pg.Open(ctx, schema)
		if err != nil {
			return err
		}
		db.Close()
		_, _ = fmt.Fprintf(out, "%s: up to date\n", schema.Schema)
	}
	return nil
}
