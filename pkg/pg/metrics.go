package pg

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/telemetry"
)

// sizesEvery bounds how often a process asks for the sizes of its tables.
const sizesEvery = time.Minute

type tableSize struct {
	Name  string
	Rows  int64
	Bytes int64
}

// observe makes the metrics of the pool and of the schema's tables, until the
// pool is closed.
func (db *DB) observe(schema string) error {
	meter, of := otel.Meter("pg"), attribute.String("schema", schema)
	connections, err := meter.Int64ObservableGauge("doorward_db_connections",
		metric.WithDescription("connections of a service's pool by state: used, idle, or max, which is its size"))
	if err != nil {
		return err
	}
	waits, err := meter.Float64ObservableCounter("doorward_db_wait_seconds_total",
		metric.WithDescription("time that queries waited for a connection of the pool"), metric.WithUnit("s"))
	if err != nil {
		return err
	}
	rows, err := meter.Int64ObservableGauge("doorward_db_table_rows", metric.WithDescription("rows of a table, as PostgreSQL estimates them"))
	if err != nil {
		return err
	}
	bytes, err := meter.Int64ObservableGauge("doorward_db_table_bytes",
		metric.WithDescription("size of a table with its indexes"), metric.WithUnit("By"))
	if err != nil {
		return err
	}
	age, err := meter.Float64ObservableGauge("doorward_db_report_age_seconds",
		metric.WithDescription("time since PostgreSQL has shown that it has no change left to report to caches"), metric.WithUnit("s"))
	if err != nil {
		return err
	}
	sizes := db.sizes(schema)
	db.metrics, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		pool := db.Stat()
		for state, n := range map[string]int32{"used": pool.AcquiredConns(), "idle": pool.IdleConns(), "max": pool.MaxConns()} {
			o.ObserveInt64(connections, int64(n), metric.WithAttributes(of, attribute.String("state", state)))
		}
		o.ObserveFloat64(waits, pool.EmptyAcquireWaitTime().Seconds(), metric.WithAttributes(of))
		if since, known := db.reports.age(); known {
			o.ObserveFloat64(age, since.Seconds(), metric.WithAttributes(of))
		}
		tables, err := sizes(telemetry.Quiet(ctx))
		for _, table := range tables {
			labels := metric.WithAttributes(of, attribute.String("table", table.Name))
			o.ObserveInt64(rows, table.Rows, labels)
			o.ObserveInt64(bytes, table.Bytes, labels)
		}
		return err
	}, connections, waits, age, rows, bytes)
	return err
}

// sizes returns a function that reads the sizes of the tables at most every
// sizesEvery.
func (db *DB) sizes(schema string) func(context.Context) ([]tableSize, error) {
	var mu sync.Mutex
	var known []tableSize
	var readAt time.Time
	return func(ctx context.Context) (_ []tableSize, err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(readAt) < sizesEvery {
			return known, nil
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		known, err = All[tableSize](ctx, db, `
			SELECT relname::text AS name, greatest(reltuples, 0)::bigint AS rows, pg_total_relation_size(oid) AS bytes
			FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'`, schema)
		readAt = time.Now()
		return known, err
	}
}

// Close closes the pool and ends its metrics.
func (db *DB) Close() {
	if db.metrics != nil {
		_ = db.metrics.Unregister() // never fails
	}
	if db.sessions != nil {
		db.sessions.Close()
	}
	db.Pool.Close()
}
