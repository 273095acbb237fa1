package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
)

// migrated brings a database to the schemas of all services: a template of pgtest.New.
func migrated(ctx context.Context, url string) error {
	return Migrate(ctx, env.New([]string{"DATABASE_URL=" + url}), new(bytes.Buffer))
}

func TestMigrationsRunOnceWhenTwoCommandsStartTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	schemas := allInOneDatabase(url).Configs()
	var before bytes.Buffer
	err := CheckMigrations(t.Context(), env.New([]string{"DATABASE_URL=" + url}), &before)
	if !errors.Is(err, ErrMigrationsToDo) || !strings.Contains(before.String(), "directory: 11 to do\n") {
		t.Errorf("of an empty database the check says %v\n%s", err, before.String())
	}
	results := make(chan error, 2)
	var outs [2]bytes.Buffer
	for i := range outs {
		go func() { results <- Migrate(t.Context(), env.New([]string{"DATABASE_URL=" + url}), &outs[i]) }()
	}
	if err := errors.Join(<-results, <-results); err != nil {
		t.Fatal(err)
	}
	for _, schema := range schemas {
		state, err := pg.ReadMigrations(t.Context(), schema)
		if err != nil || len(state.Pending) > 0 {
			t.Errorf("%s lacks %v, %v", schema.Schema, state.Pending, err)
		}
		both := outs[0].String() + outs[1].String()
		if strings.Count(both, schema.Schema+": up to date\n") != 1 || strings.Count(both, " migrations done\n") != len(schemas) {
			t.Errorf("of %s the commands say\n%s", schema.Schema, both)
		}
	}
	var after bytes.Buffer
	if err := CheckMigrations(t.Context(), env.New([]string{"DATABASE_URL=" + url}), &after); err != nil ||
		strings.Count(after.String(), ": up to date\n") != len(schemas) {
		t.Errorf("afterwards the check says %v\n%s", err, after.String())
	}
}

func TestMigrationsNeedADatabase(t *testing.T) {
	for _, environ := range [][]string{
		{"DOORWARD_DATA_DIR=" + t.TempDir()},
		{"OAUTH_DATABASE_URL=postgres://localhost/none"},
	} {
		if err := Migrate(t.Context(), env.New(environ), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
			t.Errorf("the migration with %v returned %v", environ, err)
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(rotateEnv) != "" {
		os.Exit(rotateInProcess())
	}
	pgtest.Main(m)
}
