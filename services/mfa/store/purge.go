package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// Expiring are the rows of a table that are purged by their age.
type Expiring = purgesql.Rows

// EndedCounts are the counters whose window has ended, for the purge.
var EndedCounts = counter.Ended

// Purge deletes the rows whose time is before a given one, and returns their number.
func (s *Store) Purge(ctx context.Context, rows purgesql.Rows, before time.Time) (int64, error) {
	return purgesql.Expired(ctx, s.db.InTx, rows, before)
}
