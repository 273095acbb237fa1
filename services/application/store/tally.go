package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Subject is whose logins are counted: a login at an address. Both are digests,
// and one of them may be empty. Without an address it is the login at all
// addresses that are not known for it, without a login the address with all its
// logins.
type Subject struct {
	Login, Address string
}

// Tally is how often logins of a subject failed since its window began. The
// first that fails after EndsAt begins another window.
type Tally struct {
	Subject
	Failures    int
	Most        int // failures that the window has room for
	EndsAt      time.Time
	SucceededAt *time.Time // when the login last succeeded at the address, within half a day
}

const tallyColumns = `login, address, failures, most, ends_at, succeeded_at`

// talliesQuery gives the tallies of a login at an address, and those of either
// alone.
const talliesQuery = `SELECT ` + tallyColumns + ` FROM login_tallies
	WHERE tenant_id = $1 AND login IN ($2, '') AND address IN ($3, '')`

// Tallies gives what there is of the tally of a subject, and of its login and its
// address alone.
func (s *Store) Tallies(ctx context.Context, tenant id.ID, of Subject) ([]Tally, error) {
	return pg.All[Tally](ctx, s.db, talliesQuery, tenant, of.Login, of.Address)
}

// AddFailures counts a login that failed for each of the subjects, and gives
// their tallies with it. A window that it begins ends at EndsAt and has room for
// Most; what else the tallies in say is not looked at. Transactions that count for
// one subject wait for each other, so all count in the order of a login at an
// address, the login, the address.
func (tx *Tx) AddFailures(ctx context.Context, tenant id.ID, now time.Time, in []Tally) ([]Tally, error) {
	logins, addresses, most, ends := make([]string, len(in)), make([]string, len(in)), make([]int, len(in)), make([]time.Time, len(in))
	for i, t := range in {
		logins[i], addresses[i], most[i], ends[i] = t.Login, t.Address, t.Most, t.EndsAt
	}
	return pg.All[Tally](ctx, tx, `INSERT INTO login_tallies AS t (tenant_id, login, address, failures, most, ends_at, expires_at)
		SELECT $1, login, address, 1, most, ends_at, ends_at
		FROM unnest($3::text[], $4::text[], $5::integer[], $6::timestamptz[]) AS fresh (login, address, most, ends_at)
		ON CONFLICT (tenant_id, login, address) DO UPDATE SET
			failures = CASE WHEN t.ends_at <= $2 THEN 1 ELSE t.failures + 1 END,
			most = CASE WHEN t.ends_at <= $2 THEN excluded.most ELSE t.most END,
			ends_at = CASE WHEN t.ends_at <= $2 THEN excluded.ends_at ELSE t.ends_at END,
			expires_at = greatest(t.expires_at, excluded.expires_at)
		RETURNING `+tallyColumns, tenant, now, logins, addresses, most, ends)
}

// AddSuccess notes that a login has succeeded at an address, and takes back what
// has failed there. It is remembered until the time forget.
func (tx *Tx) AddSuccess(ctx context.Context, tenant id.ID, of Subject, now, forget time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO login_tallies AS t (tenant_id, login, address, failures, most, ends_at, succeeded_at, expires_at)
		VALUES ($1, $2, $3, 0, 1, $4, $4, $5)
		ON CONFLICT (tenant_id, login, address) DO UPDATE SET
			failures = 0, ends_at = excluded.ends_at, succeeded_at = excluded.succeeded_at, expires_at = greatest(t.expires_at, excluded.expires_at)`,
		tenant, of.Login, of.Address, now, forget)
	return err
}

// CountSucceeded gives how many logins have succeeded at an address since a
// time; it counts no further than limit.
func (tx *Tx) CountSucceeded(ctx context.Context, tenant id.ID, address string, since time.Time, limit int) (int, error) {
	return pg.Value[int](ctx, tx, `SELECT count(*) FROM (
			SELECT FROM login_tallies WHERE tenant_id = $1 AND address = $2 AND succeeded_at > $3 LIMIT $4
		) AS succeeded`, tenant, address, since, limit)
}

// SetMost sets how many failures the window of a tally has room for.
func (tx *Tx) SetMost(ctx context.Context, tenant id.ID, of Subject, most int) error {
	return pg.MustChange(ctx, tx, `UPDATE login_tallies SET most = $4 WHERE tenant_id = $1 AND login = $2 AND address = $3`,
		tenant, of.Login, of.Address, most)
}

// PurgeTallies deletes at most limit tallies of all tenants that nobody asks for
// any more, and gives their number.
func (tx *Tx) PurgeTallies(ctx context.Context, now time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM login_tallies t USING (
			SELECT tenant_id, login, address FROM login_tallies WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS old WHERE t.tenant_id = old.tenant_id AND t.login = old.login AND t.address = old.address`, now, limit)
}
