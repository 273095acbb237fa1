package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// Purge deletes the rows whose time is before a given one, and returns their number.
func (s *Store) Purge(ctx context.Context, rows purgesql.Rows, before time.Time) (int64, error) {
	return purgesql.Expired(ctx, s.db.InTx, rows, before)
}
