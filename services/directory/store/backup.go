package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

// RecordBackup records when a backup of the deployment was complete. An earlier one than is recorded changes nothing.
func (tx *Tx) RecordBackup(ctx context.Context, at time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO backups (completed_at) VALUES ($1)
		ON CONFLICT (only_row) DO UPDATE SET completed_at = greatest(backups.completed_at, excluded.completed_at)`, at)
	return err
}

// LastBackup returns when the last backup of the deployment was complete, or apierr.NotFound if none is recorded.
func (s *Store) LastBackup(ctx context.Context) (time.Time, error) {
	return pg.Value[time.Time](ctx, s.db, `SELECT completed_at FROM backups`)
}
