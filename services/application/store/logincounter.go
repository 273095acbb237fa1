package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// LoginCounterKey is the key of a counter of failed logins: a login name at a client address,
// both as HMACs. Without an address the counter is for the login name at all addresses that
// are not known for it, without a login name for the address with all login names. The rules
// (lockout) are in services/application/throttle/throttle.go.
type LoginCounterKey struct {
	Login, Address string
}

// LoginCounter counts the failed logins in the current time window. The first failure after
// EndsAt begins a new window.
type LoginCounter struct {
	LoginCounterKey
	Failures     int
	FailureLimit int // of the window
	EndsAt       time.Time
	SucceededAt  *time.Time // last success of the login name at the address, up to half a day too early
}

const (
	counterColumns = `login, address, failures, failure_limit, ends_at, succeeded_at`
	countersQuery  = `SELECT ` + counterColumns + ` FROM login_counters
		WHERE tenant_id = $1 AND login IN ($2, '') AND address IN ($3, '')`
)

// LoginCounters returns the counters of a login name at an address, of the login name alone, and
// of the address alone, as far as they exist.
func (s *Store) LoginCounters(ctx context.Context, tenant id.ID, of LoginCounterKey) ([]LoginCounter, error) {
	return pg.All[LoginCounter](ctx, s.db, countersQuery, tenant, of.Login, of.Address)
}

// CurrentCounters returns the counters with failures whose window has not ended, at most limit of them: of a login name
// at every address and at all, and of the address of the key. Those with the most failures come first.
func (s *Store) CurrentCounters(ctx context.Context, tenant id.ID, of LoginCounterKey, now time.Time,
	limit int) ([]LoginCounter, error) {
	return pg.All[LoginCounter](ctx, s.db, `SELECT `+counterColumns+` FROM login_counters
		WHERE tenant_id = $1 AND (login = $2 OR login = '' AND address = $3) AND failures > 0 AND ends_at > $4
		ORDER BY failures::float8 / failure_limit DESC, ends_at DESC, login, address LIMIT $5`, tenant, of.Login,
		of.Address, now, limit)
}

// AddFailures adds a failure to each of the counters and returns them. A new window gets the
// EndsAt and the FailureLimit of the argument, whose other members are ignored. To avoid
// deadlocks, the counters must be in this order: of a login name at an address, of the login
// name, of the address.
func (tx *Tx) AddFailures(ctx context.Context, tenant id.ID, now time.Time, in []LoginCounter) ([]LoginCounter, error) {
	logins, addresses, limits, ends := make([]string, len(in)), make([]string, len(in)), make([]int, len(in)),
		make([]time.Time, len(in))
	for i, c := range in {
		logins[i], addresses[i], limits[i], ends[i] = c.Login, c.Address, c.FailureLimit, c.EndsAt
	}
	return pg.All[LoginCounter](ctx, tx, `INSERT INTO login_counters AS c
		(tenant_id, login, address, failures, failure_limit, ends_at, expires_at)
		SELECT $1, login, address, 1, failure_limit, ends_at, ends_at
		FROM unnest($3::text[], $4::text[], $5::integer[], $6::timestamptz[]) AS added (login, address, failure_limit,
		ends_at)
		ON CONFLICT (tenant_id, login, address) DO UPDATE SET
			failures = CASE WHEN c.ends_at <= $2 THEN 1 ELSE c.failures + 1 END,
			failure_limit = CASE WHEN c.ends_at <= $2 THEN excluded.failure_limit ELSE c.failure_limit END,
			ends_at = CASE WHEN c.ends_at <= $2 THEN excluded.ends_at ELSE c.ends_at END,
			expires_at = greatest(c.expires_at, excluded.expires_at)
		RETURNING `+counterColumns, tenant, now, logins, addresses, limits, ends)
}

// AddSuccess records until expires that a login name has succeeded at an address, and resets its
// failures there.
func (tx *Tx) AddSuccess(ctx context.Context, tenant id.ID, of LoginCounterKey, now, expires time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO login_counters AS c
		(tenant_id, login, address, failures, failure_limit, ends_at, succeeded_at, expires_at)
		VALUES ($1, $2, $3, 0, 1, $4, $4, $5)
		ON CONFLICT (tenant_id, login, address) DO UPDATE SET failures = 0, ends_at = excluded.ends_at,
			succeeded_at = excluded.succeeded_at, expires_at = greatest(c.expires_at, excluded.expires_at)`,
		tenant, of.Login, of.Address, now, expires)
	return err
}

// ResetFailures ends the windows of all counters of login names, at each address and at all. That they have succeeded
// at an address stays.
func (tx *Tx) ResetFailures(ctx context.Context, tenant id.ID, logins []string, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE login_counters SET failures = 0, ends_at = $3
		WHERE tenant_id = $1 AND login = ANY($2) AND failures > 0`, tenant, logins, now)
	return err
}

// CountSucceeded returns how many login names have succeeded at an address since a time, but at
// most limit.
func (tx *Tx) CountSucceeded(ctx context.Context, tenant id.ID, address string, since time.Time,
	limit int) (int, error) {
	return pg.Value[int](ctx, tx, `SELECT count(*) FROM (
			SELECT 1 FROM login_counters WHERE tenant_id = $1 AND address = $2 AND succeeded_at > $3 LIMIT $4
		) AS succeeded`, tenant, address, since, limit)
}

// SetFailureLimit sets the limit of a counter's window.
func (tx *Tx) SetFailureLimit(ctx context.Context, tenant id.ID, of LoginCounterKey, limit int) error {
	return pg.MustChange(ctx, tx, `UPDATE login_counters SET failure_limit = $4
		WHERE tenant_id = $1 AND login = $2 AND address = $3`, tenant, of.Login, of.Address, limit)
}
