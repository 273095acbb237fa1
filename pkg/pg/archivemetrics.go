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

// archiveState is what PostgreSQL says of the archive of its write-ahead log.
type archiveState struct {
	Failed int64
	Age    float64 // seconds since the last file was archived
}

// archive returns the state of the archive, and no row where PostgreSQL archives nothing.
func (db *DB) archive(ctx context.Context) ([]archiveState, error) {
	return All[archiveState](ctx, db, `SELECT failed_count AS failed,
		extract(epoch FROM clock_timestamp() - coalesce(last_archived_time, stats_reset))::float8 AS age
		FROM pg_stat_archiver WHERE current_setting('archive_mode') <> 'off'`)
}

// registerArchiveMetrics registers the metrics of the archive of the write-ahead log, which are those of the whole
// server. It asks at most every sizesEvery.
func (db *DB) registerArchiveMetrics() (metric.Registration, error) {
	meter := otel.Meter("pg")
	age, err := meter.Float64ObservableGauge("doorward_database_archive_age_seconds",
		metric.WithDescription("time since PostgreSQL has archived a file of its write-ahead log, where it archives"), metric.WithUnit("s"))
	if err != nil {
		return nil, err
	}
	failures, err := meter.Int64ObservableCounter("doorward_database_archive_failures_total",
		metric.WithDescription("attempts of PostgreSQL to archive a file of its write-ahead log that failed"))
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var known []archiveState
	var readAt time.Time
	of := metric.WithAttributes(attribute.String("schema", db.schema))
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		mu.Lock()
		defer mu.Unlock()
		var err error
		if time.Since(readAt) >= sizesEvery {
			ctx, cancel := telemetry.QueryContext(ctx)
			defer cancel()
			known, err = db.archive(ctx)
			readAt = time.Now()
		}
		for _, state := range known {
			o.ObserveFloat64(age, state.Age+time.Since(readAt).Seconds(), of)
			o.ObserveInt64(failures, state.Failed, of)
		}
		return err
	}, age, failures)
}
