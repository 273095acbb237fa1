package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// SAMLRequest is the AuthnRequest of a SAML service provider, which gets the answer when the flow
// ends.
type SAMLRequest struct {
	ServiceProvider id.ID   `json:"serviceProvider"`
	ID              string  `json:"id"`
	RelayState      *string `json:"relayState"`
	ForceAuthn      bool    `json:"forceAuthn"`
	IsPassive       bool    `json:"isPassive"`
	Browser         []byte  `json:"browser"` // SHA-256 of the cookie of the browser that has brought the request
}

// BindBrowser binds an open flow to the browser of the hosted login, with the commit. It returns
// apierr.NotFound for a flow that is bound already or has ended.
func (tx *Tx) BindBrowser(_ context.Context, f Flow, browser []byte, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET browser = $3
		WHERE tenant_id = $1 AND id = $2 AND browser IS NULL AND finished_at IS NULL AND expires_at > $4`, f.TenantID, f.ID,
		browser, now)
	return nil
}

// ConsumeSAMLRequest records that the service provider of a flow gets its answer, and ends the flow,
// with the commit. A second call returns apierr.NotFound.
func (tx *Tx) ConsumeSAMLRequest(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET saml_request = NULL, finished_at = coalesce(finished_at, $3)
		WHERE tenant_id = $1 AND id = $2 AND saml_request IS NOT NULL`, f.TenantID, f.ID, now)
	return nil
}
