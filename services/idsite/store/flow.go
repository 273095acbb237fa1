package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Flow is a login at the hosted pages, from the request that began it to its
// assertion. What the browser may do next follows from this row and not from what
// the browser sends.
type Flow struct {
	TenantID         id.ID
	ID               id.ID
	ApplicationID    id.ID
	KeyID            string // API key that signed the request
	RequestID        string // jti of the request
	CallbackURI      string `db:"callback_uri"`
	State            *string
	StateJSON        *string `db:"state_json"` // a state that is no text
	NameKey          string  // of the organization that the request names
	AccountStore     string  // href that the request names
	ShowOrganization bool
	UseSubdomain     bool     // of the organization, for the pages
	Token            string   // of a mailed link
	FactorTypes      []string // one of which must be passed
	Browser          []byte   // SHA-256 of the cookie of the browser that began
	AccountID        id.ID    // that passed the first step
	OrganizationID   id.ID    // that its login named
	IsNew            bool
	// PasswordModifiedAt is that of the account when it passed the first step: a new
	// password ends what the old one has begun.
	PasswordModifiedAt *time.Time
	FinishedAt         *time.Time
	AssertionID        *string // until a session is made of it
	FactorPassed       bool
	FactorType         string                    // that was passed; empty: none, or not known
	SAMLRequest        *SAMLRequest              `db:"saml_request"` // that the flow answers; nil: none
	SAMLSession        *directoryapi.SAMLSession `db:"saml_session"` // of the account; nil: it logged in otherwise
	CreatedAt          time.Time
	ExpiresAt          time.Time
}

const flowColumns = `tenant_id, id, application_id, key_id, request_id, callback_uri, state, name_key, account_store, show_organization,
	token, factor_types, browser, account_id, is_new, finished_at, assertion_id, factor_passed, saml_request, saml_session, created_at,
	expires_at, state_json, password_modified_at, factor_type, organization_id, use_subdomain`

// InsertFlow adds a flow, with the commit. A request that has begun one already is
// apierr.Exists.
func (tx *Tx) InsertFlow(_ context.Context, f Flow) error {
	tx.Queue(`INSERT INTO login_flows (`+flowColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)`,
		f.TenantID, f.ID, f.ApplicationID, f.KeyID, f.RequestID, f.CallbackURI, f.State, f.NameKey, f.AccountStore, f.ShowOrganization, f.Token,
		f.FactorTypes, f.Browser, f.AccountID, f.IsNew, f.FinishedAt, f.AssertionID, f.FactorPassed, f.SAMLRequest, f.SAMLSession,
		f.CreatedAt, f.ExpiresAt, f.StateJSON, f.PasswordModifiedAt, f.FactorType, f.OrganizationID, f.UseSubdomain)
	return nil
}

const flowQuery = `SELECT ` + flowColumns + ` FROM login_flows WHERE tenant_id = $1 AND id = $2`

// Flow returns a flow, or apierr.NotFound.
func (s *Store) Flow(ctx context.Context, tenant, flow id.ID) (Flow, error) {
	return pg.One[Flow](ctx, s.db, flowQuery, tenant, flow)
}

// FlowAndSite returns a flow and the site of its tenant in one round trip, or
// apierr.NotFound: without a flow the site is returned with that error.
func (s *Store) FlowAndSite(ctx context.Context, tenant, flow id.ID) (Flow, Site, error) {
	var batch pg.Batch
	var flows []Flow
	var sites []Site
	pg.QueueAll(&batch, &sites, tenantSiteQuery, tenant)
	pg.QueueAll(&batch, &flows, flowQuery, tenant, flow)
	err := pg.ExecBatch(ctx, s.db, &batch)
	switch {
	case err != nil || len(sites) == 0:
		return Flow{}, Site{}, cmp.Or(err, error(apierr.NotFound))
	case len(flows) == 0:
		return Flow{}, sites[0], apierr.NotFound
	}
	return flows[0], sites[0], nil
}

// RecordFirstStep notes, with the commit, the account that passed the first step of a
// flow. A flow that is finished or expired is apierr.NotFound.
func (tx *Tx) RecordFirstStep(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET account_id = $3, is_new = $4, saml_session = $6, password_modified_at = $7,
		organization_id = $8
		WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL AND expires_at > $5`,
		f.TenantID, f.ID, f.AccountID, f.IsNew, now, f.SAMLSession, f.PasswordModifiedAt, f.OrganizationID)
	return nil
}

// FinishFlow ends a flow with the commit, once: of parallel calls one succeeds, the
// others are apierr.NotFound.
func (tx *Tx) FinishFlow(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET finished_at = $3, assertion_id = $4, account_id = $5, factor_passed = $6,
		saml_session = $7, password_modified_at = $8, factor_type = $9
		WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL AND expires_at > $3`,
		f.TenantID, f.ID, now, f.AssertionID, f.AccountID, f.FactorPassed, f.SAMLSession, f.PasswordModifiedAt, f.FactorType)
	return nil
}

// ConsumeAssertion returns the flow that ended with an assertion, once, for the
// browser that began it; afterwards, and for another browser, apierr.NotFound.
func (tx *Tx) ConsumeAssertion(ctx context.Context, tenant id.ID, assertion string, browser []byte, since time.Time) (Flow, error) {
	return pg.One[Flow](ctx, tx, `UPDATE login_flows SET assertion_id = NULL
		WHERE tenant_id = $1 AND assertion_id = $2 AND browser = $3 AND finished_at > $4
			RETURNING `+flowColumns, tenant, assertion, browser, since)
}

// DeleteExpiredFlows removes flows that ended before a time, at most limit.
func (tx *Tx) DeleteExpiredFlows(ctx context.Context, before time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM login_flows WHERE (tenant_id, id) IN (
		SELECT tenant_id, id FROM login_flows WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, limit)
}

// FlowOfRequest returns the flow that a request began, by its key and its jti, or
// apierr.NotFound. A SAML request has no key.
func (s *Store) FlowOfRequest(ctx context.Context, tenant id.ID, key, request string) (Flow, error) {
	return pg.One[Flow](ctx, s.db, `SELECT `+flowColumns+` FROM login_flows
		WHERE tenant_id = $1 AND key_id IN ($2, '') AND request_id = $3 ORDER BY key_id DESC LIMIT 1`, tenant, key, request)
}

// WithAccount is the flow after an account has passed its first step, with the organization
// that the login named, if any. The session at an identity provider is that of one
// account.
func (f Flow) WithAccount(account directoryapi.Account, organization id.ID) Flow {
	if f.AccountID != account.ID {
		f.SAMLSession = nil
	}
	f.AccountID, f.PasswordModifiedAt, f.OrganizationID = account.ID, account.PasswordModifiedAt, organization
	return f
}

// AllowsFactor reports whether a factor of a type can pass the second step of the flow.
func (f Flow) AllowsFactor(kind string) bool {
	return len(f.FactorTypes) == 0 || slices.Contains(f.FactorTypes, kind)
}
