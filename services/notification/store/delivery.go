package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/usage"
)

// The kinds of deliveries.
const (
	Mail   = "MAIL"
	SMS    = "SMS"
	Logout = "LOGOUT" // back-channel logout of an OpenID client
)

// State is the state of a delivery, which is Pending until it has a final state. A text message that is Sent or
// Lost can still become Delivered or Failed by a receipt.
type State string

// The states of a delivery.
const (
	Pending         State = "PENDING"
	Sent            State = "SENT"             // the mail server, the provider or the client has accepted it
	Lost            State = "LOST"             // there was no answer: the provider may have accepted it
	Delivered       State = "DELIVERED"        // the provider has confirmed the delivery
	Obsolete        State = "OBSOLETE"         // not sent, because there is no need any more (errObsolete)
	Cancelled       State = "CANCELLED"        // not sent, because the tenant was suspended for a day
	Failed          State = "FAILED"           // refused permanently, or given up by its age
	DeploymentError State = "DEPLOYMENT_ERROR" // a text message that could not be sent, for a reason of this deployment
)

// Delivery is one mail or text message to one account, or the logout of one at a client, which an event asks for.
type Delivery struct {
	TenantID      id.ID
	ID            id.ID
	EventID       id.ID
	Kind          string                // Mail, SMS or Logout
	Workflow      directoryapi.Workflow // of a mail; of a logout, its client: an event has one for each
	AccountID     id.ID
	ApplicationID id.ID  // of a mail: the application that caused the event, if any
	ChallengeID   id.ID  // of a text message
	ClientID      id.ID  // of a logout
	SessionID     id.ID  // of a logout: the claim sid
	Number        string // of a text message, E.164, until the delivery is done
	// of a text message, with the placeholder of the code, or the type of a factor, or what a mail says of an
	// administrator's key, until the delivery is done
	Message     string
	TokenSealed []byte            // the token of a mail or the code of a text message, until the delivery is done
	ExpiresAt   *time.Time        // of a text message: when its code expires
	AttemptedAt *time.Time        // of a text message: the last request to the provider, unless that refused it
	RequestID   string            // of the request that caused the event
	Language    string            // of that request, one of locale.Languages, or ""
	Trace       map[string]string // W3C trace context of that request
	State       State
	Failures    int   // attempts that failed for a reason of this delivery alone
	LeasedBy    id.ID // the attempt that has the lease, until that ends
	LastError   string
	CreatedAt   time.Time
}

const deliveryColumns = `tenant_id, id, event_id, kind, workflow, account_id, application_id, challenge_id,
	client_id, session_id, number, message, token_sealed, expires_at, attempted_at, request_id, trace, language, state,
	failures, leased_by, last_error, created_at`

// Waiting counts the deliveries of some kinds that are not done, at most a number, and
// returns when the oldest of the counted ones was added; nil where there is none.
func (s *Store) Waiting(ctx context.Context, most int, kinds ...string) (n int64, oldest *time.Time, err error) {
	type row struct {
		Count int64
		First *time.Time
	}
	found, err := pg.One[row](ctx, s.db, `SELECT count(*) AS count, min(created_at) AS first
		FROM (SELECT created_at FROM deliveries WHERE finished_at IS NULL AND kind = ANY ($2) LIMIT $1) AS waiting`,
		most, kinds)
	return found.Count, found.First, err
}

// VerificationApplication returns the application that caused the newest verification mail of
// an account; zero where there is none.
func (s *Store) VerificationApplication(ctx context.Context, tenant, account id.ID) (id.ID, error) {
	application, err := pg.Value[id.ID](ctx, s.db, `SELECT application_id FROM deliveries
		WHERE tenant_id = $1 AND account_id = $2 AND workflow = 'verification' ORDER BY created_at DESC LIMIT 1`,
		tenant, account)
	if errors.Is(err, apierr.NotFound) {
		return id.ID{}, nil
	}
	return application, err
}

