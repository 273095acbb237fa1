package openid

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// issuer is an application as an OpenID provider.
type issuer struct {
	app      applicationapi.Application
	provider store.OpenIDProvider
	url      string // the iss of its tokens
	siteURL  string // url where it has the domain of the hosted pages; empty: it has the address of the deployment
	salt     secure.Secret
}

func (i issuer) ref() id.Ref { return id.Ref{Tenant: i.app.TenantID, ID: i.app.ID} }

// issued reports whether tokens of a login were issued by the issuer as it is now. Relying parties refuse an ID token of
// a refresh that has another iss than the first one (OpenID Connect Core, section 12.2), so that a new issuer ends the
// tokens of the former one.
func (i issuer) issued(login store.Login) bool { return login.Issuer == i.siteURL }

// subject is the sub of an account in the tokens of a client.
func (i issuer) subject(client store.OpenIDClient, account id.ID) string {
	return relyingparty.Subject(client, account, i.salt)
}

// isFAPI reports whether the FAPI 2.0 Security Profile holds.
func (i issuer) isFAPI() bool { return i.provider.Settings.Profile == relyingparty.ProfileFAPI2 }

// algorithms are those of signatures that the provider makes and accepts.
func (i issuer) algorithms() []string {
	if i.isFAPI() {
		return relyingparty.FAPIAlgorithms
	}
	return secure.SigningAlgorithms
}

// scopeNames are the scopes of the provider: the built-in ones, and those of the application's APIs.
func (i issuer) scopeNames() []string {
	names := slices.Clone(builtinScopes)
	for _, scope := range i.provider.Settings.Scopes {
		names = append(names, scope.Name)
	}
	return names
}

// issuer returns the provider of an application that is named by its id alone. A disabled application or provider is
// apierr.NotFound, as one that is not there; that of a suspended tenant is apierr.TenantSuspended.
func (s *Service) issuer(ctx context.Context, application id.ID) (issuer, error) {
	app, err := s.Application.FindApplication(ctx, applicationapi.FindApplication{ID: application})
	if err != nil {
		return issuer{}, err
	}
	if err := s.tenants.Check(ctx, app.TenantID); err != nil {
		return issuer{}, err
	}
	return s.issuerOf(ctx, app)
}

func (s *Service) issuerOf(ctx context.Context, app applicationapi.Application) (issuer, error) {
	i := issuer{app: app}
	p, err := s.Store.CachedOpenIDProvider(ctx, i.ref())
	i.provider, err = orDefault(app, p, err)
	if err == nil && (app.Status != directoryapi.Enabled || i.provider.Settings.Status != directoryapi.Enabled) {
		err = apierr.NotFound
	}
	if err == nil {
		i.provider, err = s.withIssuer(ctx, i.provider)
	}
	if err != nil {
		return i, err
	}
	if i.url = i.provider.Issuer; i.provider.Settings.IssuerDomain == issuerSite {
		i.siteURL = i.url
	}
	i.salt, err = s.Salt(ctx, app.TenantID)
	return i, err
}
