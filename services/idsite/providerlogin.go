package idsite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// providerLife is how long a user may take at a provider.
const providerLife = 30 * time.Minute

// providerPurpose is what the keys of a tenant's states, which providers send back,
// are derived for.
func providerPurpose(tenant id.ID) string { return "idsite.provider/" + tenant.String() }

func providerSecretsPurpose(login id.ID) string { return "idsite.providerlogin/" + login.String() }

// beginAtProvider begins a login at the provider of a directory, and returns where
// the browser goes.
func (s *Service) beginAtProvider(ctx context.Context, l store.ProviderLogin, scope []string) (string, error) {
	now := s.now()
	l.ID, l.ExpiresAt = id.New(now), now.Add(providerLife)
	state, err := s.signOwn(l.TenantID, providerPurpose, "",
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

// ProviderReturn is a browser that a provider has sent back.
type ProviderReturn struct {
	State            secure.Secret
	Code             secure.Secret
	Error            string // RFC 6749, section 4.1.2.1
	ErrorDescription string
	Token            secure.Secret // of twitter: the request token
	Verifier         secure.Secret // of twitter
	Denied           bool          // of twitter: the user refused
	Browser          secure.Secret // cookie
}

var errNoProviderLogin = apierr.BadRequest.
	Because("state is that of no login of this browser, or the login has ended or has taken too long; begin again").
	Saying("This login has ended or has taken too long. Please begin again.")

// takeProviderLogin returns the login of a state, once, for the browser that began
// it.
func (s *Service) takeProviderLogin(ctx context.Context, in ProviderReturn) (l store.ProviderLogin, err error) {
	at, _, err := s.openOwn(in.State, providerPurpose, "", "jti")
	if err != nil || len(in.Browser) != browserLength {
		return l, errNoProviderLogin
	}
	ctx = caller.WithTenant(ctx, at.Tenant)
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		l, err = tx.TakeProviderLogin(ctx, at.Tenant, at.ID, secure.Digest(in.Browser), s.now())
		return err
	})
	if errors.Is(err, apierr.NotFound) {
		err = errNoProviderLogin
	}
	return l, err
}

// endAtProvider logs in the user that the provider has redirected back.
func (s *Service) endAtProvider(ctx context.Context, l store.ProviderLogin, in ProviderReturn) (applicationapi.ProviderLoggedIn, error) {
	if in.Error != "" || in.Denied {
		return applicationapi.ProviderLoggedIn{}, errDenied(in)
	}
	text, err := s.ring.Open(l.SecretsSealed, providerSecretsPurpose(l.ID))
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
		return applicationapi.ProviderLoggedIn{}, apierr.ProviderRefused.Because("the provider sent the browser back without a code")
	}
	return s.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: l.TenantID, Application: l.ApplicationID, Directory: l.DirectoryID, Login: login,
	})
}

// errDenied is what a provider that refuses a login has said.
func errDenied(in ProviderReturn) error {
	reason := in.Error
	if in.ErrorDescription != "" {
		reason += ": " + in.ErrorDescription
	}
	if in.Denied {
		reason = "the user refused"
	}
	return apierr.ProviderRefused.Because("the provider refused the login: %.300q", reason)
}

// socialDirectory returns one of some directories for a login of a browser. One that
// is not among them, or has no social or OAuth provider, is an error.
func (s *Service) socialDirectory(ctx context.Context, tenant id.ID, among []id.ID, named string) (directoryapi.LoginDirectory, error) {
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

// hostedReturn is where providers send browsers back that came from hosted pages.
const hostedReturn = "/sso/provider"

// BeginAtProvider returns the address of the provider of a directory, for the button
// of a page.
func (p *Page) BeginAtProvider(ctx context.Context, application id.ID, named string) (string, error) {
	if err := p.wantApplication(application); err != nil {
		return "", err
	}
	f := p.flow
	stores, err := p.svc.organization(ctx, whereOf(f))
	if err != nil {
		return "", err
	}
	d, err := p.svc.socialDirectory(ctx, f.TenantID, stores.Directories, named)
	if err != nil {
		return "", err
	}
	return p.svc.beginAtProvider(ctx, store.ProviderLogin{
		TenantID: f.TenantID, ApplicationID: f.ApplicationID, DirectoryID: d.ID, Provider: field.Fold(d.ProviderID),
		RedirectURI: p.svc.cfg.Base.Host() + hostedReturn, AccountStore: f.AccountStore, NameKey: f.NameKey, FlowID: f.ID,
		Browser: f.Browser,
	}, nil)
}

// ReturnFromProvider answers GET /sso/provider: it returns the address where a browser
// continues after the redirect of its provider. A login that is refused leads back to the
// page.
func (s *Service) ReturnFromProvider(ctx context.Context, in ProviderReturn) (string, error) {
	l, err := s.takeProviderLogin(ctx, in)
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, l.TenantID)
	flow, err := s.store.Flow(ctx, l.TenantID, l.FlowID)
	if errors.Is(err, apierr.NotFound) {
		return "", errNoProviderLogin
	}
	if err != nil {
		return "", err
	}
	site, err := s.store.TenantSite(ctx, l.TenantID)
	if err != nil {
		return "", err
	}
	if flow.FinishedAt != nil || !s.now().Before(flow.ExpiresAt) {
		return "", errSessionOver
	}
	page := &Page{s, flow, site}
	logged, err := s.endAtProvider(ctx, l, in)
	if err == nil {
		return page.goOn(ctx, logged.LoggedIn, logged.IsNew)
	}
	if apierr.From(err).Status >= 500 {
		return "", err
	}
	// The token is for the first step, whoever may have passed it in another browser.
	page.flow.AccountID, page.flow.IsNew = id.ID{}, false
	token, failed := page.Token(ctx)
	return s.pageOrigin(flow, site) + "/#/?failed=provider&jwt=" + token.Reveal(), failed
}

// goOn continues the flow of a browser that has passed the first step elsewhere: it returns
// the address of the second step, or that of the callback by way of the session.
func (p *Page) goOn(ctx context.Context, logged applicationapi.LoggedIn, isNew bool) (string, error) {
	answer, err := p.passed(ctx, logged, authenticated, isNew)
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

// LogInAtProvider logs in the user of a token or code that a provider has issued to the page,
// which sends it to the application or to the account store of its request.
func (p *Page) LogInAtProvider(ctx context.Context, kind string, at id.ID, login directoryapi.SocialLogin) (Answer, error) {
	if err := p.wantResource(ctx, kind, at); err != nil {
		return Answer{}, err
	}
	if login.AccountStore == "" && login.NameKey == "" {
		login.AccountStore, login.NameKey = p.flow.AccountStore, p.flow.NameKey
	}
	logged, err := p.svc.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: p.flow.TenantID, Application: p.flow.ApplicationID, Login: login,
	})
	if err != nil {
		return Answer{}, err
	}
	return p.passed(ctx, logged.LoggedIn, authenticated, logged.IsNew)
}
