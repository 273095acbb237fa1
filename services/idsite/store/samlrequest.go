package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// SAMLRequest is the request of a SAML service provider, which a flow answers when
// it ends.
type SAMLRequest struct {
	ServiceProvider id.ID   `json:"serviceProvider"`
	ID              string  `json:"id"`
	RelayState      *string `json:"relayState"`
	ForceAuthn      bool    `json:"forceAuthn"`
	IsPassive       bool    `json:"isPassive"`
	Browser         []byte  `json:"browser"` // SHA-256 of the cookie of the browser that brought it
}

// BindBrowser binds an open flow, with the commit, to the browser that is at the
// hosted login, once; otherwise it is apierr.NotFound.
func (tx *Tx) BindBrowser(_ context.Context, f Flow, browser []byte, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET browser = $3
		WHERE tenant_id = $1 AND id = $2 AND browser IS NULL AND finished_at IS NULL AND expires_at > $4`, f.TenantID, f.ID, browser, now)
	return nil
}

// ConsumeSAMLRequest ends the wait of a service provider for an answer with the commit,
// once; a second call is apierr.NotFound.
func (tx *Tx) ConsumeSAMLRequest(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET saml_request = NULL, finished_at = coalesce(finished_at, $3)
		WHERE tenant_id = $1 AND id = $2 AND saml_request IS NOT NULL`, f.TenantID, f.ID, now)
	return nil
}
