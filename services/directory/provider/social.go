package provider

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/store"
)

// SocialAccount finishes a social login (OAuth, OpenID Connect): it fetches the user from the
// provider of a directory (package connect) and returns the account, which it creates at the first
// login (account.go). No transaction is open while the provider is called.
func (s *Service) SocialAccount(ctx context.Context,
	in directoryapi.SocialAccount) (directoryapi.ProviderAccountResult, error) {
	p, err := s.Provider(ctx, id.Ref{Tenant: in.Tenant, ID: in.Directory})
	if err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	if err := checkLogin(p, in.Login); err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	user, err := s.client.User(ctx, connectProvider(p), connect.Login{
		AccessToken: in.Login.AccessToken, AccessTokenSecret: in.Login.AccessTokenSecret, Code: in.Login.Code,
		RedirectURI: in.Login.RedirectURI,
		Verifier:    in.Login.Verifier, Nonce: in.Login.Nonce,
	})
	if err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	user.Tenant, user.Directory, user.Application, user.Account = in.Tenant, in.Directory, in.Application, in.Account
	user.CustomData = in.Login.CustomData
	return s.ProviderAccount(ctx, user)
}

// SocialAccountIn is SocialAccount for the body of a client.
func (s *Service) SocialAccountIn(
	ctx context.Context, directory id.Ref, login directoryapi.SocialLogin,
) (directoryapi.ProviderAccountResult, error) {
	return s.SocialAccount(ctx,
		directoryapi.SocialAccount{Tenant: directory.Tenant, Directory: directory.ID, Login: login})
}

// checkLogin returns an error for a login that cannot be one at the provider of the directory.
func checkLogin(p store.Provider, in directoryapi.SocialLogin) error {
	if !directoryapi.IsSocial(p.ProviderID) || field.Fold(p.ProviderID) != in.Provider {
		return apierr.Reference.Because(
			"providerData.providerId: the directory has the provider %q, not a social provider %q",
			p.ProviderID, in.Provider)
	}
	if in.Provider == "linkedin" && in.Code != "" && in.RedirectURI == "" && p.Settings.RedirectURI == nil {
		return apierr.RedirectURIMissing.Because(
			"to exchange a code, the directory needs a redirectUri, or the request names the one of the browser")
	}
	return nil
}

// BeginSocialLogin returns the URL to which a browser goes to log in at the provider of a
// directory. The callback of the provider is handled by services/idsite/providercallback.go.
func (s *Service) BeginSocialLogin(ctx context.Context,
	in directoryapi.BeginSocialLogin) (directoryapi.SocialLoginBegun, error) {
	p, err := s.Provider(ctx, id.Ref{Tenant: in.Tenant, ID: in.Directory})
	if err != nil {
		return directoryapi.SocialLoginBegun{}, err
	}
	if !directoryapi.IsSocial(p.ProviderID) {
		return directoryapi.SocialLoginBegun{}, apierr.Reference.Because(
			"the directory has the provider %q, which is no social or OAuth provider", p.ProviderID)
	}
	begun, err := s.client.Begin(ctx, connectProvider(p), connect.AuthorizationRequest{
		RedirectURI: in.RedirectURI, State: in.State, Scope: in.Scope,
	})
	return directoryapi.SocialLoginBegun{
		URL: begun.URL, Verifier: begun.Verifier, Nonce: begun.Nonce, RequestSecret: begun.RequestSecret,
	}, err
}

// connectProvider returns the provider as package connect takes it.
func connectProvider(p store.Provider) connect.Provider {
	s := p.Settings
	return connect.Provider{
		ID: p.ProviderID, ClientID: valueOf(s.ClientID), ClientSecret: p.ClientSecret,
		RedirectURI: valueOf(s.RedirectURI),
		Scope:       s.Scope,
		HD:          valueOf(s.HD), Display: valueOf(s.Display), AccessType: valueOf(s.AccessType),
		DiscoveryURL: valueOf(s.DiscoveryURL),
		Endpoints: connect.Endpoints{
			Authorization: valueOf(s.AuthorizationEndpoint), Token: valueOf(s.TokenEndpoint),
			Resource:      valueOf(s.ResourceEndpoint),
			Introspection: valueOf(s.IntrospectionEndpoint),
		},
		IDField: valueOf(s.IDField), AccessTokenType: valueOf(s.AccessTokenType),
		AcceptForeignTokens: valueOf(s.AcceptForeignTokens),
	}
}

// valueOf returns the value of an optional setting, zero where it is not set.
func valueOf[T any](setting *T) (value T) {
	if setting != nil {
		value = *setting
	}
	return value
}
