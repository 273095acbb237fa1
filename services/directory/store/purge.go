package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// EndedCounts are the counters whose window has ended, for the purge.
var EndedCounts = counter.Ended

// OperatorEvents is the record of operators, whose rows are kept for OperatorEventAge.
var OperatorEvents = operatorlog.Rows

// OperatorEventAge is how long an event of the record is kept.
const OperatorEventAge = operatorlog.Retention

// Purge deletes the rows of a table whose time is before a given one.
func (s *Store) Purge(ctx context.Context, rows purgesql.Rows, before time.Time) error {
	_, err := s.Purger.Purge(ctx, rows, before)
	return err
}

// LockPurge takes the lock of the purges until the transaction ends. It reports false where another process
// has it.
func (tx *Tx) LockPurge(ctx context.Context) (bool, error) { return purgesql.Lock(ctx, tx.Tx.Tx) }
