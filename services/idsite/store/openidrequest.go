package store

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// OpenIDRequest is the authorization request of a relying party, or the request of a device, that has begun a flow.
type OpenIDRequest struct {
	oauthapi.Authorization
	UserCode string `json:"userCode,omitempty"` // of a device; "": an authorization request
	Answered bool   `json:"answered,omitempty"` // the relying party or the device has its answer
}

// Asks reports whether the parameter prompt has a value.
func (r OpenIDRequest) Asks(prompt string) bool { return slices.Contains(r.Prompt, prompt) }

// ConsumeOpenIDRequest records that the relying party or the device of a flow gets its answer, and ends the flow. A
// second call returns apierr.NotFound.
func (tx *Tx) ConsumeOpenIDRequest(f Flow, now time.Time) {
	tx.QueueChange(`UPDATE login_flows SET openid_request = openid_request || '{"answered":true}',
			finished_at = coalesce(finished_at, $3)
		WHERE tenant_id = $1 AND id = $2 AND NOT openid_request ? 'answered'`, f.TenantID, f.ID, now)
}

// SessionClient is a client to which a code was given in a session.
type SessionClient struct {
	TenantID  id.ID
	SessionID id.ID
	ClientID  id.ID
	ExpiresAt time.Time
}

const sessionClientColumns = `tenant_id, session_id, client_id, expires_at`

// InsertSessionClient adds a client to a session, if the session is there.
func (tx *Tx) InsertSessionClient(c SessionClient) {
	tx.Queue(`INSERT INTO session_clients (tenant_id, session_id, client_id, expires_at)
		SELECT s.tenant_id, s.session_id, $3, s.expires_at FROM sso_sessions s WHERE s.tenant_id = $1 AND s.session_id = $2
		ON CONFLICT DO NOTHING`, c.TenantID, c.SessionID, c.ClientID)
}

// SessionClients returns the clients of sessions.
func (s *Store) SessionClients(ctx context.Context, tenant id.ID, sessions []id.ID) ([]SessionClient, error) {
	return pg.All[SessionClient](ctx, s.db, `SELECT `+sessionClientColumns+` FROM session_clients
		WHERE tenant_id = $1 AND session_id = ANY ($2) ORDER BY session_id, client_id`, tenant, sessions)
}

// ExpiringSessionClients are the clients of sessions, for the purge.
var ExpiringSessionClients = purgesql.Rows{Table: "session_clients", Time: "expires_at"}
