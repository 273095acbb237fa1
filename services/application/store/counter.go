package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// CounterKey names a counter of failed logins: of a login at an address. Both are
// hashes, and one of them may be empty: without an address it is the login at all
// addresses that are not known for it, without a login the address with all
// logins.
type CounterKey struct {
	Login, Address string
}

// Counter is how many times logins have failed in the current window. The first failure after
// EndsAt begins another window.
type Counter struct {
	CounterKey
	Failures     int
	FailureLimit int // of the window
	EndsAt       time.Time
	SucceededAt  *time.Time // when the login last succeeded at the address, within half a day
}

const (
	counterColumns = `login, address, failures, failure_limit, ends_at, succeeded_at`
	countersQuery  = `SELECT ` + counterColumns + ` FROM login_counters
		WHERE tenant_id = $1 AND login IN ($2, '') AND address IN ($3, '')`
)

// LoginCounters returns those that exist of the counters of a login at an address,
// of the login alone and of the address alone.
func (s *Store) LoginCounters(ctx context.Context, tenant id.ID, of CounterKey) ([]Counter, error) {
	return pg.All[Counter](ctx, s.db, countersQuery, tenant, of.Login, of.Address)
}

// AddFailures adds a failure to each of the counters and returns them. A window
// that it begins has the EndsAt and the FailureLimit of the argument; the other
// members of that are ignored. To avoid deadlocks, every transaction counts in the
// order of a login at an address, the login, the address.
func (tx *Tx) AddFailures(ctx context.Context, tenant id.ID, now time.Time, in []Counter) ([]Counter, error) {
	logins, addresses, limits, ends := make([]string, len(in)), make([]string, len(in)), make([]int, len(in)), make([]time.Time, len(in))
	for i, c := range in {
		logins[i], addresses[i], limits[i], ends[i] = c.Login, c.Address, c.FailureLimit, c.EndsAt
	}
	return pg.All[Counter](ctx, tx, `INSERT INTO login_counters AS c (tenant_id, login, address, failures, failure_limit, ends_at, expires_at)
		SELECT $1, login, address, 1, failure_limit, ends_at, ends_at
		FROM unnest($3::text[], $4::text[], $5::integer[], $6::timestamptz[]) AS added (login, address, failure_limit, ends_at)
		ON CONFLICT (tenant_id, login, address) DO UPDATE SET
			failures = CASE WHEN c.ends_at <= $2 THEN 1 ELSE c.failures + 1 END,
			failure_limit = CASE WHEN c.ends_at <= $2 THEN excluded.failure_limit ELSE c.failure_limit END,
			ends_at = CASE WHEN c.ends_at <= $2 THEN excluded.ends_at ELSE c.ends_at END,
			expires_at = greatest(c.expires_at, excluded.expires_at)
		RETURNING `+counterColumns, tenant, now, logins, addresses, limits, ends)
}

// AddSuccess records that a login has succeeded at an address, and resets its
// failures there. The record is kept until expires.
func (tx *Tx) AddSuccess(ctx context.Context, tenant id.ID, of CounterKey, now, expires time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO login_counters AS c
		(tenant_id, login, address, failures, failure_limit, ends_at, succeeded_at, expires_at) VALUES ($1, $2, $3, 0, 1, $4, $4, $5)
		ON CONFLICT (tenant_id, login, address) DO UPDATE SET failures = 0, ends_at = excluded.ends_at,
			succeeded_at = excluded.succeeded_at, expires_at = greatest(c.expires_at, excluded.expires_at)`,
		tenant, of.Login, of.Address, now, expires)
	return err
}

// CountSucceeded returns how many logins have succeeded at an address since a
// time, and limit where they are more.
func (tx *Tx) CountSucceeded(ctx context.Context, tenant id.ID, address string, since time.Time, limit int) (int, error) {
	return pg.Value[int](ctx, tx, `SELECT count(*) FROM (
			SELECT FROM login_counters WHERE tenant_id = $1 AND address = $2 AND succeeded_at > $3 LIMIT $4
		) AS succeeded`, tenant, address, since, limit)
}

// SetFailureLimit sets the limit of a counter's window.
func (tx *Tx) SetFailureLimit(ctx context.Context, tenant id.ID, of CounterKey, limit int) error {
	return pg.MustChange(ctx, tx, `UPDATE login_counters SET failure_limit = $4 WHERE tenant_id = $1 AND login = $2 AND address = $3`,
		tenant, of.Login, of.Address, limit)
}

// PurgeCounters deletes at most limit expired counters of all tenants and returns
// their number.
func (tx *Tx) PurgeCounters(ctx context.Context, now time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM login_counters c USING (
			SELECT tenant_id, login, address FROM login_counters WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS expired WHERE c.tenant_id = expired.tenant_id AND c.login = expired.login AND c.address = expired.address`, now, limit)
}
