package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/store"
)

// SocialAccount asks the provider of a directory for the user of a login, and
// returns the account. No transaction is open while the provider is asked.
func (s *Service) SocialAccount(ctx context.Context, in directoryapi.SocialAccount) (directoryapi.ProvidedAccount, error) {
	p, err := s.Provider(ctx, id.Ref{Tenant: in.Tenant, ID: in.Directory})
	if err != nil {
		return directoryapi.ProvidedAccount{}, err
	}
	if err := checkLogin(p, in.Login); err != nil {
		return directoryapi.ProvidedAccount{}, err
	}
	user, err := s.providers.User(ctx, client(p), connect.Login{
		AccessToken: in.Login.AccessToken, AccessTokenSecret: in.Login.AccessTokenSecret, Code: in.Login.Code, RedirectURI: in.Login.RedirectURI,
		Verifier: in.Login.Verifier, Nonce: in.Login.Nonce,
	})
	if err != nil {
		return directoryapi.ProvidedAccount{}, err
	}
	user.Tenant, user.Directory, user.Application, user.Account = in.Tenant, in.Directory, in.Application, in.Account
	return s.ProviderAccount(ctx, user)
}

// NewProviderAccount is SocialAccount for a client's body.
func (s *Service) NewProviderAccount(
	ctx context.Context, directory id.Ref, login directoryapi.SocialLogin,
) (directoryapi.ProvidedAccount, error) {
	return s.SocialAccount(ctx, directoryapi.SocialAccount{Tenant: directory.Tenant, Directory: directory.ID, Login: login})
}

// checkLogin refuses a login that the provider of the directory is not asked about.
func checkLogin(p store.Provider, in directoryapi.SocialLogin) error {
	if !directoryapi.IsSocial(p.ProviderID) || field.Fold(p.ProviderID) != in.Provider {
		return apierr.Reference.Because("providerData.providerId: the directory has the provider %q, not a social provider %q",
			p.ProviderID, in.Provider)
	}
	if in.Provider == "linkedin" && in.Code != "" && in.RedirectURI == "" && p.Settings.RedirectURI == nil {
		return apierr.RedirectURIMissing.Because(
			"to exchange a code, the directory needs a redirectUri, or the request names the one of the browser")
	}
	return nil
}

// BeginSocialLogin returns where a browser goes to log in at the provider of a
// directory.
func (s *Service) BeginSocialLogin(ctx context.Context, in directoryapi.BeginSocialLogin) (directoryapi.SocialLoginBegun, error) {
	p, err := s.Provider(ctx, id.Ref{Tenant: in.Tenant, ID: in.Directory})
	if err != nil {
		return directoryapi.SocialLoginBegun{}, err
	}
	if !directoryapi.IsSocial(p.ProviderID) {
		return directoryapi.SocialLoginBegun{}, apierr.Reference.Because(
			"the directory has the provider %q, which is no social or OAuth provider", p.ProviderID)
	}
	begun, err := s.providers.Begin(ctx, client(p), connect.AuthorizationRequest{
		RedirectURI: in.RedirectURI, State: in.State, Scope: in.Scope,
	})
	return directoryapi.SocialLoginBegun{
		URL: begun.URL, Verifier: begun.Verifier, Nonce: begun.Nonce, RequestSecret: begun.RequestSecret,
	}, err
}

// client is a provider as its client reads it.
func client(p store.Provider) connect.Provider {
	s := p.Settings
	return connect.Provider{
		ID: p.ProviderID, ClientID: text(s.ClientID), ClientSecret: p.ClientSecret, RedirectURI: text(s.RedirectURI), Scope: s.Scope,
		HD: text(s.HD), Display: text(s.Display), AccessType: text(s.AccessType), DiscoveryURL: text(s.DiscoveryURL),
		Endpoints: connect.Endpoints{
			Authorization: text(s.AuthorizationEndpoint), Token: text(s.TokenEndpoint), Resource: text(s.ResourceEndpoint),
		},
		IDField: text(s.IDField), AccessTokenType: text(s.AccessTokenType),
	}
}
