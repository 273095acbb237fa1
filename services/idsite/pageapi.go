package idsite

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// PageAPI is a hosted page that calls the service with a session token
// (docs/interface/id-site.md#calls). Its methods are what a page may do, for the
// application of its flow and, after the first step, for that account. What is
// not the page's to see is apierr.Forbidden.
type PageAPI struct {
	svc  *Service
	flow store.Flow
	site store.Site
}

// OpenPageAPI returns the page of a session token. Where the session is over it
// returns apierr.SessionTimedOut, and where the flow is known the address to
// return to with that error. The page that it returns with an error knows which
// origins may read the answer.
func (s *Service) OpenPageAPI(ctx context.Context, token secure.Secret) (*PageAPI, string, error) {
	flow, site, err := s.verifyPageToken(ctx, token)
	page := &PageAPI{s, flow, site}
	if err == nil || flow.ID.IsZero() || !errors.Is(err, apierr.SessionTimedOut) {
		return page, "", err
	}
	back, failed := s.errorRedirect(caller.WithTenant(ctx, flow.TenantID), flow, err)
	if failed != nil {
		return page, "", failed
	}
	return page, back, err
}

// Tenant is that of the page's site, or zero where the session is not known.
func (p *PageAPI) Tenant() id.ID { return p.flow.TenantID }

// Token is the next token of the session.
func (p *PageAPI) Token(ctx context.Context) (secure.Secret, error) {
	return p.svc.newPageToken(ctx, p.flow, p.site)
}

// AllowsOrigin reports whether pages of an origin may read the answers: the
// site's own, the subdomain of the organization that the request names, and those
// of the settings.
func (p *PageAPI) AllowsOrigin(origin string) bool {
	if p.site.ID.IsZero() {
		return false
	}
	return origin == p.svc.originOf(p.site.DomainName) || origin == p.svc.organizationOrigin(p.site, p.flow.NameKey) ||
		redirecturi.IsListedOrigin(origin, p.site.AuthorizedOriginURIs)
}

func (p *PageAPI) checkApplication(application id.ID) error {
	if application != p.flow.ApplicationID {
		return errNotAllowedForPage
	}
	return nil
}

var errNotAllowedForPage = apierr.Forbidden.Because(
	"a hosted login may call nothing but its own application and, after the password, its own account")

// checkResource refuses a resource that is neither the application of the flow nor the
// account store that its request names.
func (p *PageAPI) checkResource(ctx context.Context, kind string, at id.ID) error {
	if kind == "applications" {
		return p.checkApplication(at)
	}
	named, err := p.svc.namedStore(ctx, p.flow)
	if err != nil {
		return err
	}
	if ref, ok := p.svc.cfg.Base.Parse(named.Href); !ok || ref.Kind != kind || ref.ID != at {
		return errNotAllowedForPage
	}
	return nil
}

// PageModel is what a page shows of an application.
type PageModel struct {
	Href                string
	Name                string
	Application, Tenant id.ID
	Accounts            string // where accounts are created
	Directories         []directoryapi.LoginDirectory
	Rules               *directoryapi.RegistrationRules // nil: nobody can register
	LogoURL             *string
	AccentColor         *string
}

// Model returns what to show of the application of the flow, or of its account
// store.
func (p *PageAPI) Model(ctx context.Context, kind string, at id.ID) (PageModel, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageModel{}, err
	}
	f := p.flow
	app, err := p.svc.peers.Application.Application(ctx, id.Ref{Tenant: f.TenantID, ID: f.ApplicationID})
	if err != nil {
		return PageModel{}, err
	}
	stores, err := p.svc.loginStoresWithDefault(ctx, accountStoreOf(f))
	if err != nil {
		return PageModel{}, err
	}
	list, err := p.svc.peers.Directory.LoginDirectories(ctx,
		directoryapi.LoginDirectories{Tenant: f.TenantID, Directories: stores.Directories})
	if err != nil {
		return PageModel{}, err
	}
	self := p.svc.cfg.Base.To(kind, at)
	m := PageModel{
		Href: self, Name: p.svc.displayName(app.Name, app.Builtin), Application: app.ID, Tenant: f.TenantID, Accounts: self + "/accounts",
		LogoURL: p.site.LogoURL, AccentColor: p.site.AccentColor,
	}
	for _, d := range list.Items {
		if d.Status == directoryapi.Enabled && (directoryapi.IsSocial(d.ProviderID) || d.ProviderID == "saml" ||
			strings.HasPrefix(d.ProviderType, "oauth")) {
			m.Directories = append(m.Directories, d)
		}
	}
	m.Rules, err = p.svc.registrationRules(ctx, f.TenantID, stores.Default)
	return m, err
}

