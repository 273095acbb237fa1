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
	schemas := allInOneDatabase(url).configs()
	if _, err := pg.Pending(t.Context(), schemas[0]); err == nil {
		t.Error("an empty database lacks no migration")
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
		if pending, err := pg.Pending(t.Context(), schema); err != nil || len(pending) > 0 {
			t.Errorf("%s lacks %v, %v", schema.Schema, pending, err)
		}
		for i := range outs {
			if !strings.Contains(outs[i].String(), schema.Schema+": up to date\n") {
				t.Errorf("a command says\n%s", outs[i].String())
			}
		}
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
