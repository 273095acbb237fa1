package directory

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
)

// checksTotal counts password checks by agents, by what came of them.
var checksTotal, _ = otel.Meter("directory").Int64Counter("doorward_directory_agent_checks_total",
	metric.WithDescription("Password checks by agents of directories, by their result."))

// observeCheck counts a check.
func observeCheck(ctx context.Context, result int, err error) {
	code := 0
	if err == nil {
		err = checkError(result)
	}
	if err != nil {
		code = apierr.From(err).Code
	}
	checksTotal.Add(ctx, 1, metric.WithAttributes(attribute.Int("code", code)))
}
