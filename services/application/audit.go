package application

import (
	"context"
	"log/slog"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/telemetry"
)

// auditLogin writes the line of the audit log that a login has
// (docs/operations.md#audit-log). The login name is not in it: an end user may have
// typed a password there.
func auditLogin(ctx context.Context, by string, application directoryapi.Ref, logged applicationapi.LoggedIn, err error) {
	attrs := []slog.Attr{slog.String("by", by), slog.String("application", application.ID.String())}
	if err != nil {
		attrs = append(attrs, slog.Int("code", apierr.From(err).Code))
	} else {
		attrs = append(attrs, slog.String("account", logged.Account.ID.String()))
	}
	telemetry.Audit(caller.WithTenant(ctx, application.Tenant), "login", attrs...)
}
