package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// Session is the session of single sign-on (SSO) of a browser.
type Session struct {
	TenantID           id.ID
	ID                 []byte // SHA-256 of the value of the cookie
	SessionID          id.ID  // names it outside of this service: in hrefs, and in the claim sid
	AccountID          id.ID
	ByPassword         bool       // the account has logged in by its password
	FactorPassed       bool       // a second factor was passed in this session
	FactorType         string     // of the factor that was passed; "": none, or not known
	PasswordModifiedAt *time.Time // of the account when the session began; a new password ends the session
	// at the identity provider; nil: the user has logged in otherwise
	SAMLSession   *directoryapi.SAMLSession `db:"saml_session"`
	CreatedAt     time.Time
	LastUsedAt    *time.Time
	RemoteAddress string    // of the browser, at its login
	UserAgent     string    // of the browser, at its login
	IdleExpiresAt time.Time // idle timeout: the session ends then, unless it is used before
	ExpiresAt     time.Time // absolute timeout
}

// Accepts reports whether a flow may go on with a session: not where it asks the user to prove who he is again, or
// did so longer ago than it allows.
func (f Flow) Accepts(s Session, now time.Time) bool {
	r := f.OpenIDRequest
	if r == nil {
		return true
	}
	return !r.Asks("login") && !r.Asks("select_account") && !r.Asks("create") && !r.OtherAccount &&
		(r.MaxAge == nil || !now.After(s.CreatedAt.Add(time.Duration(*r.MaxAge)*time.Second)))
}

// Satisfies reports whether the session is enough for a flow: it is not where the flow demands a
// second factor that was not passed in the session.
func (s Session) Satisfies(f Flow) bool {
	return len(f.FactorTypes) == 0 || s.FactorPassed && f.AllowsFactor(s.FactorType)
}

const sessionColumns = `s.tenant_id, s.id, s.account_id, s.factor_passed, s.password_modified_at, s.saml_session, s.created_at,
	s.idle_expires_at, s.expires_at, s.factor_type, s.session_id, s.by_password, s.last_used_at, s.remote_address, s.user_agent`

// Session returns a session, or apierr.NotFound where there is none or it has reached its idle
// timeout or its absolute timeout.
func (s *Store) Session(ctx context.Context, tenant id.ID, session []byte, now time.Time) (Session, error) {
	return pg.One[Session](ctx, s.db, `SELECT `+sessionColumns+` FROM sso_sessions s
		WHERE s.tenant_id = $1 AND s.id = $2 AND `+unexpired, tenant, session, now)
}

// Sessions has the attributes by which the sessions of an account are sorted.
var Sessions = list.Spec{
	"createdAt":  {Column: "s.created_at", Kind: list.Time},
	"lastUsedAt": {Column: "s.last_used_at", Kind: list.Time},
}

// unexpired restricts sessions to those that go on, and live to those of them that have a name.
const (
	unexpired = `s.idle_expires_at > $3 AND s.expires_at > $3`
	live      = `s.session_id IS NOT NULL AND ` + unexpired
)

// ListSessions returns a page of the sessions of an account that go on.
func (s *Store) ListSessions(ctx context.Context, account id.Ref, now time.Time,
	query list.Query) (list.Page[Session], error) {
	return listsql.Select[Session](ctx, s.db, Sessions, query, sessionColumns,
		`FROM sso_sessions s WHERE s.tenant_id = $1 AND s.account_id = $2 AND `+live, "s.session_id", account.Tenant,
		account.ID, now)
}

// SessionsOf returns all sessions of an account that go on.
func (s *Store) SessionsOf(ctx context.Context, account id.Ref, now time.Time) ([]Session, error) {
	return pg.All[Session](ctx, s.db, `SELECT `+sessionColumns+` FROM sso_sessions s
		WHERE s.tenant_id = $1 AND s.account_id = $2 AND `+live, account.Tenant, account.ID, now)
}

