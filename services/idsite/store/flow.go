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
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// Flow is a hosted login in progress, from its signed request to its assertion. What the browser may
// do next follows from this row and not from what the browser sends.
type Flow struct {
	TenantID         id.ID
	ID               id.ID
	ApplicationID    id.ID
	KeyID            string // id of the API key that has signed the request
	RequestID        string // jti of the request
	CallbackURI      string `db:"callback_uri"`
	State            *string
	StateJSON        *string `db:"state_json"` // a state that is JSON and no string
	NameKey          string  // of the organization that the request names
	AccountStore     string  // href of the account store that the request names
	ShowOrganization bool
	UseSubdomain     bool     // show the pages at the subdomain of the organization
	Token            string   // of a mailed link (sp_token)
	FactorTypes      []string // of which one must be passed; empty: no second step
	Browser          []byte   // SHA-256 of the cookie of the browser that has begun the login
	AccountID        id.ID    // the account that has passed the first step; zero: none yet
	OrganizationID   id.ID    // the organization that the login named
	UnverifiedID     id.ID    // the account with the status UNVERIFIED whose right password was entered last; zero: none
	IsNew            bool     // the login has registered the account
	// PasswordModifiedAt is that of the account when it passed the first step. A new
	// password ends the login.
	PasswordModifiedAt *time.Time
	FinishedAt         *time.Time
	AssertionID        *string // jti of the assertion, until a session is created with it
	FactorPassed       bool
	FactorType         string // of the factor that was passed; "": none, or not known
	SteppedUp          bool   // the account has passed a factor of a type that the flow does not allow
	// of the SAML service provider that gets the answer; nil: none
	SAMLRequest *SAMLRequest `db:"saml_request"`
	// at the identity provider; nil: the user has logged in otherwise
	SAMLSession *directoryapi.SAMLSession `db:"saml_session"`
	// of the client that has begun the login without a key; "": the request was signed
	Address         string
	AuthenticatedAt *time.Time // when the user proved who he is, perhaps in an earlier login; nil: at FinishedAt
	SessionIndex    string     // names the session of the user to SAML service providers; "": none
	SessionID       id.ID      // of the session that a finished flow belongs to; zero: none
	ByPassword      bool       // the account has passed the first step by its password
	// of the relying party or the device that gets the answer; nil: none
	OpenIDRequest *OpenIDRequest `db:"openid_request"`
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

const flowColumns = `tenant_id, id, application_id, key_id, request_id, callback_uri, state, name_key, account_store,
	show_organization,
	token, factor_types, browser, account_id, is_new, finished_at, assertion_id, factor_passed, saml_request, saml_session,
	created_at,
	expires_at, state_json, password_modified_at, factor_type, organization_id, use_subdomain, stepped_up, unverified_id,
	address, authenticated_at, session_index, session_id, by_password, openid_request`

// InsertFlow adds a flow, with the commit. It returns apierr.Exists where the request has begun a
// flow already (replay).
func (tx *Tx) InsertFlow(_ context.Context, f Flow) error {
	tx.Queue(pg.Insert("login_flows", flowColumns), pg.Named(f))
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

// RecordFirstStep records, with the commit, the account that has passed the first step of a flow. A
// step-up of before does not count for it. It returns apierr.NotFound for a flow that has finished or expired.
func (tx *Tx) RecordFirstStep(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET `+
		pg.Set("account_id, is_new, saml_session, password_modified_at, organization_id, by_password")+`,
			stepped_up = false
		WHERE tenant_id = @tenant_id AND id = @id AND finished_at IS NULL AND expires_at > @now`,
		pg.Named(f, pg.Args{"now": now}))
	return nil
}

// RecordStepUp records, with the commit, that the account that has passed the first step of a flow
// has passed a step-up. It returns apierr.NotFound for a flow that has finished or expired, and where
// another account, or another password, has passed the first step since.
func (tx *Tx) RecordStepUp(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET stepped_up = true WHERE tenant_id = $1 AND id = $2 AND account_id = $3
		AND password_modified_at IS NOT DISTINCT FROM $4 AND finished_at IS NULL AND expires_at > $5`,
		f.TenantID, f.ID, f.AccountID, f.PasswordModifiedAt, now)
	return nil
}

// RecordUnverified records, with the commit, the account to which the pages of a flow may have the verification
// mail sent again. It returns apierr.NotFound for a flow that has finished or expired.
func (tx *Tx) RecordUnverified(_ context.Context, f Flow, now time.Time) error {
	tx.QueueChange(`UPDATE login_flows SET unverified_id = $3
		WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL AND expires_at > $4`, f.TenantID, f.ID, f.UnverifiedID, now)
	return nil
}

// ClaimReset records, with the commit, the password reset token that the pages of a flow use. It
// returns apierr.NotFound where they have used another one.
func (tx *Tx) ClaimReset(_ context.Context, f Flow, digest []byte) error {
	tx.QueueChange(`UPDATE login_flows SET reset_token = $3
		WHERE tenant_id = $1 AND id = $2 AND (reset_token IS NULL OR reset_token = $3)`, f.TenantID, f.ID, digest)
	return nil
}

// FinishFlow ends a flow, with the commit. Of parallel calls one succeeds; the others return
// apierr.NotFound.
func (tx *Tx) FinishFlow(_ context.Context, f Flow, now time.Time) error {
	f.FinishedAt = &now
	tx.QueueChange(`UPDATE login_flows SET `+pg.Set(`finished_at, assertion_id, account_id, factor_passed, saml_session,
		password_modified_at, factor_type, authenticated_at, session_index, session_id, by_password`)+`
		WHERE tenant_id = @tenant_id AND id = @id AND finished_at IS NULL AND expires_at > @finished_at`, pg.Named(f))
	return nil
}

// RecordSession records, with the commit, the session that a finished flow has created, by its names.
func (tx *Tx) RecordSession(_ context.Context, f Flow) error {
	tx.Queue(`UPDATE login_flows SET session_index = $3, session_id = $4 WHERE tenant_id = $1 AND id = $2`, f.TenantID,
		f.ID, f.SessionIndex, f.SessionID)
	return nil
}

// ConsumeAssertion returns the flow that has ended with an assertion, once. It returns
// apierr.NotFound for an assertion that was consumed, that is older than since, or that another
// browser than the one that has begun the login sends.
func (tx *Tx) ConsumeAssertion(ctx context.Context, tenant id.ID, assertion string, browsers [][]byte,
	since time.Time) (Flow, error) {
	return pg.One[Flow](ctx, tx, `UPDATE login_flows SET assertion_id = NULL
		WHERE tenant_id = $1 AND assertion_id = $2 AND browser = ANY($3) AND finished_at > $4
			RETURNING `+flowColumns, tenant, assertion, browsers, since)
}

// ExpiringFlows are the flows, for the purge.
var ExpiringFlows = purgesql.Rows{Table: "login_flows", Time: "expires_at"}

// FlowOfRequest returns the flow of a request, by the id of its API key and its jti, or
// apierr.NotFound. The request of a SAML service provider has no key.
func (s *Store) FlowOfRequest(ctx context.Context, tenant id.ID, key, request string) (Flow, error) {
	return pg.One[Flow](ctx, s.db, `SELECT `+flowColumns+` FROM login_flows
		WHERE tenant_id = $1 AND key_id IN ($2, '') AND request_id = $3 ORDER BY key_id DESC LIMIT 1`, tenant, key, request)
}

// WithAccount returns the flow after an account has passed its first step, with the organization
// that the login named, if any. It drops the SAML session of another account.
func (f Flow) WithAccount(account directoryapi.Account, organization id.ID) Flow {
	if f.AccountID != account.ID {
		f.SAMLSession = nil
	}
	f.SteppedUp = false
	f.AccountID, f.PasswordModifiedAt, f.OrganizationID = account.ID, account.PasswordModifiedAt, organization
	return f
}

// AllowsFactor reports whether a type of factor can pass the second step of the flow.
func (f Flow) AllowsFactor(kind string) bool {
	return len(f.FactorTypes) == 0 || slices.Contains(f.FactorTypes, kind)
}

// ProvedAt returns when the user of a finished flow proved who he is, perhaps in an earlier login.
func (f Flow) ProvedAt() time.Time {
	if f.AuthenticatedAt != nil {
		return *f.AuthenticatedAt
	}
	return *f.FinishedAt
}
