package throttle

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The results by which logins are counted. The last four are the limits of throttle.go.
const (
	resultSuccess  = "success"
	resultFailure  = "failure"       // the password or the login name is wrong
	resultRejected = "rejected"      // the password is right, but the account may not log in
	resultPair     = "pair_limit"    // too many failures of the login name at the address
	resultAccount  = "account_limit" // too many failures of the login name at unknown addresses
	resultAddress  = "address_limit" // too many failures at the address
	// resultApplication: too many failures at the application by clients that do not name the address
	resultApplication = "application_limit"
)

// newLoginCounter creates the counter of logins.
func newLoginCounter() metric.Int64Counter {
	counter, err := otel.Meter("application").Int64Counter("doorward_application_logins_total",
		metric.WithDescription("logins by password, by result: "+
			"success, failure, rejected, or the limit that refused one: pair_limit, account_limit, address_limit, "+
			"application_limit"))
	if err != nil {
		otel.Handle(err)
	}
	return counter
}

// countLogin counts a login by its result.
func (s *Throttle) countLogin(ctx context.Context, result string) {
	s.logins.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
}
