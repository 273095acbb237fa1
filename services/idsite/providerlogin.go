package idsite

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// providerLoginTTL is how long a login at a provider may take.
const providerLoginTTL = 30 * time.Minute

// providerStatePurpose is the purpose for which the key of a tenant's states is derived. A state
// goes to the provider and comes back in the callback.
func providerStatePurpose(tenant id.ID) string { return "idsite.provider/" + tenant.String() }

// providerSecretsPurpose is the purpose for which the secrets of a login are sealed: the PKCE
// verifier, the nonce and the request token secret.
func providerSecretsPurpose(login id.ID) string { return "idsite.providerlogin/" + login.String() }

// beginProviderLogin begins a login at the provider of a directory (social login) and returns
// the address of the provider. The state that it sends along is bound to the browser
// (l.Browser), and is verified in the callback (consumeProviderLogin in providercallback.go).
func (s *Service) beginProviderLogin(ctx context.Context, l store.ProviderLogin, scope []string) (string, error) {
	address, err := s.limitBegunLogins(ctx, l.TenantID, l.ApplicationID)
	if err != nil {
		return "", err
	}
	now := s.now()
	l.Address = address
	l.ID, l.ExpiresAt = id.New(now), now.Add(providerLoginTTL)
	state, err := s.signServiceToken(l.TenantID, providerStatePurpose, "",
		secure.Claims{"jti": l.ID.String(), "iat": now.Unix(), "exp": l.ExpiresAt.Unix()})
	if err != nil {
		return "", err
	}
	begun, err := s.peers.Directory.BeginSocialLogin(ctx, directoryapi.BeginSocialLogin{
		Tenant: l.TenantID, Directory: l.DirectoryID, RedirectURI: l.RedirectURI, State: state, Scope: scope,
	})
	if err != nil {
		return "", err
	}
	location := begun.URL
	begun.URL = ""
	secrets, err := json.Marshal(begun)
	if err != nil {
		return "", err
	}
	l.SecretsSealed = s.ring.Seal(secure.Secret(secrets), providerSecretsPurpose(l.ID))
	return location, s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertProviderLogin(ctx, l) })
}

// providerDirectory returns the directory of an href, for a login of a browser at its provider.
// It returns an error for a directory that is not among the given ones, is disabled, or has no
// social, OAuth or SAML provider.
func (s *Service) providerDirectory(ctx context.Context, tenant id.ID, among []id.ID, named string) (directoryapi.LoginDirectory, error) {
	ref, ok := s.cfg.Base.Parse(named)
	if !ok || ref.Kind != "directories" {
		return directoryapi.LoginDirectory{}, apierr.Reference.Because("%q is not the href of a directory", named)
	}
	list, err := s.peers.Directory.LoginDirectories(ctx, directoryapi.LoginDirectories{Tenant: tenant, Directories: among})
	if err != nil {
		return directoryapi.LoginDirectory{}, err
	}
	for _, d := range list.Items {
		switch {
		case d.ID != ref.ID:
		case d.Status != directoryapi.Enabled:
			return d, apierr.DirectoryDisabled.Because("the directory is disabled")
		case d.ProviderID != "saml" && !directoryapi.IsSocial(d.ProviderID):
			return d, apierr.Reference.Because("users of the directory %q do not log in at a provider", named)
		default:
			return d, nil
		}
	}
	return directoryapi.LoginDirectory{}, apierr.NotMapped.Because(
		"the directory %q is not mapped to the application or the organization", named)
}

// hostedCallbackPath is the path of the callback (redirect_uri) of logins at providers that began
// at a hosted page.
const hostedCallbackPath = "/sso/provider"

// BeginProviderLogin begins the social login of a button on a hosted page. It returns the address
// of the provider of a directory, whose href is named.
func (p *PageAPI) BeginProviderLogin(ctx context.Context, application id.ID, named string) (string, error) {
	if err := p.checkApplication(application); err != nil {
		return "", err
	}
	f := p.flow
	stores, err := p.svc.loginStores(ctx, accountStoreOf(f))
	if err != nil {
		return "", err
	}
	d, err := p.svc.providerDirectory(ctx, f.TenantID, stores.Directories, named)
	if err != nil {
		return "", err
	}
	return p.svc.beginProviderLogin(ctx, store.ProviderLogin{
		TenantID: f.TenantID, ApplicationID: f.ApplicationID, DirectoryID: d.ID, Provider: field.Fold(d.ProviderID),
		RedirectURI: p.svc.cfg.Base.Host() + hostedCallbackPath, AccountStore: f.AccountStore, NameKey: f.NameKey, FlowID: f.ID,
		Browser: f.Browser,
	}, nil)
}

// finishExternalLogin continues the flow of a browser that has passed the first step elsewhere: it returns
// the address of the second step, or that of the callback by way of the session.
func (p *PageAPI) finishExternalLogin(ctx context.Context, logged applicationapi.LoggedIn, isNew bool) (string, error) {
	answer, err := p.completeFirstStep(ctx, logged, authenticated, isNew)
	if err != nil {
		return "", err
	}
	if answer.Redirect == "" {
		token, err := p.Token(ctx)
		return p.svc.pageOrigin(p.flow, p.site) + "/#/?jwt=" + token.Reveal(), err
	}
	_, assertion, _ := strings.Cut(answer.Redirect, "jwtResponse=")
	return p.svc.cfg.Base.Host() + "/sso?jwtResponse=" + assertion, nil
}
