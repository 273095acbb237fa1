// Package backuprecord records when the last backup of the deployment was complete, in a table of the directory
// service's schema: for doorward doctor, and for doorward_backup_age_seconds (docs/backup.md).
package backuprecord

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the table in a service's schema.
func Migrations() fs.FS { return pg.Embedded(files) }

// Record records when a backup was complete. An earlier one than is recorded changes nothing.
func Record(ctx context.Context, db pg.Querier, at time.Time) error {
	_, err := pg.Exec(ctx, db, `INSERT INTO backups (completed_at) VALUES ($1)
		ON CONFLICT (only_row) DO UPDATE SET completed_at = greatest(backups.completed_at, excluded.completed_at)`, at)
	return err
}

// Last returns when the last backup was complete, or apierr.NotFound if none is recorded.
func Last(ctx context.Context, db pg.Querier) (time.Time, error) {
	return pg.Value[time.Time](ctx, db, `SELECT completed_at FROM backups`)
}

// Metric is the worker that reports doorward_backup_age_seconds until ctx ends: the time since the last backup, or,
// as long as none is recorded, since the schema was made.
func Metric(db *pg.DB) func(context.Context) error {
	return func(ctx context.Context) error {
		meter := otel.Meter("backup")
		age, err := meter.Float64ObservableGauge("doorward_backup_age_seconds",
			metric.WithDescription("time since the last backup, or since the schema was made if none is recorded"),
			metric.WithUnit("s"))
		if err != nil {
			return err
		}
		registered, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
			ctx, cancel := telemetry.QueryContext(ctx)
			defer cancel()
			seconds, err := pg.Value[float64](ctx, db, `SELECT extract(epoch FROM clock_timestamp() - coalesce(
				(SELECT completed_at FROM backups), (SELECT min(tstamp) FROM migrations)::timestamptz))::float8`)
			if err != nil {
				return err
			}
			o.ObserveFloat64(age, seconds)
			return nil
		}, age)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return registered.Unregister()
	}
}
