package pg

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	analyzeEvery = 3 * time.Second
	// fewRows of a table need no statistics: any plan is good for them.
	fewRows = 20
)

// Analyze is the worker that gathers statistics of the service's tables as they
// grow, until ctx ends. PostgreSQL does so too, but looks around once a minute by
// default: a plan that was made for a table which it believes to be empty reads the whole of
// it, again and again, and the first minute of a deployment is that in which
// somebody tries it or moves their accounts in.
func (db *DB) Analyze(ctx context.Context) error {
	ctx = telemetry.Quiet(ctx)
	ticker := time.NewTicker(analyzeEvery)
	defer ticker.Stop()
	for failing := false; ; {
		err := db.analyzeGrown(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			slog.WarnContext(ctx, "statistics wait until PostgreSQL gathers them", "error", err.Error())
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// analyzeGrown gathers statistics of the tables that are half as large again as
// when they were last gathered. A table of which they never were has -1 rows.
func (db *DB) analyzeGrown(ctx context.Context) error {
	tables, err := Values[string](ctx, db, `SELECT quote_ident(c.relname) FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
		WHERE s.schemaname = current_schema() AND s.n_live_tup >= $1 AND s.n_live_tup >= 1.5 * c.reltuples`, fewRows)
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
