package journey

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/servicetoken"
	"github.com/doorward/doorward/services/idsite/store"
)

// providerLoginTTL is how long a login at a provider may take.
const providerLoginTTL = 30 * time.Minute

// providerState is a state, which goes to the provider and comes back in the callback.
var providerState = servicetoken.Kind{Purpose: "idsite.provider", ID: "jti"}

// providerSecretsPurpose is the purpose for which the secrets of a login are sealed: the PKCE
// verifier, the nonce and the request token secret.
func providerSecretsPurpose(login id.ID) string { return "idsite.providerlogin/" + login.String() }

// ProviderDirectory returns the directory of an href, for a login of a browser at its provider.
// It returns an error for a directory in which the target does not look up logins, that is disabled, or has no
// social, OAuth or SAML provider.
func (j *Journey) ProviderDirectory(ctx context.Context, where applicationapi.LoginTarget, named string) (
	directoryapi.LoginDirectory, error) {
	stores, err := j.Stores(ctx, where)
	if err != nil {
		return directoryapi.LoginDirectory{}, err
	}
	ref, ok := j.base.Parse(named)
	if !ok || ref.Kind != "directories" {
		return directoryapi.LoginDirectory{}, apierr.Reference.Because("%q is not the href of a directory", named)
	}
	list, err := j.peers.Directory.LoginDirectories(ctx,
		directoryapi.LoginDirectories{Tenant: where.Tenant, Directories: stores.Directories})
	if err != nil {
		return directoryapi.LoginDirectory{}, err
	}
	for _, d := range list.Items {
		switch {
		case d.ID != ref.ID:
		case d.Status != directoryapi.Enabled:
			return d, apierr.DirectoryDisabled.Because("the directory is disabled")
		case !hasProvider(d):
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

// BeginProviderLogin begins the social login of a button. It returns the address
// of the provider of a directory, whose href is named.
func (l *Login) BeginProviderLogin(ctx context.Context, application id.ID, named string) (string, error) {
	if err := l.CheckApplication(application); err != nil {
		return "", err
	}
	f := l.Flow
	d, err := l.ProviderDirectory(ctx, Requested(f), named)
	if err != nil {
		return "", err
	}
	return l.BeginAtProvider(ctx, d, store.ProviderLogin{
		TenantID: f.TenantID, ApplicationID: f.ApplicationID, RedirectURI: l.base.Host() + hostedCallbackPath,
		AccountStore: f.AccountStore, NameKey: f.NameKey, FlowID: f.ID, Browser: f.Browser,
	}, nil)
}

// BeginAtProvider begins a login at the provider of a directory (social login) and returns
// the address of the provider. The state that it sends along is bound to the browser
// (l.Browser), and is verified in the callback (ConsumeProviderLogin).
func (j *Journey) BeginAtProvider(ctx context.Context, d directoryapi.LoginDirectory, l store.ProviderLogin,
	scope []string) (
	location string, err error) {
	if l.Address, err = j.limitBegunLogins(ctx, l.TenantID, l.ApplicationID); err != nil {
		return "", err
	}
	now := j.now()
	l.ID, l.ExpiresAt, l.DirectoryID, l.Provider = id.New(now), now.Add(providerLoginTTL), d.ID, field.Fold(d.ProviderID)
	state, err := providerState.Sign(j.ring, l.TenantID,
		secure.Claims{"jti": l.ID.String(), "iat": now.Unix(), "exp": l.ExpiresAt.Unix()})
	if err != nil {
		return "", err
	}
	begun, err := j.peers.Directory.BeginSocialLogin(ctx, directoryapi.BeginSocialLogin{
		Tenant: l.TenantID, Directory: l.DirectoryID, RedirectURI: l.RedirectURI, State: state, Scope: scope,
	})
	if err != nil {
		return "", err
	}
	location, begun.URL = begun.URL, ""
	secrets, err := json.Marshal(begun)
	if err != nil {
		return "", err
	}
	l.SecretsSealed = j.ring.Seal(secure.Secret(secrets), providerSecretsPurpose(l.ID))
	return location, j.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertProviderLogin(ctx, l) })
}

// ProviderResponse has the parameters and the cookie of a callback: of a browser that a provider
// has redirected back.
type ProviderResponse struct {
	State            secure.Secret
	Code             secure.Secret
	Error            string // RFC 6749, section 4.1.2.1
	ErrorDescription string
	Token            secure.Secret // oauth_token of twitter (OAuth 1.0a)
	Verifier         secure.Secret // oauth_verifier of twitter
	Denied           bool          // denied of twitter: the user refused
	Browsers         BrowserTokens // cookies of the logins that the browser has begun
}

// ErrProviderState is the error of a callback whose state is not valid for this browser.
var ErrProviderState = apierr.BadRequest.
	Because("state is that of no login of this browser, or the login has ended or has taken too long; begin again").
	Saying("This login has ended or has taken too long. Please begin again.")

// ConsumeProviderLogin verifies the state of a callback and returns its login, once. It returns
// ErrProviderState for a state that this service has not signed, that has expired or was used,
// and for another browser than the one that began the login (login CSRF).
func (j *Journey) ConsumeProviderLogin(ctx context.Context, in ProviderResponse) (l store.ProviderLogin, err error) {
	state, err := providerState.Verify(j.ring, in.State)
	if err != nil {
		return l, ErrProviderState
	}
	tenant, login := state.About.Tenant, state.About.ID
	if err := j.CheckTenant(ctx, tenant); err != nil {
		return l, err
	}
	err = j.store.Tx(caller.WithTenant(ctx, tenant), func(tx *store.Tx) (err error) {
		l, err = tx.ConsumeProviderLogin(ctx, tenant, login, in.Browsers.digests(), j.now())
		return err
	})
	if errors.Is(err, apierr.NotFound) {
		return l, ErrProviderState
	}
	return l, err
}

// LogInAtProvider verifies what a provider has sent with the browser, and logs its user in to the application. The
// login in progress goes on with PassFirstStepAtProvider.
func (j *Journey) LogInAtProvider(ctx context.Context, l store.ProviderLogin, in ProviderResponse) (
	applicationapi.ProviderLoggedIn, error) {
	if in.Error != "" || in.Denied {
		return applicationapi.ProviderLoggedIn{}, providerRefusal(in)
	}
	text, err := j.ring.Open(l.SecretsSealed, providerSecretsPurpose(l.ID))
	if err != nil {
		return applicationapi.ProviderLoggedIn{}, err
	}
	var begun directoryapi.SocialLoginBegun
	if err := json.Unmarshal([]byte(text.Reveal()), &begun); err != nil {
		return applicationapi.ProviderLoggedIn{}, err
	}
	login := directoryapi.SocialLogin{
		Provider: l.Provider, Code: in.Code, RedirectURI: l.RedirectURI, Verifier: begun.Verifier, Nonce: begun.Nonce,
		AccountStore: l.AccountStore, NameKey: l.NameKey,
	}
	if begun.RequestSecret != "" {
		login.AccessToken, login.AccessTokenSecret, login.Code = in.Token, begun.RequestSecret, in.Verifier
	}
	if login.Code == "" {
		return applicationapi.ProviderLoggedIn{}, apierr.ProviderRefused.Because(
			"the provider sent the browser back without a code")
	}
	return j.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: l.TenantID, Application: l.ApplicationID, Directory: l.DirectoryID, Login: login,
	})
}