// SessionByName returns a session by its name, or apierr.NotFound for one that has ended.
func (s *Store) SessionByName(ctx context.Context, session id.Ref, now time.Time) (Session, error) {
	return pg.One[Session](ctx, s.db, `SELECT `+sessionColumns+` FROM sso_sessions s
		WHERE s.tenant_id = $1 AND s.session_id = $2 AND `+live, session.Tenant, session.ID, now)
}

// SessionsOfAccounts returns the sessions of accounts, also those that have expired or have no name.
func (s *Store) SessionsOfAccounts(ctx context.Context, tenant id.ID, accounts []id.ID) ([]Session, error) {
	return pg.All[Session](ctx, s.db, `SELECT `+sessionColumns+` FROM sso_sessions s
		WHERE s.tenant_id = $1 AND s.account_id = ANY ($2) ORDER BY s.account_id, s.session_id`, tenant, accounts)
}

// InsertSession adds a session with the commit.
func (tx *Tx) InsertSession(_ context.Context, s Session) error {
	tx.Queue(pg.Insert("sso_sessions", sessionColumns), pg.Named(s))
	return nil
}

// ExtendSession records the use of a session, with the commit: now, and its new idle timeout.
func (tx *Tx) ExtendSession(_ context.Context, s Session, now time.Time) error {
	tx.Queue(`UPDATE sso_sessions SET idle_expires_at = $3, last_used_at = $4 WHERE tenant_id = $1 AND id = $2`,
		s.TenantID, s.ID, s.IdleExpiresAt, now)
	return nil
}

// ReplaceSession deletes a session, if there is one, with the commit: another cookie leads to it from now on, or to
// another session of the browser. Its clients belong to the session that has its name, and are kept as long.
func (tx *Tx) ReplaceSession(_ context.Context, former, session Session) error {
	tx.Queue(`DELETE FROM sso_sessions WHERE tenant_id = $1 AND id = $2`, former.TenantID, former.ID)
	tx.Queue(`UPDATE session_clients SET expires_at = $3 WHERE tenant_id = $1 AND session_id = $2`, session.TenantID,
		session.SessionID, session.ExpiresAt)
	return nil
}

// EndSessions ends sessions of a tenant that are still there, and emits SessionEnded for each, with the clients to
// which codes were given in it. A session of the release before has no name, and no clients.
func (tx *Tx) EndSessions(ctx context.Context, tenant id.ID, sessions ...Session) error {
	keys, clients := make([][]byte, len(sessions)), map[id.ID][]id.ID{}
	for i, session := range sessions {
		keys[i] = session.ID
	}
	ended, err := pg.All[Session](ctx, tx, `DELETE FROM sso_sessions s WHERE s.tenant_id = $1 AND s.id = ANY ($2)
		RETURNING `+sessionColumns, tenant, keys)
	if err != nil || len(ended) == 0 {
		return err
	}
	names := make([]id.ID, len(ended))
	for i, session := range ended {
		names[i] = session.SessionID
	}
	told, err := pg.All[SessionClient](ctx, tx, `DELETE FROM session_clients
		WHERE tenant_id = $1 AND session_id = ANY ($2) RETURNING `+sessionClientColumns, tenant, names)
	if err != nil {
		return err
	}
	for _, client := range told {
		clients[client.SessionID] = append(clients[client.SessionID], client.ClientID)
	}
	for _, session := range ended {
		if session.SessionID.IsZero() {
			continue
		}
		if err := tx.Emit(ctx, events.SessionEnded{Tenant: tenant, Account: session.AccountID,
			Session: session.SessionID, Clients: clients[session.SessionID]}); err != nil {
			return err
		}
	}
	return nil
}

// ExpiringSessions are the sessions, for the purge, by their idle timeout: one that ends before that, at
// its own end, is not used any more and comes to it.
var ExpiringSessions = purgesql.Rows{Table: "sso_sessions", Time: "idle_expires_at"}
