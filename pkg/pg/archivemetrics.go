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
	Age    float64 // seconds since the last file was archived; 0 where nothing is archived
}

func (db *DB) archive(ctx context.Context) (archiveState, error) {
	return One[archiveState](ctx, db,
		`SELECT failed_count AS failed, CASE WHEN current_setting('archive_mode') = 'off' THEN 0
		ELSE extract(epoch FROM clock_timestamp() - coalesce(last_archived_time, stats_reset)) END::float8 AS age
		FROM pg_stat_archiver`)
}

// registerArchiveMetrics registers the metrics of the archive of the write-ahead log, which are those of the whole
// server. It asks at most every sizesEvery.
func (db *DB) registerArchiveMetrics() (metric.Registration, error) {
	meter := otel.Meter("pg")
	age, err := meter.Float64ObservableGauge("doorward_database_archive_age_seconds",
		metric.WithUnit("s"),
		metric.WithDescription(
			"time since PostgreSQL has archived a file of its write-ahead log; 0 where it archives nothing"))
	if err != nil {
		return nil, err
	}
	failures, err := meter.Int64ObservableCounter("doorward_database_archive_failures_total",
		metric.WithDescription("attempts of PostgreSQL to archive a file of its write-ahead log that failed"))
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var known archiveState
	var readAt time.Time
	of := metric.WithAttributes(attribute.String("schema", db.schema))
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(readAt) >= sizesEvery {
			ctx, cancel := telemetry.QueryContext(ctx)
			defer cancel()
			state, err := db.archive(ctx)
			if err != nil {
				return err
			}
			known, readAt = state, time.Now()
		}
		o.ObserveFloat64(age, known.Age, of)
		o.ObserveInt64(failures, known.Failed, of)
		return nil
	}, age, failures)
}