// PageResult is what a call of a page leads to: on to the next step, or back to the
// application.
type PageResult struct {
	Redirect string // empty: the login goes on
	Account  id.ID  // that passed the first step
	Created  *directoryapi.Account
	Pending  bool // the email address must be confirmed first
}

// LogIn checks a password: value is the Base64 of <login>:<password>.
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
	where := p.accountStore(at)
	logged, err := p.svc.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: where.Tenant, Application: where.Application, Login: login, Password: secure.Secret(password),
		AccountStore: where.AccountStore, NameKey: where.NameKey,
	})
	if errors.Is(err, apierr.NoSuchAccount) || errors.Is(err, apierr.WrongPassword) {
		err = errWrongLogin
	}
	if err != nil {
		return PageResult{}, err
	}
	return p.completeFirstStep(ctx, logged, authenticated, false)
}

// errWrongLogin does not report whether the account exists: a page is anonymous.
var errWrongLogin = apierr.WrongPassword.Because("the user name, the email or the password is wrong")

// accountStore is the store that a body names, else that of the request.
func (p *PageAPI) accountStore(at directoryapi.StoreName) applicationapi.Where {
	where := accountStoreOf(p.flow)
	if at != (directoryapi.StoreName{}) {
		where.NameKey, where.AccountStore = strings.ToLower(at.NameKey), href.Link{Href: at.Href}
	}
	return where
}

// completeFirstStep goes on after the first step: to the second where one is demanded, else
// back to the application.
func (p *PageAPI) completeFirstStep(ctx context.Context, logged applicationapi.LoggedIn, status string, isNew bool) (PageResult, error) {
	if len(p.flow.FactorTypes) > 0 {
		return PageResult{Account: logged.Account.ID}, p.svc.recordFirstStep(ctx, &p.flow, logged, isNew)
	}
	p.flow = p.flow.WithAccount(logged.Account, logged.Organization)
	redirect, err := p.svc.finishFlow(ctx, p.flow, p.site, status, isNew)
	return PageResult{Redirect: redirect, Account: logged.Account.ID}, err
}

// CheckReset returns an error unless a reset token can be used.
func (p *PageAPI) CheckReset(ctx context.Context, application id.ID, token secure.Secret) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	_, err := p.svc.peers.Application.CheckReset(ctx, applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: application,
		Token: token})
	return err
}

// ResetPassword sets a new password by a reset token.
func (p *PageAPI) ResetPassword(ctx context.Context, application id.ID, token, password secure.Secret) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	_, err := p.svc.peers.Application.ResetPassword(ctx, applicationapi.ResetPassword{
		ResetToken: applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: application, Token: token}, Password: password,
	})
	return err
}

// VerifyEmail uses an email verification token of the tenant.
func (p *PageAPI) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return p.svc.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Tenant: p.flow.TenantID, Token: token})
}

// checkFirstStep refuses a page whose first step has not been passed, or is no longer
// good: the account may not log in to the application, or has another password since.
func (p *PageAPI) checkFirstStep(ctx context.Context) error {
	if p.flow.AccountID.IsZero() {
		return errNotAllowedForPage
	}
	access, err := p.svc.peers.Application.CheckAccess(ctx, applicationapi.CheckAccess{
		Tenant: p.flow.TenantID, Application: p.flow.ApplicationID, Account: p.flow.AccountID, Organization: p.flow.OrganizationID,
	})
	if err == nil && !sameTime(access.PasswordModifiedAt, p.flow.PasswordModifiedAt) || err != nil && apierr.From(err).Status < 500 {
		return errSessionEnded
	}
	return err
}

func (p *PageAPI) checkAccount(ctx context.Context, account id.ID) error {
	if account != p.flow.AccountID {
		return errNotAllowedForPage
	}
	return p.checkFirstStep(ctx)
}

// Factors returns the factors of the account that passed the first step.
func (p *PageAPI) Factors(ctx context.Context, account id.ID) ([]mfaapi.AccountFactor, error) {
	if err := p.checkAccount(ctx, account); err != nil {
		return nil, err
	}
	factors, err := p.svc.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: p.flow.TenantID, ID: account})
	return factors.Items, err
}

