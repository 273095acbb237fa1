package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
)

// soak sends the shares of the tenants for a long time (endurance test) and prints, twenty
// times, the figures that should not grow: latencies, memory and tables (leaks).
func soak(ctx context.Context, s *system, o options) error {
	tenants, err := s.copyTenants(ctx, 1, o.tenants)
	if err != nil {
		return err
	}
	for n, began := 1, time.Now(); n <= 20; n++ {
		// A token of the last interval may expire in this one.
		for _, t := range tenants {
			if err := s.getToken(ctx, t); err != nil {
				return err
			}
		}
		found := s.send(ctx, o.length/20, stream{tenants: tenants, mix: share, rate: o.share * float64(o.tenants), maxInFlight: 500})
		if err := ctx.Err(); err != nil {
			return err
		}
		tables, err := s.tables(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%4.0f s: %d requests, p50 %.1f ms, p99 %.1f ms, failures %s; load average %s\n    memory in MiB: %s\n    tables in MiB: %s\n",
			time.Since(began).Seconds(), found.Due(), percentile(found.all(), 0.5), percentile(found.all(), 0.99), found.failures(),
			loadAverage(), listed(s.memory(), "%.0f"), listed(tables, "%.2f"))
	}
	return nil
}

// tables are the sizes of the six largest tables in MiB.
func (s *system) tables(ctx context.Context) (map[string]float64, error) {
	found := map[string]float64{}
	err := harness.InDatabase(ctx, s.database, func(db *pgx.Conn) error {
		// An error of the query comes with its rows.
		rows, _ := db.Query(ctx, `SELECT relnamespace::regnamespace || '.' || relname, pg_total_relation_size(oid) / 1048576.0
			FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text = ANY($1) ORDER BY 2 DESC LIMIT 6`, deployment.Services)
		var name string
		var size float64
		_, err := pgx.ForEachRow(rows, []any{&name, &size}, func() error {
			found[name] = size
			return nil
		})
		return err
	})
	return found, err
}

func listed(values map[string]float64, format string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+" "+fmt.Sprintf(format, values[name]))
	}
	return strings.Join(parts, ", ")
}