// InsertDelivery adds a delivery that is due at once. A second one of the same
// event and workflow changes nothing.
func (tx *Tx) InsertDelivery(ctx context.Context, d Delivery) error {
	d.State = Pending
	_, err := pg.Exec(ctx, tx, pg.Insert("deliveries", deliveryColumns+", next_try_at")+`
		ON CONFLICT (tenant_id, event_id, workflow) DO NOTHING`, pg.Named(d, pg.Args{"next_try_at": d.CreatedAt}))
	return err
}

// Skip says which deliveries a worker must not lease now.
type Skip struct {
	Tenants      []id.ID // those of these tenants; never nil
	TenantServer bool    // those of all tenants whose mails go through a mail server of their own
}

// LeaseDelivery leases a due delivery of a kind for an attempt until a time, or returns
// apierr.NotFound. The tenants take turns (fairness) in the order of their ids: the first
// tenant after the given one that has a due delivery, and of that tenant the delivery that has
// been due for longest. It skips a delivery that another worker is leasing at this moment
// (SKIP LOCKED), and those of skip.
func (tx *Tx) LeaseDelivery(ctx context.Context, kind string, after, attempt id.ID, now, until time.Time,
	skip Skip) (Delivery, error) {
	d, err := tx.leaseAfter(ctx, kind, after, attempt, now, until, skip)
	if errors.Is(err, apierr.NotFound) && after != (id.ID{}) {
		return tx.leaseAfter(ctx, kind, id.ID{}, attempt, now, until, skip)
	}
	return d, err
}

// leaseAfter is LeaseDelivery for the tenants whose id is greater than after. It goes from
// tenant to tenant along the index (loose index scan), not through all deliveries of a tenant. An SMTP
// server with opened_at has an open circuit breaker (Circuit.OpenedAt): mails do not go through it.
func (tx *Tx) leaseAfter(ctx context.Context, kind string, after, attempt id.ID, now, until time.Time,
	skip Skip) (Delivery, error) {
	return pg.One[Delivery](ctx, tx, `WITH RECURSIVE tenants AS (
			(SELECT tenant_id FROM deliveries WHERE kind = @kind AND finished_at IS NULL
				AND tenant_id > COALESCE(@after::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY tenant_id
				LIMIT 1)
			UNION ALL
			SELECT next.tenant_id FROM tenants, LATERAL (
				SELECT d.tenant_id FROM deliveries d WHERE d.kind = @kind AND d.finished_at IS NULL
				AND d.tenant_id > tenants.tenant_id
				ORDER BY d.tenant_id LIMIT 1) AS next)
		UPDATE deliveries SET leased_until = @until, leased_by = @attempt WHERE (tenant_id, id) = (
			SELECT due.tenant_id, due.id FROM tenants, LATERAL (
				SELECT tenant_id, id FROM deliveries WHERE tenant_id = tenants.tenant_id
				AND kind = @kind AND finished_at IS NULL AND next_try_at <= @now
				AND (leased_until IS NULL OR leased_until <= @now)
				ORDER BY next_try_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS due
			WHERE tenants.tenant_id <> ALL (@tenants)
			AND NOT (@tenant_server AND EXISTS (SELECT 1 FROM smtp_servers s
				WHERE s.tenant_id = tenants.tenant_id AND s.status = 'ENABLED' AND s.opened_at IS NULL))
			LIMIT 1)
		RETURNING `+deliveryColumns, pg.Named(skip, pg.Args{
		"now": now, "until": until, "attempt": attempt, "kind": kind, "after": after,
	}))
}

