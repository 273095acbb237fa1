package pg

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	analyzeEvery = 3 * time.Second
	// analyzeAfter is how many times the worker checks the tables after the last write,
	// because PostgreSQL updates its row counts with a delay.
	analyzeAfter = 3
	// smallTable is a number of rows that need no statistics: any plan is good.
	smallTable = 20
)

// Analyze is the worker that updates the planner statistics of the tables (ANALYZE) as they grow, until
// ctx ends. The autovacuum of PostgreSQL does so too, but by default only once a minute: until then
// PostgreSQL plans as for empty tables, with a sequential scan for each query. The worker sleeps
// while the process writes nothing.
func (db *DB) Analyze(ctx context.Context) error {
	ctx = telemetry.Untraced(ctx)
	ticker := time.NewTicker(analyzeEvery)
	defer ticker.Stop()
	failing, seen, looks := false, int64(-1), 0
	for {
		if written := db.writes.Load(); written != seen {
			seen, looks = written, 0
		}
		if looks < analyzeAfter {
			looks++
			err := db.analyzeGrown(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				slog.WarnContext(ctx, "ANALYZE failed, leaving statistics to autovacuum", "error", err.Error())
			}
			failing = err != nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// analyzeGrown analyzes the tables that have grown by half since they were last analyzed. A table that
// was never analyzed has -1 rows.
func (db *DB) analyzeGrown(ctx context.Context) error {
	tables, err := Values[string](ctx, db,
		`SELECT quote_ident(c.relname) FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
		WHERE s.schemaname = current_schema() AND s.n_live_tup >= $1 AND s.n_live_tup >= 1.5 * c.reltuples`, smallTable)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := Exec(ctx, db, `ANALYZE `+table); err != nil {
			return err
		}
	}
	return nil
}
