package idsite

import (
	"context"
	"errors"
	"net/url"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// ProviderCallback is the callback (redirect_uri) of a social login that began at a hosted page,
// GET /sso/provider. It logs the user in, and returns the address where the browser continues: the next step, or the
// application. After a refusal by the provider that is the login page.
func (s *Service) ProviderCallback(ctx context.Context, in journey.ProviderResponse) (string, error) {
	l, err := s.Journey.ConsumeProviderLogin(ctx, in)
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, l.TenantID)
	flow, site, err := s.store.FlowAndSite(ctx, l.TenantID, l.FlowID)
	if errors.Is(err, apierr.NotFound) {
		return "", journey.ErrProviderState
	}
	if err != nil {
		return "", err
	}
	if flow.FinishedAt != nil || !s.now().Before(flow.ExpiresAt) {
		return "", journey.ErrEnded
	}
	page := s.page(flow, site)
	logged, err := s.Journey.LogInAtProvider(ctx, l, in)
	if apierr.IsRefusal(err) {
		// The page begins again with the first step, even if that was passed elsewhere meanwhile.
		page.Flow.AccountID, page.Flow.IsNew = id.ID{}, false
		token, err := page.Token(ctx)
		return s.pageOrigin(flow, site) + "/#/?failed=provider&jwt=" + token.Reveal(), err
	}
	if err != nil {
		return "", err
	}
	result, err := s.Journey.PassFirstStepAtProvider(ctx, &page.Flow, logged)
	if err != nil {
		return "", err
	}
	return page.resume(ctx, result)
}

// AuthorizeCallback is the callback of a social login that began at /authorize of the Client API
// (authorize.go), GET {client_url}/authorize/callback. It logs the user in,
// and returns the address of the client with an assertion (jwtResponse) or an error.
func (c *ClientAPI) AuthorizeCallback(ctx context.Context, in journey.ProviderResponse) (string, error) {
	l, err := c.svc.Journey.ConsumeProviderLogin(ctx, in)
	if err != nil {
		return "", err
	}
	if l.ReturnTo == "" || l.TenantID != c.Application.TenantID || l.ApplicationID != c.Application.ID {
		return "", journey.ErrProviderState
	}
	logged, err := c.svc.Journey.LogInAtProvider(ctx, l, in)
	if err != nil {
		return errorCallback(l.ReturnTo, l.State, err)
	}
	flow := store.Flow{
		TenantID: l.TenantID, ApplicationID: l.ApplicationID, RequestID: l.ID.String(), CallbackURI: l.ReturnTo,
		State:     l.State,
		AccountID: logged.Account.ID, OrganizationID: logged.Organization,
	}
	assertion, err := c.svc.assertion(ctx, flow, store.Site{}, outcome{
		status: authenticated, isNew: logged.IsNew, issuer: c.svc.cfg.Base.To("applications", l.ApplicationID),
	})
	if err != nil {
		return errorCallback(l.ReturnTo, l.State, err)
	}
	return withAssertion(withState(l.ReturnTo, l.State), assertion), nil
}

// errorCallback returns the address of the client with the error of a login (RFC 6749, section
// 4.1.2.1). An error of this service (5xx) is returned as an error and does not go to the client.
func errorCallback(returnTo string, state *string, err error) (string, error) {
	refusal := apierr.From(err)
	code, description := "invalid_request", refusal.Reason
	switch {
	case errors.Is(err, apierr.Unavailable):
		code, description = "temporarily_unavailable", refusal.Message
	case !apierr.IsRefusal(err):
		return "", err
	case errors.Is(err, errResponseType):
		code = "unsupported_response_type"
	case errors.Is(err, apierr.ProviderRefused), errors.Is(err, apierr.ProviderIncomplete), errors.Is(err,
		apierr.ProviderOtherClient):
		code = "access_denied" // with the reason of the provider
	case refusal.Code >= 7000 && refusal.Code < 8000 || errors.Is(err, apierr.Exists):
		code, description = "access_denied", refusal.Message
	}
	if description == "" {
		description = refusal.Message
	}
	answer := url.Values{"error": {code}, "error_description": {description}}
	return withState(journey.WithParameters(returnTo, answer), state), nil
}
