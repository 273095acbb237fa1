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

// registerMetrics registers the metrics of the connection pool and of the tables of the schema, until
// the pool is closed.
func (db *DB) registerMetrics() error {
	meter, own := otel.Meter("pg"), []attribute.KeyValue{attribute.String("schema", db.schema)}
	connections, err := meter.Int64ObservableGauge("doorward_db_connections",
		metric.WithDescription("connections of a service's pool by state: used, idle, or max, which is its size"))
	if err != nil {
		return err
	}
	waits, err := meter.Float64ObservableCounter("doorward_db_wait_seconds_total",
		metric.WithDescription("time that queries waited for a connection of the pool, or for their tenant's share "+
			"of it"),
		metric.WithUnit("s"))
	if err != nil {
		return err
	}
	rows, err := meter.Int64ObservableGauge("doorward_db_table_rows",
		metric.WithDescription("rows of a table, as PostgreSQL estimates them"))
	if err != nil {
		return err
	}
	bytes, err := meter.Int64ObservableGauge("doorward_db_table_bytes",
		metric.WithDescription("size of a table with its indexes"), metric.WithUnit("By"))
	if err != nil {
		return err
	}
	age, err := meter.Float64ObservableGauge("doorward_db_report_age_seconds",
		metric.WithDescription("staleness of the caches: time since PostgreSQL last had no change left to report "+
			"to them"),
		metric.WithUnit("s"))
	if err != nil {
		return err
	}
	of, sizes := metric.WithAttributes(own...), db.sizes()
	db.metrics, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		pool := db.Stat()
		for state, n := range map[string]int32{"used": pool.AcquiredConns(), "idle": pool.IdleConns(),
			"max": pool.MaxConns()} {
			o.ObserveInt64(connections, int64(n), of, metric.WithAttributes(attribute.String("state", state)))
		}
		o.ObserveFloat64(waits, (pool.EmptyAcquireWaitTime() + db.tenantQuota.waitTime()).Seconds(), of)
		if since, known := db.NotificationAge(); known {
			o.ObserveFloat64(age, since.Seconds(), of)
		}
		tables, err := sizes(ctx)
		for _, table := range tables {
			label := metric.WithAttributes(attribute.String("table", table.Name))
			o.ObserveInt64(rows, table.Rows, of, label)
			o.ObserveInt64(bytes, table.Bytes, of, label)
		}
		return err
	}, connections, waits, age, rows, bytes)
	return err
}

// sizes returns a function that reads the sizes of the tables at most every
// sizesEvery.
func (db *DB) sizes() func(context.Context) ([]tableSize, error) {
	var mu sync.Mutex
	var known []tableSize
	var readAt time.Time
	return func(ctx context.Context) (_ []tableSize, err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(readAt) < sizesEvery {
			return known, nil
		}
		ctx, cancel := telemetry.QueryContext(ctx)
		defer cancel()
		known, err = All[tableSize](ctx, db, `
			SELECT relname::text AS name, greatest(reltuples, 0)::bigint AS rows, pg_total_relation_size(oid) AS bytes
			FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'`, db.schema)
		readAt = time.Now()
		return known, err
	}
}

// Close closes the pool and ends its metrics.
func (db *DB) Close() {
	if db.metrics != nil {
		_ = db.metrics.Unregister() // never fails
	}
	db.Listener.Close()
	db.Pool.Close()
}
