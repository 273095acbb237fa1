package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// PushedRequest is an authorization request that a client has pushed (RFC 9126).
type PushedRequest struct {
	TenantID  id.ID
	Digest    []byte // of its request_uri
	ClientID  id.ID
	Request   PushedParameters
	CreatedAt time.Time
	ExpiresAt time.Time // until then its login may be completed
}

// PushedParameters is what was pushed.
type PushedParameters struct {
	Parameters map[string]string `json:"parameters"`
	Signed     bool              `json:"signed,omitempty"` // they are those of a signed request object
	JKT        string            `json:"jkt,omitempty"`    // thumbprint of the key of the proof that came with them
}

const pushedRequestColumns = `r.tenant_id, r.digest, r.client_id, r.request, r.created_at, r.expires_at`

// InsertPushedRequest adds a pushed request.
func (tx *Tx) InsertPushedRequest(r PushedRequest) {
	tx.Queue(pg.Insert("openid_pushed_requests", pushedRequestColumns), pg.Named(r))
}

// PushedRequest returns a pushed request that was not used, or apierr.NotFound.
func (s *Store) PushedRequest(ctx context.Context, tenant id.ID, digest []byte) (PushedRequest, error) {
	return pg.One[PushedRequest](ctx, s.db, `SELECT `+pushedRequestColumns+` FROM openid_pushed_requests r
		WHERE r.tenant_id = $1 AND r.digest = $2`, tenant, digest)
}

// UsePushedRequest deletes a pushed request of a client; one that is not there any more is apierr.NotFound.
func (tx *Tx) UsePushedRequest(ctx context.Context, tenant, client id.ID, digest []byte) error {
	return pg.MustChange(ctx, tx, `DELETE FROM openid_pushed_requests WHERE tenant_id = $1 AND client_id = $2
		AND digest = $3`, tenant, client, digest)
}
