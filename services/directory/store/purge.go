package store

import (
	"context"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// Expiring are the rows of a table that are purged by their age.
type Expiring = purgesql.Rows

// EndedCounts are the counters whose window has ended, for the purge.
var EndedCounts = counter.Ended

// LockPurge takes the lock of the purges until the transaction ends. It reports false where another process
// has it.
func (tx *Tx) LockPurge(ctx context.Context) (bool, error) { return purgesql.Lock(ctx, tx.Tx.Tx) }
