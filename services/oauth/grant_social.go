package oauth

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// socialGrant logs an account in by the token or code of a social provider.
func (s *Service) socialGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	text, err := in.Form.required("providerId")
	if err != nil {
		return Issued{}, err
	}
	login := directoryapi.SocialLogin{
		Provider: field.Fold(text.Reveal()), AccessToken: in.Form["accessToken"], AccessTokenSecret: in.Form["accessTokenSecret"],
		Code: in.Form["code"], RedirectURI: in.Form["redirectUri"].Reveal(),
	}
	if err := login.Check(); err != nil {
		return Issued{}, refused(err, "invalid_request")
	}
	where, err := in.Form.accountStore()
	if err != nil {
		return Issued{}, err
	}
	login.AccountStore, login.NameKey = where.href.Href, where.nameKey
	logged, err := s.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: in.Tenant, Application: in.Application, Login: login,
	})
	switch {
	case errors.Is(err, apierr.ProviderRefused), errors.Is(err, apierr.ProviderIncomplete), errors.Is(err, apierr.ProviderOtherClient):
		return Issued{}, refused(err, "invalid_client")
	case err != nil:
		return Issued{}, refused(err, "invalid_request")
	}
	return s.logIn(ctx, in, holder{logged.Account.ID, logged.Organization}, secondStep{})
}
