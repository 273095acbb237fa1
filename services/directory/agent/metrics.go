package agent

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
)

var meter = otel.Meter("directory")

// checksTotal counts password checks by directory agents, by error code.
var checksTotal, _ = meter.Int64Counter("doorward_directory_agent_checks_total",
	metric.WithDescription("password checks by directory agents, by error code, 0 for success"))

// syncsHeldTotal counts syncs that the brake held.
var syncsHeldTotal, _ = meter.Int64Counter("doorward_directory_syncs_held_total",
	metric.WithDescription("syncs of directory agents that would have made too many accounts absent, and were held"))

// countCheck counts a password check by an agent, with the error of its login.
func countCheck(ctx context.Context, err error) {
	code := 0
	if err != nil {
		code = apierr.From(err).Code
	}
	checksTotal.Add(ctx, 1, metric.WithAttributes(attribute.Int("code", code)))
}
