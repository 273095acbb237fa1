// Package purgesql deletes the expired rows of tables (data retention, cleanup), for the stores of services. When
// that is done says package purge.
package purgesql

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

// Rows are the rows of a table that are purged by their age.
type Rows struct {
	Table string
	Time  string // a column with an index, by which the rows expire
	Where string // a condition; empty: all rows
}

// Purger purges the tables of a service. Its store embeds it.
type Purger struct{ db *pg.DB }

// NewPurger returns the purger of the tables of a database.
func NewPurger(db *pg.DB) Purger { return Purger{db} }

// Purge deletes the rows whose time is before a given one, and returns their number.
func (p Purger) Purge(ctx context.Context, rows Rows, before time.Time) (int64, error) {
	return Expired(ctx, p.db.InTx, rows, before)
}

// sliceSize is about how many rows one transaction deletes.
const sliceSize = 1000

// Expired deletes the rows whose time is before a given one, and returns their number. It deletes slices
// of time, the oldest first, each in a transaction of its own and with about sliceSize rows: more only
// where more have the same time. A slice begins where the one before ended, so that it does not read
// again the index entries of deleted rows, which stay until a vacuum. Where another process purges the
// schema, Expired leaves the rest to it.
func Expired(
	ctx context.Context, inTx func(context.Context, func(*pg.Tx) error) error, rows Rows, before time.Time,
) (int64, error) {
	type slice struct {
		Rows int64
		Last time.Time
	}
	query := rows.query()
	var total int64
	for done := (slice{Rows: sliceSize}); done.Rows >= sliceSize; {
		from := done.Last
		done = slice{}
		err := inTx(ctx, func(tx *pg.Tx) error {
			free, err := Lock(ctx, tx)
			if err == nil && free {
				done, err = pg.One[slice](ctx, tx, query, from, before, sliceSize)
			}
			return err
		})
		if err != nil {
			return total, err
		}
		total += done.Rows
	}
	return total, nil
}

// query returns the statement that deletes the rows from the time $1 on and before $2, about $3 of them.
func (r Rows) query() string {
	where := ""
	if r.Where != "" {
		where = ` AND ` + r.Where
	}
	return `WITH deleted AS (
			DELETE FROM ` + r.Table + ` WHERE ` + r.Time + ` >= $1 AND ` + r.Time + ` <= (SELECT max(at) FROM (
				SELECT ` + r.Time + ` AS at FROM ` + r.Table + `
				WHERE ` + r.Time + ` >= $1 AND ` + r.Time + ` < $2` + where + `
				ORDER BY ` + r.Time + ` LIMIT $3) AS oldest)` + where + `
			RETURNING ` + r.Time + ` AS at)
		SELECT count(*) AS rows, coalesce(max(at), $1) AS last FROM deleted`
}

// Lock takes the advisory lock of the purges of the schema until the transaction ends, so that no two
// processes delete the same rows. It reports false where another one has it.
func Lock(ctx context.Context, tx *pg.Tx) (bool, error) {
	return pg.Value[bool](ctx, tx,
		`SELECT pg_try_advisory_xact_lock(hashtextextended('doorward/purge/' || current_schema(), 0))`)
}
