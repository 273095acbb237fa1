package store

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// EndSessions records that sessions have ended, until a login that has begun in one cannot go on any more. The
// transaction waits for those that issue a code in the sessions (HasEnded), and its deletions see these codes.
func (tx *Tx) EndSessions(ctx context.Context, tenant id.ID, sessions []string, until time.Time) error {
	for _, session := range slices.Sorted(slices.Values(sessions)) { // in one order: no deadlock
		name := endedSession(tenant, session)
		if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, name); err != nil {
			return err
		}
		tx.Queue(`INSERT INTO consumed_assertions (tenant_id, jti_digest, expires_at) VALUES ($1, $2, $3)
			ON CONFLICT (tenant_id, jti_digest) DO UPDATE SET expires_at = excluded.expires_at`, tenant,
			secure.Digest(secure.Secret(name)), until)
	}
	return nil
}

// HasEnded reports whether a session has ended. If it has not, it does not end before the transaction does.
func (tx *Tx) HasEnded(ctx context.Context, tenant id.ID, session string) (bool, error) {
	name := endedSession(tenant, session)
	if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))`, name); err != nil {
		return false, err
	}
	return pg.Value[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM consumed_assertions WHERE tenant_id = $1
		AND jti_digest = $2)`, tenant, secure.Digest(secure.Secret(name)))
}

func endedSession(tenant id.ID, session string) string {
	return "ended session " + tenant.String() + " " + session
}
