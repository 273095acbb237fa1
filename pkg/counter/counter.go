// Package counter has the counters of rate limits in fixed windows, in a table of the service's
// schema: a limit applies to all replicas together, and a rollback takes back what the transaction
// has counted. (The rate limits of requests are in gateway/ratelimit.go.)
package counter

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the table of counters in a service's schema.
func Migrations() fs.FS { return pg.Embedded(files) }

// Counters are the counters of a service in a transaction. Its store embeds them
// in its Tx.
type Counters struct{ tx pg.Querier }

// In returns the counters in a transaction.
func In(tx pg.Querier) Counters { return Counters{tx} }

// Count is a counter in a fixed window, which ends at EndsAt.
type Count struct {
	Count  int
	EndsAt time.Time
}

// Count returns the counter of a subject at a time. A caller that decides by the counter must
// hold a lock that all transactions which count the subject hold too.
func (c Counters) Count(ctx context.Context, tenant id.ID, subject string, now time.Time) (Count, error) {
	count, err := pg.One[Count](ctx, c.tx,
		`SELECT count, ends_at FROM counts WHERE tenant_id = $1 AND subject = $2 AND ends_at > $3`, tenant,
		subject, now)
	if errors.Is(err, apierr.NotFound) {
		return Count{}, nil
	}
	return count, err
}

// AddCount increments the counter of a subject and returns it. Transactions that
// count the same subject wait for each other.
func (c Counters) AddCount(
	ctx context.Context, tenant id.ID, subject string, now time.Time, window time.Duration,
) (Count, error) {
	return pg.One[Count](ctx, c.tx, `INSERT INTO counts AS c (tenant_id, subject, count, ends_at) VALUES ($1, $2, 1, $4)
		ON CONFLICT (tenant_id, subject) DO UPDATE SET
			count = CASE WHEN c.ends_at <= $3 THEN 1 ELSE c.count + 1 END,
			ends_at = CASE WHEN c.ends_at <= $3 THEN excluded.ends_at ELSE c.ends_at END
		RETURNING count, ends_at`, tenant, subject, now, now.Add(window))
}

// Ended are the counters of all tenants, for the purge of those whose window has ended.
var Ended = purgesql.Rows{Table: "counts", Time: "ends_at"}