// EnrollFactor creates a factor. An account that has one which can pass the second
// step must use it: the password alone must not add another.
func (p *PageAPI) EnrollFactor(ctx context.Context, account id.ID, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	if err := p.checkAccount(ctx, account); err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	usable, err := p.svc.usableFactors(ctx, p.flow)
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	if len(usable) > 0 {
		return mfaapi.EnrolledFactor{}, apierr.Forbidden.Because("the account has a factor; this login must use it")
	}
	if !p.flow.AllowsFactor(strings.ToLower(in.Type)) {
		return mfaapi.EnrolledFactor{}, apierr.Unsupported.Because("type must be one of %s", strings.Join(p.flow.FactorTypes, ", "))
	}
	in.Tenant, in.Account = p.flow.TenantID, account
	return p.svc.peers.MFA.EnrollFactor(ctx, in)
}

// Challenge creates a challenge of a factor of the account, or answers it at once
// with a code.
func (p *PageAPI) Challenge(ctx context.Context, factor id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	kind, err := p.allowedFactorType(ctx, factor)
	if err == nil {
		err = p.checkFirstStep(ctx)
	}
	if err != nil {
		return mfaapi.Challenged{}, PageResult{}, err
	}
	challenged, err := p.svc.peers.MFA.ChallengeFactor(ctx, mfaapi.ChallengeFactor{
		Tenant: p.flow.TenantID, Account: p.flow.AccountID, Factor: factor, Code: code, Types: p.flow.FactorTypes,
	})
	if err != nil {
		return challenged, PageResult{}, err
	}
	return p.completeChallenge(ctx, challenged, kind)
}

// AnswerChallenge compares a code with a challenge of the account.
func (p *PageAPI) AnswerChallenge(ctx context.Context, challenge id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	if err := p.checkFirstStep(ctx); err != nil {
		return mfaapi.Challenged{}, PageResult{}, err
	}
	challenged, err := p.svc.peers.MFA.AnswerFactor(ctx, mfaapi.AnswerFactor{
		Tenant: p.flow.TenantID, Account: p.flow.AccountID, Challenge: challenge, Code: code, Types: p.flow.FactorTypes,
	})
	if errors.Is(err, apierr.NotFound) {
		err = errNotAllowedForPage
	}
	if err != nil {
		return challenged, PageResult{}, err
	}
	kind, err := p.allowedFactorType(ctx, challenged.Factor)
	if err != nil {
		return challenged, PageResult{}, err
	}
	return p.completeChallenge(ctx, challenged, kind)
}

// allowedFactorType returns the type of a factor. It refuses one that is not the account's, or
// of a type that the request does not allow.
func (p *PageAPI) allowedFactorType(ctx context.Context, factor id.ID) (kind string, err error) {
	if p.flow.AccountID.IsZero() {
		return "", errNotAllowedForPage
	}
	factors, err := p.svc.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: p.flow.TenantID, ID: p.flow.AccountID})
	if err != nil {
		return "", err
	}
	for _, f := range factors.Items {
		if f.ID == factor && p.flow.AllowsFactor(f.Type) {
			return f.Type, nil
		}
	}
	return "", errNotAllowedForPage
}

// completeChallenge ends the login with the right code of a factor of a type.
func (p *PageAPI) completeChallenge(ctx context.Context, c mfaapi.Challenged, kind string) (mfaapi.Challenged, PageResult, error) {
	if c.Status != "SUCCESS" {
		return c, PageResult{Account: p.flow.AccountID}, nil
	}
	if err := p.checkFirstStep(ctx); err != nil {
		return c, PageResult{}, err
	}
	p.flow.FactorPassed, p.flow.FactorType = true, kind
	redirect, err := p.svc.finishFlow(ctx, p.flow, p.site, authenticated, p.flow.IsNew)
	return c, PageResult{Redirect: redirect, Account: p.flow.AccountID}, err
}

// LogInWithProviderData logs in the user of a token or code that a provider has issued to the page,
// which sends it to the application or to the account store of its request.
func (p *PageAPI) LogInWithProviderData(ctx context.Context, kind string, at id.ID, login directoryapi.SocialLogin) (PageResult, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	if login.AccountStore == "" && login.NameKey == "" {
		login.AccountStore, login.NameKey = p.flow.AccountStore, p.flow.NameKey
	}
	logged, err := p.svc.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: p.flow.TenantID, Application: p.flow.ApplicationID, Login: login,
	})
	if err != nil {
		return PageResult{}, err
	}
	return p.completeFirstStep(ctx, logged.LoggedIn, authenticated, logged.IsNew)
}
