package application

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
)

const (
	// keepFailedLogins is how long the row of a failed login is kept.
	keepFailedLogins = 30 * 24 * time.Hour
	// maxPendingFailures bounds the failed logins that wait for the worker. Of more the audit log has no account.
	maxPendingFailures = 1000
)

// failedLogin is a failed login by password whose account is still to be looked up.
type failedLogin struct {
	ctx         context.Context // of the login, without its end
	application directoryapi.Ref
	login       string
	attempt     throttle.Attempt
	at          time.Time
	code        int
}

// noteFailure hands a failed login to the worker, which writes its line of the audit log and its row. The login does
// not wait for that: its time must not tell whether the login name has an account (user enumeration), and a login that
// a limit refuses must stay cheap.
func (s *Service) noteFailure(ctx context.Context, application directoryapi.Ref, login string, a throttle.Attempt,
	err error) {
	f := failedLogin{
		ctx: context.WithoutCancel(ctx), application: application, login: login, attempt: a, at: s.now(),
		code: apierr.From(err).Code,
	}
	select {
	case s.failures <- f:
	default:
		f.audit(directoryapi.Account{})
	}
}

// RecordFailures is the worker that records failed logins until ctx ends, and then those that still wait.
func (s *Service) RecordFailures(ctx context.Context) error {
	for {
		select {
		case f := <-s.failures:
			s.recordFailedLogin(f)
		case <-ctx.Done():
			s.recordPending()
			return nil
		}
	}
}

// recordPending records the failed logins that wait.
func (s *Service) recordPending() {
	for {
		select {
		case f := <-s.failures:
			s.recordFailedLogin(f)
		default:
			return
		}
	}
}

// recordFailedLogin writes the line of the audit log and, where the login name has an account, the row.
func (s *Service) recordFailedLogin(f failedLogin) {
	found, err := s.accountOf(f)
	if err != nil {
		slog.WarnContext(f.ctx, "the account of a failed login could not be looked up", "error", err.Error())
	}
	f.audit(found)
	if found.ID.IsZero() {
		return
	}
	row := store.FailedLogin{
		TenantID: f.application.Tenant, AccountID: found.ID, ID: id.New(f.at), At: f.at, DirectoryID: found.DirectoryID,
		ApplicationID: f.application.ID, Code: f.code, Times: 1, RequestID: caller.From(f.ctx).RequestID,
		ExpiresAt: f.at.Add(keepFailedLogins),
	}
	if network := caller.From(f.ctx).Address; network.IsValid() {
		row.Address = network.String()
	}
	if f.attempt.RefusedBy != "" {
		row.LoginLimit, row.Until = &f.attempt.RefusedBy, &f.attempt.Until
	}
	err = s.store.Tx(f.ctx, func(tx *store.Tx) error { return tx.RecordFailedLogin(f.ctx, row) })
	if err != nil {
		slog.WarnContext(f.ctx, "a failed login could not be recorded", "error", err.Error())
	}
}

// accountOf returns the account whose password the login was compared with, or would have been, and no account where
// no account store has the login name.
func (s *Service) accountOf(f failedLogin) (directoryapi.Account, error) {
	if len(f.attempt.Stores) == 0 {
		return directoryapi.Account{}, nil
	}
	explained, err := s.directories.ExplainLogin(f.ctx, directoryapi.ExplainLogin{
		Tenant: f.application.Tenant, Stores: f.attempt.Stores, Login: f.login,
	})
	if err != nil || explained.Found == nil {
		return directoryapi.Account{}, err
	}
	return explained.Found.Account, nil
}

// audit writes the line of the audit log (docs/operations.md#audit-log).
func (f failedLogin) audit(found directoryapi.Account) {
	attrs := []slog.Attr{slog.Int("code", f.code)}
	if !found.ID.IsZero() {
		attrs = append(attrs, slog.String("account", found.ID.String()),
			slog.String("directory", found.DirectoryID.String()))
	}
	if f.attempt.RefusedBy != "" {
		attrs = append(attrs, slog.String("limit", f.attempt.RefusedBy),
			slog.String("until", f.attempt.Until.UTC().Format(time.RFC3339)))
	}
	auditLogin(f.ctx, "password", f.application, attrs...)
}
