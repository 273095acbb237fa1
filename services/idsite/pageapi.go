package idsite

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// PageAPI is the session-token API of the hosted pages: what a page may call with its session
// token (pagetoken.go; docs/interface/id-site.md#calls): for the application of its flow and, once the
// first step of the login is passed, for the account that has passed it. Any other call returns
// apierr.Forbidden. What the calls do is in the package journey, the HTTP part is rest/pageapi.go.
type PageAPI struct {
	svc  *Service
	flow store.Flow
	site store.Site
}

// OpenPageAPI verifies the session token of a hosted page and returns what the page may call.
// It returns apierr.Unauthorized for a text that is no session token. After the end of the session it
// returns apierr.SessionTimedOut and, where the flow is known,
// the address of the application to which the browser goes with that error. Also with an error
// the PageAPI is not nil, because AllowsOrigin decides which pages may read the error.
func (s *Service) OpenPageAPI(ctx context.Context, token secure.Secret) (page *PageAPI, redirect string, err error) {
	flow, site, err := s.verifyPageToken(ctx, token)
	page = &PageAPI{s, flow, site}
	if flow.ID.IsZero() || !errors.Is(err, apierr.SessionTimedOut) {
		return page, "", err
	}
	redirect, failed := s.errorRedirect(caller.WithTenant(ctx, flow.TenantID), flow, err)
	if failed != nil {
		return page, "", failed
	}
	return page, redirect, err
}

// Tenant is the tenant of the hosted login, or zero where the session token is not valid.
func (p *PageAPI) Tenant() id.ID { return p.flow.TenantID }

// Token returns the next session token of the page.
func (p *PageAPI) Token(ctx context.Context) (secure.Secret, error) {
	return p.svc.newPageToken(ctx, p.flow, p.site)
}

// AllowsOrigin reports whether pages of an origin may read the answers (CORS): the origin of the
// hosted pages, the subdomain of the organization that the request names, and the origins in
// authorizedOriginUris of the settings.
func (p *PageAPI) AllowsOrigin(origin string) bool {
	if p.site.ID.IsZero() {
		return false
	}
	own := []string{p.svc.originOf(p.site.DomainName), p.svc.organizationOrigin(p.site, p.flow.NameKey)}
	return redirecturi.IsListedOrigin(origin, slices.Concat(own, p.site.AuthorizedOriginURIs))
}

// checkApplication returns apierr.Forbidden for another application than that of the flow.
func (p *PageAPI) checkApplication(application id.ID) error {
	if application != p.flow.ApplicationID {
		return journey.ErrNotAllowed
	}
	return nil
}

// checkResource returns apierr.Forbidden for a resource that is neither the application of the
// flow nor the account store that the request of the flow names.
func (p *PageAPI) checkResource(ctx context.Context, kind string, at id.ID) error {
	if kind == "applications" {
		return p.checkApplication(at)
	}
	named, err := p.svc.Journey.RequestedStore(ctx, p.flow)
	if err != nil {
		return err
	}
	if ref, ok := p.svc.cfg.Base.Parse(named.Href); !ok || ref.Kind != kind || ref.ID != at {
		return journey.ErrNotAllowed
	}
	return nil
}

// checkAccount returns apierr.Forbidden for another account than the one that has passed the first step.
func (p *PageAPI) checkAccount(account id.ID) error {
	if account != p.flow.AccountID {
		return journey.ErrNotAllowed
	}
	return nil
}

// PageModel is what a hosted page shows of an application: the idSiteModel.
type PageModel struct {
	journey.Form
	Href                string
	Name                string
	Application, Tenant id.ID
	Accounts            string // address to which the page sends a registration
	LogoURL             *string
	AccentColor         *string
	HomeURL             *string // of the application
}

// Model returns what a page shows of the application of the flow, or of the account store that
// the request names.
func (p *PageAPI) Model(ctx context.Context, kind string, at id.ID) (PageModel, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageModel{}, err
	}
	app, err := p.svc.peers.Application.Application(ctx, id.Ref{Tenant: p.flow.TenantID, ID: p.flow.ApplicationID})
	if err != nil {
		return PageModel{}, err
	}
	form, err := p.svc.Journey.Form(ctx, p.flow)
	self := p.svc.cfg.Base.To(kind, at)
	return PageModel{
		Form: form, Href: self, Name: p.svc.displayName(app.Name, app.Builtin), Application: app.ID, Tenant: p.flow.TenantID,
		Accounts: self + "/accounts", LogoURL: p.site.LogoURL, AccentColor: p.site.AccentColor, HomeURL: app.HomeURL,
	}, err
}

// PageResult is the result of a step that a page takes in a login: either the login goes on
// with another step, or it has ended and the browser returns to the application.
type PageResult struct {
	Redirect string // address of the application; "": the login goes on
	Account  id.ID  // the account that has passed the first step
	Created  *directoryapi.Account
	Pending  bool // the email address must be verified first
}

// answer is the PageResult of a step of the journey: a login that has ended leads to the application, with an
// assertion of a status.
func (p *PageAPI) answer(ctx context.Context, r journey.Result, status string, err error) (PageResult, error) {
	out := PageResult{Account: p.flow.AccountID, Pending: r.Wants == journey.Verification}
	if err != nil || r.Wants != journey.Nothing {
		return out, err
	}
	out.Redirect, err = p.svc.assertionRedirect(ctx, p.flow, p.site, outcome{status: status, isNew: r.IsNew})
	return out, err
}

