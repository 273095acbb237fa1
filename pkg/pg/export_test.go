package pg

import (
	"context"
	"time"
)

// Writes returns how many writes the worker of Analyze knows of.
func Writes(db *DB) int64 { return db.writes.Load() }

// Try writes once, as Run does again and again.
func (p *WriteProbe) Try(ctx context.Context) error { return p.try(ctx) }

// MigrationLock is the key of the advisory lock of the migrations of a schema.
func MigrationLock(schema string) int64 { return lockKey("migrate", schema) }

// MayRun is mayRun.
var MayRun = mayRun

// Clock returns the difference of the clocks at the last write of a probe, for a process whose clock is now.
func (p *WriteProbe) Clock(ctx context.Context, now func() time.Time) (time.Duration, error) {
	p.now = now
	err := p.try(ctx)
	return p.clock, err
}