// PassFirstStepAtProvider continues a login after the login at a provider.
func (j *Journey) PassFirstStepAtProvider(ctx context.Context, f *store.Flow,
	logged applicationapi.ProviderLoggedIn) (Result, error) {
	f.ByPassword = false
	return j.passFirstStep(ctx, f, logged.LoggedIn, logged.IsNew)
}

// providerRefusal is the error of a login that the provider or its user has refused.
func providerRefusal(in ProviderResponse) error {
	reason := in.Error
	if in.ErrorDescription != "" {
		reason += ": " + in.ErrorDescription
	}
	if in.Denied {
		reason = "the user refused"
	}
	return apierr.ProviderRefused.Because("the provider refused the login: %.300q", reason)
}

// LogInWithProviderData logs a user in by a token or code that a provider has issued to the page
// itself (providerData), in the account store that the browser names (Target).
func (j *Journey) LogInWithProviderData(ctx context.Context, f *store.Flow,
	login directoryapi.SocialLogin) (Result, error) {
	where, err := j.Target(ctx, *f, directoryapi.StoreName{Href: login.AccountStore, NameKey: login.NameKey})
	if err != nil {
		return Result{}, err
	}
	login.AccountStore, login.NameKey = where.AccountStore.Href, where.NameKey
	logged, err := j.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: f.TenantID, Application: f.ApplicationID, Login: login,
	})
	if err != nil {
		return Result{}, err
	}
	return j.PassFirstStepAtProvider(ctx, f, logged)
}
