package application

import (
	"context"
	"log/slog"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/telemetry"
)

// auditLogin writes the line of the audit log for a login, successful or not
// (docs/operations.md#audit-log). The line does not have the login name: an end user may have
// typed a password there.
func auditLogin(ctx context.Context, by string, application directoryapi.Ref, result ...slog.Attr) {
	attrs := append([]slog.Attr{slog.String("by", by), slog.String("application", application.ID.String())}, result...)
	telemetry.Audit(caller.WithTenant(ctx, application.Tenant), "login", attrs...)
}
