package oauth

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
)

// newTokenCounter creates the counter of token requests.
func newTokenCounter() metric.Int64Counter {
	counter, err := otel.Meter("oauth").Int64Counter("doorward_oauth_grants_total",
		metric.WithDescription("token requests by grant type, pushed and device authorization requests, by result: "+
			"issued, refused, or failed where the service could not answer"))
	if err != nil {
		otel.Handle(err)
	}
	return counter
}

// countGrant counts the result of a token request.
func (s *Service) countGrant(ctx context.Context, grant string, err error) {
	result := "issued"
	switch {
	case apierr.IsRefusal(err):
		result = "refused"
	case err != nil:
		result = "failed"
	}
	s.tokens.Add(ctx, 1, metric.WithAttributes(attribute.String("grant", grant), attribute.String("result", result)))
}
