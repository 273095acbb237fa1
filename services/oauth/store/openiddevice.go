package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// The answers of users to devices.
const (
	DevicePending = "PENDING"
	DeviceAllowed = "ALLOWED"
	DeviceRefused = "REFUSED"
)

// Device is what a device has asked for (RFC 8628).
type Device struct {
	TenantID      id.ID
	Digest        []byte // of its device_code
	UserCode      string // eight letters
	ApplicationID id.ID
	ClientID      id.ID
	AccountID     id.ID // that has allowed it
	Status        string
	Login         Login // what is asked for; once it is allowed, what its tokens are made of
	PollSeconds   int   // between two requests for its tokens
	PolledAt      *time.Time
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

const deviceColumns = `d.tenant_id, d.digest, d.user_code, d.application_id, d.client_id, d.account_id, d.status,
	d.login, d.poll_seconds, d.polled_at, d.created_at, d.expires_at`

// InsertDevice adds a device. A user code that another device of the application has is apierr.Exists.
func (tx *Tx) InsertDevice(ctx context.Context, d Device) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("openid_devices", deviceColumns), pg.Named(d))
	return err
}

// PendingDevice returns the device of an application with a user code that its user has not answered yet, or
// apierr.NotFound.
func (tx *Tx) PendingDevice(ctx context.Context, application id.Ref, userCode string, now time.Time) (Device, error) {
	return pg.One[Device](ctx, tx, `SELECT `+deviceColumns+` FROM openid_devices d WHERE d.tenant_id = $1
		AND d.application_id = $2 AND d.user_code = $3 AND d.status = 'PENDING' AND d.expires_at > $4`,
		application.Tenant, application.ID, userCode, now)
}

// LockGuesses waits for the other guesses of user codes that a counter counts.
func (tx *Tx) LockGuesses(ctx context.Context, tenant id.ID, counter string) error {
	_, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, tenant.String()+" "+counter)
	return err
}

// LockDevice reads and locks a device by its device_code, or returns apierr.NotFound.
func (tx *Tx) LockDevice(ctx context.Context, tenant id.ID, digest []byte) (Device, error) {
	return pg.One[Device](ctx, tx, `SELECT `+deviceColumns+` FROM openid_devices d WHERE d.tenant_id = $1
		AND d.digest = $2 FOR UPDATE`, tenant, digest)
}

// PolledDevice records a request for the tokens of a locked device.
func (tx *Tx) PolledDevice(d Device, now time.Time) {
	tx.Queue(`UPDATE openid_devices SET poll_seconds = $3, polled_at = $4 WHERE tenant_id = $1 AND digest = $2`,
		d.TenantID, d.Digest, d.PollSeconds, now)
}

// AnswerDevice records the answer to a device. One that was answered is apierr.NotFound.
func (tx *Tx) AnswerDevice(ctx context.Context, d Device) error {
	return pg.MustChange(ctx, tx, `UPDATE openid_devices SET status = $3, account_id = $4, login = $5
		WHERE tenant_id = $1 AND digest = $2 AND status = 'PENDING'`, d.TenantID, d.Digest, d.Status, d.AccountID, d.Login)
}

// UseDevice deletes a device whose tokens are issued. One that is not there any more is apierr.NotFound.
func (tx *Tx) UseDevice(ctx context.Context, d Device) error {
	return pg.MustChange(ctx, tx, `DELETE FROM openid_devices WHERE tenant_id = $1 AND digest = $2
		AND status = 'ALLOWED'`, d.TenantID, d.Digest)
}
