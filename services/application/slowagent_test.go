package application_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
)

// The codes of an agent are for clients with an API key. To others a login that its agent did not
// check is 503, whatever went wrong.
func TestTheErrorsOfAgentsAreForClientsWithAnAPIKey(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	for _, failure := range apierr.AgentFailures {
		x.Directories.Break("Authenticate", fault.Before, func() error { return failure })
		anonymous := apierr.From(x.logIn(home, jo, right))
		if anonymous.Code != 503 || anonymous.RetryAfter <= 0 {
			t.Errorf("without an API key %v is %v, want 503 with a time to repeat", failure, anonymous)
		}
		ctx := caller.Into(t.Context(), caller.Caller{Tenant: x.tenant, Key: "KEY"})
		_, err := x.service.Login(ctx, applicationapi.Login{Tenant: x.tenant, Application: x.app, Login: jo, Password: right})
		if !errors.Is(err, failure) {
			t.Errorf("with an API key %v is %v", failure, err)
		}
	}
}

func TestACheckWithoutAnAnswerCountsAsAFailedLogin(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.Directories.Break("Authenticate", fault.Before, func() error { return apierr.AgentSlow })
	for range limits.Pair.Failures {
		x.expect(apierr.Unavailable, home, jo, right)
	}
	x.expect(apierr.TooMany, home, jo, right)
}
