package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/href"
)

// assertionGrant is the grant types service_token and id_site_token: it issues tokens for an
// assertion (JWT) of the hosted login or of the client, which assertion.go verifies. The
// assertion is recorded as used (single use) before tokens are issued or a second factor
// is demanded: after a failure the user has to log in again, and one assertion never
// yields two pairs of tokens.
func (s *Service) assertionGrant(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	text, err := in.Form.required("token")
	if err != nil {
		return IssuedTokens{}, err
	}
	a, err := s.verifyAssertion(ctx, in, text)
	if err != nil {
		return IssuedTokens{}, withOAuthError(err, "invalid_client")
	}
	logged, err := s.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: in.Tenant, Application: in.Application, Account: a.account, AccountStore: href.Link{Href: a.organization},
	})
	if err == nil {
		err = s.consumeAssertion(ctx, in.Tenant, a)
	}
	if err != nil {
		return IssuedTokens{}, withOAuthError(err, "invalid_client")
	}
	user := subject{logged.Account.ID, logged.Organization, a.secondStep.passed}
	return s.completeLogin(ctx, in, user, a.secondStep)
}