// resume returns where a browser goes on that has taken a step of its login elsewhere: to the page of the second
// step, or to the callback by way of the session.
func (p *PageAPI) resume(ctx context.Context, r journey.Result) (string, error) {
	answer, err := p.answer(ctx, r, authenticated, nil)
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

// LogIn verifies a password. value is the Base64 of <login>:<password>.
func (p *PageAPI) LogIn(ctx context.Context, application id.ID, value string, at directoryapi.StoreName) (PageResult, error) {
	if err := p.checkApplication(application); err != nil {
		return PageResult{}, err
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		decoded, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
	}
	login, password, found := strings.Cut(string(decoded), ":")
	if err != nil || !found || !utf8.Valid(decoded) || strings.ContainsRune(login, 0) {
		return PageResult{}, apierr.Format.Because("value must be the Base64 form of <login>:<password>")
	}
	result, err := p.svc.Journey.LogIn(ctx, &p.flow, at, login, secure.Secret(password))
	return p.answer(ctx, result, authenticated, err)
}

// LogInWithProviderData logs a user in by a token or code that a provider has issued to the page
// itself (providerData). The page sends it to the application, or to the account store that the
// request names.
func (p *PageAPI) LogInWithProviderData(ctx context.Context, kind string, at id.ID, login directoryapi.SocialLogin) (PageResult, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	result, err := p.svc.Journey.LogInWithProviderData(ctx, &p.flow, login)
	return p.answer(ctx, result, authenticated, err)
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
	d, err := p.svc.Journey.ProviderDirectory(ctx, journey.Requested(f), named)
	if err != nil {
		return "", err
	}
	return p.svc.Journey.BeginAtProvider(ctx, d, store.ProviderLogin{
		TenantID: f.TenantID, ApplicationID: f.ApplicationID, RedirectURI: p.svc.cfg.Base.Host() + hostedCallbackPath,
		AccountStore: f.AccountStore, NameKey: f.NameKey, FlowID: f.ID, Browser: f.Browser,
	}, nil)
}

// BeginSAML begins the SAML login of a button on a hosted page. It returns the address of the
// identity provider of a directory.
func (p *PageAPI) BeginSAML(ctx context.Context, application id.ID, named string) (string, error) {
	if err := p.checkApplication(application); err != nil {
		return "", err
	}
	directory, err := p.svc.Journey.SAMLDirectory(ctx, journey.Requested(p.flow), cmp.Or(named, p.flow.AccountStore))
	if err != nil {
		return "", err
	}
	return p.svc.Journey.BeginAtSAML(ctx, p.flow, directory, true)
}

// Register registers a user (self-service registration, sign-up) at the application, or at the account store that
// the request names. The page may name an organization.
func (p *PageAPI) Register(
	ctx context.Context, kind string, at id.ID, in directoryapi.NewAccount, named directoryapi.StoreName,
) (PageResult, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	result, err := p.svc.Journey.Register(ctx, &p.flow, named, in)
	answer, err := p.answer(ctx, result, registered, err)
	if err == nil && !answer.Pending {
		answer.Created = &result.Account
	}
	return answer, err
}

// RequestPasswordReset sends a password reset mail (forgot password). Its answer and its time
// are the same whether the account exists or not.
func (p *PageAPI) RequestPasswordReset(ctx context.Context, application id.ID, login string, at directoryapi.StoreName) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	where, err := p.svc.Journey.Target(ctx, p.flow, at)
	if err != nil {
		return err
	}
	return p.svc.Journey.RequestReset(ctx, where, login)
}

// CheckReset returns an error unless a password reset token is valid.
func (p *PageAPI) CheckReset(ctx context.Context, application id.ID, token secure.Secret) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	return p.svc.Journey.CheckReset(ctx, p.resetToken(token))
}

// ResetPassword sets a new password with a password reset token, which it consumes, once in a session.
func (p *PageAPI) ResetPassword(ctx context.Context, application id.ID, token, password secure.Secret) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	return p.svc.Journey.ResetPassword(ctx, p.flow, p.resetToken(token), password)
}

func (p *PageAPI) resetToken(token secure.Secret) applicationapi.ResetToken {
	return applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: p.flow.ApplicationID, Token: token}
}

// SendVerificationMail sends another verification mail to the account whose right password was entered in this
// login; login must be a login name of it.
func (p *PageAPI) SendVerificationMail(ctx context.Context, application id.ID, login string) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	return p.svc.Journey.SendVerification(ctx, p.flow, login)
}

// VerifyEmail verifies an email address with a token of the tenant, which it consumes.
func (p *PageAPI) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return p.svc.Journey.VerifyEmail(ctx, p.flow.TenantID, token)
}

// Factors returns the factors of the account that passed the first step.
func (p *PageAPI) Factors(ctx context.Context, account id.ID) ([]mfaapi.AccountFactor, error) {
	if err := p.checkAccount(account); err != nil {
		return nil, err
	}
	return p.svc.Journey.Factors(ctx, p.flow)
}

// EnrollFactor creates a factor of the account.
func (p *PageAPI) EnrollFactor(ctx context.Context, account id.ID, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	if err := p.checkAccount(account); err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	return p.svc.Journey.EnrollFactor(ctx, p.flow, in)
}

// Challenge creates a challenge of a factor of the account. With a code it also answers that
// challenge.
func (p *PageAPI) Challenge(ctx context.Context, factor id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	challenged, err := p.svc.Journey.Challenge(ctx, &p.flow, factor, code)
	answer, err := p.answer(ctx, challenged.Result, authenticated, err)
	return challenged.Challenged, answer, err
}

// AnswerChallenge verifies the code of a challenge of the account.
func (p *PageAPI) AnswerChallenge(ctx context.Context, challenge id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	challenged, err := p.svc.Journey.AnswerChallenge(ctx, &p.flow, challenge, code)
	answer, err := p.answer(ctx, challenged.Result, authenticated, err)
	return challenged.Challenged, answer, err
}
