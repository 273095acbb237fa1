package oauth

import (
	"context"

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
	_, err = s.peers.Application.SocialDirectory(ctx, applicationapi.SocialDirectory{
		Tenant: in.Tenant, Application: in.Application, Provider: login.Provider, AccountStore: where.href, NameKey: where.nameKey,
	})
	if err != nil {
		return Issued{}, refused(err, "invalid_request")
	}
	return Issued{}, refused(apierr.ProviderRefused.Because("logins by social providers are not available in this deployment"),
		"invalid_client")
}
