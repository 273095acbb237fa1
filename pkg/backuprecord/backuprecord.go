// Package backuprecord records when the last backup of the deployment was complete, in a table of the directory
// service's schema: for doorward doctor, and for doorward_backup_age_seconds (docs/backup.md).
package backuprecord

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/pg"
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
