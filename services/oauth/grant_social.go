package oauth

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// socialLoginGrant is the grant type service_social: it logs an account in by an access token
// or an authorization code of a social provider. The application service selects the
// directory (services/application/social.go), and the directory service calls the provider
// (services/directory/connect).
func (s *Service) socialLoginGrant(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	text, err := in.Form.required("providerId")
	if err != nil {
		return IssuedTokens{}, err
	}
	login := directoryapi.SocialLogin{
		Provider: field.Fold(text.Reveal()), AccessToken: in.Form["accessToken"], AccessTokenSecret: in.Form["accessTokenSecret"],
		Code: in.Form["code"], RedirectURI: in.Form["redirectUri"].Reveal(),
	}
	if err := login.Check(); err != nil {
		return IssuedTokens{}, withOAuthError(err, "invalid_request")
	}
	where, err := in.Form.accountStore()
	if err != nil {
		return IssuedTokens{}, err
	}
	login.AccountStore, login.NameKey = where.href.Href, where.nameKey
	logged, err := s.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: in.Tenant, Application: in.Application, Login: login,
	})
	switch {
	case errors.Is(err, apierr.ProviderRefused), errors.Is(err, apierr.ProviderIncomplete), errors.Is(err, apierr.ProviderOtherClient):
		return IssuedTokens{}, withOAuthError(err, "invalid_client")
	case err != nil:
		return IssuedTokens{}, withOAuthError(err, "invalid_request")
	}
	return s.completeLogin(ctx, in, subject{account: logged.Account.ID, organization: logged.Organization}, secondStep{})
}
