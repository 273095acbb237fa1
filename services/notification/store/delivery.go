package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// The states of a delivery. All but Waiting are final.
const (
	Waiting  = "WAITING"
	Sent     = "SENT"     // the mail server took it
	Unwanted = "UNWANTED" // the account is gone, or the workflow is off
	Failed   = "FAILED"   // refused for good, or given up
)

// Delivery is one mail to one account that an event asks for.
type Delivery struct {
	TenantID      id.ID
	ID            id.ID
	EventID       id.ID
	Workflow      directoryapi.Workflow
	AccountID     id.ID
	ApplicationID id.ID             // through which the event came about, if any
	TokenSealed   []byte            // the mail's token, until the delivery is done
	RequestID     string            // of the request that caused the event
	Trace         map[string]string // W3C trace context of that request
	State         string
	Failures      int   // tries that failed because of this very mail
	LeasedBy      id.ID // the try that works on it, until its lease ends
	LastError     string
	CreatedAt     time.Time
}

const deliveryColumns = `tenant_id, id, event_id, workflow, account_id, application_id, token_sealed, request_id, trace,
	state, failures, leased_by, last_error, created_at`

// Waiting counts the deliveries that are not done, up to most.
func (s *Store) Waiting(ctx context.Context, most int) (int64, error) {
	return pg.Value[int64](ctx, s.db, `SELECT count(*) FROM (SELECT FROM deliveries WHERE state = 'WAITING' LIMIT $1) AS waiting`, most)
}

// InsertDelivery adds a delivery that is due at once. A second one of the same
// event and workflow changes nothing.
func (tx *Tx) InsertDelivery(ctx context.Context, d Delivery) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO deliveries (tenant_id, id, event_id, workflow, account_id, application_id, token_sealed, request_id, trace,
		state, next_try_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'WAITING', $10, $10) ON CONFLICT (tenant_id, event_id, workflow) DO NOTHING`,
		d.TenantID, d.ID, d.EventID, d.Workflow, d.AccountID, d.ApplicationID, d.TokenSealed, d.RequestID, d.Trace, d.CreatedAt)
	return err
}

// LeaseDelivery gives the delivery that has been due for longest, and keeps it
// for the try from other senders until the given time; apierr.NotFound when none
// is due. A delivery that another sender is taking at this moment is passed over.
func (tx *Tx) LeaseDelivery(ctx context.Context, try id.ID, now, until time.Time) (Delivery, error) {
	return pg.One[Delivery](ctx, tx, `UPDATE deliveries SET leased_until = $2, leased_by = $3 WHERE (tenant_id, id) = (
			SELECT tenant_id, id FROM deliveries WHERE state = 'WAITING' AND next_try_at <= $1 AND (leased_until IS NULL OR leased_until <= $1)
			ORDER BY next_try_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING `+deliveryColumns, now, until, try)
}

// RenewLease keeps a delivery for its try until a later time. It changes nothing
// once the lease is another's.
func (tx *Tx) RenewLease(ctx context.Context, d Delivery, until time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE deliveries SET leased_until = $4 WHERE tenant_id = $1 AND id = $2 AND leased_by = $3`,
		d.TenantID, d.ID, d.LeasedBy, until)
	return err
}

// FinishDelivery ends a delivery and erases its token. It does so whoever holds
// the lease: a mail that was sent must not be sent again.
func (tx *Tx) FinishDelivery(ctx context.Context, d Delivery, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE deliveries SET state = $3, last_error = $4, finished_at = $5, token_sealed = NULL, leased_until = NULL, leased_by = NULL
		WHERE tenant_id = $1 AND id = $2 AND state = 'WAITING'`, d.TenantID, d.ID, d.State, d.LastError, now)
	return err
}

// PostponeDelivery gives a delivery back, to be tried again at next. It changes
// nothing once the lease is another sender's.
func (tx *Tx) PostponeDelivery(ctx context.Context, d Delivery, next time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE deliveries SET failures = $3, last_error = $4, next_try_at = $5, leased_until = NULL, leased_by = NULL
		WHERE tenant_id = $1 AND id = $2 AND state = 'WAITING' AND leased_by = $6`,
		d.TenantID, d.ID, d.Failures, d.LastError, next, d.LeasedBy)
	return err
}

// DeleteDeliveries removes at most so many deliveries that were done before the
// given time, and gives their number.
func (tx *Tx) DeleteDeliveries(ctx context.Context, before time.Time, most int) (int64, error) {
	return pg.Exec(ctx, tx, `WITH old AS MATERIALIZED (
			SELECT tenant_id, id FROM deliveries WHERE state <> 'WAITING' AND finished_at < $1
			ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		DELETE FROM deliveries d USING old WHERE d.tenant_id = old.tenant_id AND d.id = old.id`, before, most)
}