// RenewLease renews the lease until a later time. It changes nothing once another worker has
// the lease.
func (tx *Tx) RenewLease(ctx context.Context, d Delivery, until time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE deliveries SET leased_until = $4
		WHERE tenant_id = $1 AND id = $2 AND leased_by = $3`, d.TenantID, d.ID, d.LeasedBy, until)
	return err
}

// RecordAttempt records that the delivery is about to be sent. It returns apierr.NotFound once
// another worker has the lease.
func (tx *Tx) RecordAttempt(ctx context.Context, d Delivery, now time.Time) error {
	return pg.MustChange(ctx, tx, `UPDATE deliveries SET attempted_at = $4
		WHERE tenant_id = $1 AND id = $2 AND leased_by = $3 AND finished_at IS NULL`,
		d.TenantID, d.ID, d.LeasedBy, now)
}

// FinishDelivery sets the final state of a delivery, unless it has one, erases its token, number
// and message, and reports whether it has set the state. It does so even if another worker has
// the lease meanwhile: a delivery that was sent must not be sent again.
func (tx *Tx) FinishDelivery(ctx context.Context, d Delivery, now time.Time) (bool, error) {
	n, err := pg.Exec(ctx, tx, `UPDATE deliveries SET state = $3, last_error = $4, finished_at = $5,
		token_sealed = NULL, number = '', message = '', leased_until = NULL, leased_by = NULL
		WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL`, d.TenantID, d.ID, d.State, d.LastError, now)
	return n > 0, err
}

// CancelDeliveries sets the pending mails and text messages of accounts to Obsolete, and erases their tokens,
// numbers and messages. One that a worker is sending at this moment may still arrive. A logout goes on: clients hear
// that the sessions of a deleted account have ended.
func (tx *Tx) CancelDeliveries(ctx context.Context, tenant id.ID, accounts []id.ID, now time.Time) error {
	_, err := pg.Exec(ctx, tx,
		`UPDATE deliveries SET state = $3, last_error = 'the account was deleted', finished_at = $4,
		token_sealed = NULL, number = '', message = '', leased_until = NULL, leased_by = NULL
		WHERE tenant_id = $1 AND account_id = ANY ($2) AND finished_at IS NULL AND kind <> $5`, tenant, accounts,
		Obsolete, now, Logout)
	return err
}

// CancelHeldDeliveries sets the deliveries of a suspended tenant that were added until a time to Cancelled, and erases
// their tokens, numbers and messages.
func (tx *Tx) CancelHeldDeliveries(ctx context.Context, tenant id.ID, until, now time.Time) error {
	_, err := pg.Exec(ctx, tx,
		`UPDATE deliveries SET state = $2, last_error = 'the tenant is suspended', finished_at = $3,
		token_sealed = NULL, number = '', message = '', leased_until = NULL, leased_by = NULL
		WHERE tenant_id = $1 AND finished_at IS NULL AND created_at <= $4`, tenant, Cancelled, now, until)
	return err
}

// PostponeDelivery ends the lease of a delivery and sets the time of its retry. It changes
// nothing once another worker has the lease.
func (tx *Tx) PostponeDelivery(ctx context.Context, d Delivery, next time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE deliveries SET failures = $3, last_error = $4, next_try_at = $5, attempted_at =
		NULL,
		leased_until = NULL, leased_by = NULL WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL
		AND leased_by = $6`,
		d.TenantID, d.ID, d.Failures, d.LastError, next, d.LeasedBy)
	return err
}

// LockSMS reads and locks the delivery of a text message, or returns apierr.NotFound.
func (tx *Tx) LockSMS(ctx context.Context, tenant, delivery id.ID) (Delivery, error) {
	return pg.One[Delivery](ctx, tx, `SELECT `+deliveryColumns+` FROM deliveries
		WHERE tenant_id = $1 AND id = $2 AND kind = 'SMS' FOR UPDATE`, tenant, delivery)
}

// UpdateState writes the state of a text message that has a final state already.
func (tx *Tx) UpdateState(ctx context.Context, d Delivery) error {
	return pg.MustChange(ctx, tx, `UPDATE deliveries SET state = $3, last_error = $4 WHERE tenant_id = $1 AND id = $2`,
		d.TenantID, d.ID, d.State, d.LastError)
}

// DoneDeliveries are the deliveries that are done, for the purge.
var DoneDeliveries = purgesql.Rows{Table: "deliveries", Time: "finished_at"}

// ExpiredUsage are the counts of usage that have expired, for the purge.
var ExpiredUsage = usage.Rows
