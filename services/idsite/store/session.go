package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Session is a single sign-on session of a browser.
type Session struct {
	TenantID           id.ID
	ID                 []byte // SHA-256 of what the cookie holds
	AccountID          id.ID
	FactorPassed       bool
	FactorType         string                    // that was passed; empty: none, or not known
	PasswordModifiedAt *time.Time                // of the account, when the session began
	SAMLSession        *directoryapi.SAMLSession `db:"saml_session"` // nil: the account logged in otherwise
	CreatedAt          time.Time
	IdleAt             time.Time // when it ends unless it is used
	ExpiresAt          time.Time // when it ends in any case
}

// Satisfies reports whether the session is enough for a flow, or the flow demands a
// second factor that the session does not prove.
func (s Session) Satisfies(f Flow) bool {
	return len(f.FactorTypes) == 0 || s.FactorPassed && f.AllowsFactor(s.FactorType)
}

const sessionColumns = `tenant_id, id, account_id, factor_passed, password_modified_at, saml_session, created_at, idle_at, expires_at,
	factor_type`

// Session returns a session that has reached neither its idle timeout nor its absolute
// one, or apierr.NotFound.
func (s *Store) Session(ctx context.Context, tenant id.ID, session []byte, now time.Time) (Session, error) {
	return pg.One[Session](ctx, s.db, `SELECT `+sessionColumns+` FROM sso_sessions
		WHERE tenant_id = $1 AND id = $2 AND idle_at > $3 AND expires_at > $3`, tenant, session, now)
}

// InsertSession adds a session with the commit.
func (tx *Tx) InsertSession(_ context.Context, s Session) error {
	tx.Queue(`INSERT INTO sso_sessions (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		s.TenantID, s.ID, s.AccountID, s.FactorPassed, s.PasswordModifiedAt, s.SAMLSession, s.CreatedAt, s.IdleAt, s.ExpiresAt,
		s.FactorType)
	return nil
}

// ExtendSession moves the idle limit of a session with the commit.
func (tx *Tx) ExtendSession(_ context.Context, tenant id.ID, session []byte, idleAt time.Time) error {
	tx.Queue(`UPDATE sso_sessions SET idle_at = $3 WHERE tenant_id = $1 AND id = $2`, tenant, session, idleAt)
	return nil
}

// DeleteSession ends a session with the commit, if it is there.
func (tx *Tx) DeleteSession(_ context.Context, tenant id.ID, session []byte) error {
	tx.Queue(`DELETE FROM sso_sessions WHERE tenant_id = $1 AND id = $2`, tenant, session)
	return nil
}

// DeleteExpiredSessions removes sessions that ended before a time, at most limit.
func (tx *Tx) DeleteExpiredSessions(ctx context.Context, before time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM sso_sessions WHERE (tenant_id, id) IN (
		SELECT tenant_id, id FROM sso_sessions WHERE least(idle_at, expires_at) < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, limit)
}
