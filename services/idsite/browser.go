package idsite

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"
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

// Page is a hosted page that calls the service with a session token
// (docs/interface/id-site.md#calls). Its methods are what a page may do, for the
// application of its flow and, after the first step, for that account. What is
// not the page's to see is apierr.Forbidden.
type Page struct {
	svc  *Service
	flow store.Flow
	site store.Site
}

// OpenPage returns the page of a session token. Where the session is over it
// returns apierr.SessionTimedOut, and where the flow is known the address to
// return to with that error. The page that it returns with an error knows which
// origins may read the answer.
func (s *Service) OpenPage(ctx context.Context, token secure.Secret) (*Page, string, error) {
	flow, site, err := s.openSession(ctx, token)
	page := &Page{s, flow, site}
	if err == nil || flow.ID.IsZero() || !errors.Is(err, apierr.SessionTimedOut) {
		return page, "", err
	}
	back, failed := s.failTo(caller.WithTenant(ctx, flow.TenantID), flow, err)
	if failed != nil {
		return page, "", failed
	}
	return page, back, err
}

// Tenant is that of the page's site, or zero where the session is not known.
func (p *Page) Tenant() id.ID { return p.flow.TenantID }

// Token is the next token of the session.
func (p *Page) Token(ctx context.Context) (secure.Secret, error) {
	return p.svc.sessionToken(ctx, p.flow, p.site)
}

// AllowsOrigin reports whether pages of an origin may read the answers: the
// site's own, the subdomain of the organization that the request names, and those
// of the settings.
func (p *Page) AllowsOrigin(origin string) bool {
	if p.site.ID.IsZero() {
		return false
	}
	return origin == p.svc.originOf(p.site.DomainName) || origin == p.svc.organizationOrigin(p.site, p.flow.NameKey) ||
		redirecturi.IsListedOrigin(origin, p.site.AuthorizedOriginURIs)
}

func (p *Page) wantApplication(application id.ID) error {
	if application != p.flow.ApplicationID {
		return errForbidden
	}
	return nil
}

var errForbidden = apierr.Forbidden.Because(
	"a hosted login may call nothing but its own application and, after the password, its own account")

// wantResource refuses a resource that is neither the application of the flow nor the
// account store that its request names.
func (p *Page) wantResource(ctx context.Context, kind string, at id.ID) error {
	if kind == "applications" {
		return p.wantApplication(at)
	}
	named, err := p.svc.namedStore(ctx, p.flow)
	if err != nil {
		return err
	}
	if ref, ok := p.svc.cfg.Base.Parse(named.Href); !ok || ref.Kind != kind || ref.ID != at {
		return errForbidden
	}
	return nil
}

// Model is what a page shows of an application.
type Model struct {
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
func (p *Page) Model(ctx context.Context, kind string, at id.ID) (Model, error) {
	if err := p.wantResource(ctx, kind, at); err != nil {
		return Model{}, err
	}
	f := p.flow
	app, err := p.svc.peers.Application.Application(ctx, id.Ref{Tenant: f.TenantID, ID: f.ApplicationID})
	if err != nil {
		return Model{}, err
	}
	stores, err := p.svc.loginStores(ctx, whereOf(f))
	if err != nil {
		return Model{}, err
	}
	list, err := p.svc.peers.Directory.LoginDirectories(ctx,
		directoryapi.LoginDirectories{Tenant: f.TenantID, Directories: stores.Directories})
	if err != nil {
		return Model{}, err
	}
	self := p.svc.cfg.Base.To(kind, at)
	m := Model{
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

// Answer is what a call of a page leads to: on to the next step, or back to the
// application.
type Answer struct {
	Redirect string // empty: the login goes on
	Account  id.ID  // that passed the first step
	Created  *directoryapi.Account
	Pending  bool // the email address must be confirmed first
}

// LogIn checks a password: value is the Base64 of <login>:<password>.
func (p *Page) LogIn(ctx context.Context, application id.ID, value string, at directoryapi.StoreName) (Answer, error) {
	if err := p.wantApplication(application); err != nil {
		return Answer{}, err
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		decoded, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
	}
	login, password, found := strings.Cut(string(decoded), ":")
	if err != nil || !found || !utf8.Valid(decoded) || strings.ContainsRune(login, 0) {
		return Answer{}, apierr.Format.Because("value must be the Base64 form of <login>:<password>")
	}
	where := p.where(at)
	logged, err := p.svc.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: where.Tenant, Application: where.Application, Login: login, Password: secure.Secret(password),
		AccountStore: where.AccountStore, NameKey: where.NameKey,
	})
	if errors.Is(err, apierr.NoSuchAccount) || errors.Is(err, apierr.WrongPassword) {
		err = errWrongLogin
	}
	if err != nil {
		return Answer{}, err
	}
	return p.passed(ctx, logged, authenticated, false)
}

// errWrongLogin does not report whether the account exists: a page is anonymous.
var errWrongLogin = apierr.WrongPassword.Because("the user name, the email or the password is wrong")

// where is the store that a body names, else that of the request.
func (p *Page) where(at directoryapi.StoreName) applicationapi.Where {
	where := whereOf(p.flow)
	if at != (directoryapi.StoreName{}) {
		where.NameKey, where.AccountStore = strings.ToLower(at.NameKey), href.Link{Href: at.Href}
	}
	return where
}

// passed goes on after the first step: to the second where one is demanded, else
// back to the application.
func (p *Page) passed(ctx context.Context, logged applicationapi.LoggedIn, status string, isNew bool) (Answer, error) {
	if len(p.flow.FactorTypes) > 0 {
		return Answer{Account: logged.Account.ID}, p.svc.passFirstStep(ctx, &p.flow, logged, isNew)
	}
	p.flow = p.flow.PassedBy(logged.Account, logged.Organization)
	redirect, err := p.svc.finish(ctx, p.flow, p.site, status, isNew)
	return Answer{Redirect: redirect, Account: logged.Account.ID}, err
}

// errOtherStore keeps a stranger from choosing the groups of the new account, or the
// rules that it is registered by.
var errOtherStore = apierr.Forbidden.Because(
	"a registration goes to the default account store of the application, to that of the request, or to an organization")

// Register creates an account in the application, in the account store of the flow, or in
// an organization that the page names. Where new addresses must be confirmed, the answer
// is the same for an email that is taken, and so is its time; its owner gets a mail.
func (p *Page) Register(ctx context.Context, kind string, at id.ID, in directoryapi.NewAccount, named directoryapi.StoreName) (Answer,
	error) {
	steps := time.NewTicker(evenStep)
	defer steps.Stop()
	answer, err := p.register(ctx, kind, at, in, named)
	if answer.Pending {
		nextStep(ctx, steps)
	}
	return answer, err
}

func (p *Page) register(ctx context.Context, kind string, at id.ID, in directoryapi.NewAccount, named directoryapi.StoreName) (Answer,
	error) {
	if err := p.wantResource(ctx, kind, at); err != nil {
		return Answer{}, err
	}
	if ref, _ := p.svc.cfg.Base.Parse(named.Href); named.Href != "" && named.Href != p.flow.AccountStore && ref.Kind != "organizations" {
		return Answer{}, errOtherStore
	}
	where := p.where(named)
	account, err := p.svc.peers.Application.Register(ctx, applicationapi.Register{Where: where, Account: in})
	if errors.Is(err, apierr.Exists) {
		return p.svc.taken(ctx, where, in.Email.Or(""), err)
	}
	if err != nil {
		return Answer{}, err
	}
	if account.Status != directoryapi.Enabled {
		return Answer{Pending: true}, nil
	}
	p.flow.NameKey, p.flow.AccountStore = where.NameKey, where.AccountStore.Href
	answer, err := p.passed(ctx, applicationapi.LoggedIn{Account: account}, registered, true)
	answer.Created = &account
	return answer, err
}

// taken answers a registration with a taken email. Where addresses are confirmed
// by mail, it looks like any other, and the owner is reminded of the account.
func (s *Service) taken(ctx context.Context, where applicationapi.Where, email string, refusal error) (Answer, error) {
	stores, err := s.peers.Application.LoginStores(ctx, where)
	if err != nil || stores.Default.IsZero() {
		return Answer{}, errors.Join(refusal, err)
	}
	rules, err := s.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: where.Tenant, ID: stores.Default})
	if err != nil {
		return Answer{}, err
	}
	if !rules.VerificationEmail {
		return Answer{}, refusal
	}
	if _, err := s.peers.Application.RequestReset(ctx, applicationapi.LoginName{Where: where, Login: email}); apierr.From(err) != nil &&
		apierr.From(err).Status >= 500 {
		return Answer{}, err
	}
	return Answer{Pending: true}, nil
}

// evenStep is the multiple to which response times are rounded up, so that timing does not
// show whether an account exists: for one that does, the services write another row.
const evenStep = 50 * time.Millisecond

// RequestReset sends a password reset mail. Its answer and its time are the same
// whether the account exists.
func (p *Page) RequestReset(ctx context.Context, application id.ID, login string, at directoryapi.StoreName) error {
	if err := p.wantApplication(application); err != nil {
		return err
	}
	return evenly(ctx, func() error {
		_, err := p.svc.peers.Application.RequestReset(ctx, applicationapi.LoginName{Where: p.where(at), Login: login})
		return err
	})
}

// nextStep waits for the end of a step that has begun.
func nextStep(ctx context.Context, steps *time.Ticker) {
	select {
	case <-steps.C: // a step that passed meanwhile
	default:
	}
	select {
	case <-steps.C:
	case <-ctx.Done():
	}
}

// evenly hides from the caller whether fn found an account, in its answer and in
// its time, which is a multiple of evenStep.
func evenly(ctx context.Context, fn func() error) error {
	steps := time.NewTicker(evenStep)
	defer steps.Stop()
	err := fn()
	nextStep(ctx, steps)
	if refusal := apierr.From(err); refusal != nil && (refusal.Status >= 500 || errors.Is(err, apierr.TooMany)) {
		return err
	}
	return nil
}

// CheckReset returns an error unless a reset token can be used.
func (p *Page) CheckReset(ctx context.Context, application id.ID, token secure.Secret) error {
	if err := p.wantApplication(application); err != nil {
		return err
	}
	_, err := p.svc.peers.Application.CheckReset(ctx, applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: application,
		Token: token})
	return err
}

// ResetPassword sets a new password by a reset token.
func (p *Page) ResetPassword(ctx context.Context, application id.ID, token, password secure.Secret) error {
	if err := p.wantApplication(application); err != nil {
		return err
	}
	_, err := p.svc.peers.Application.ResetPassword(ctx, applicationapi.ResetPassword{
		ResetToken: applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: application, Token: token}, Password: password,
	})
	return err
}

// VerifyEmail uses an email verification token of the tenant.
func (p *Page) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return p.svc.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Tenant: p.flow.TenantID, Token: token})
}

// wantFirstStep refuses a page whose first step has not been passed, or is no longer
// good: the account may not log in, or has another password since.
func (p *Page) wantFirstStep(ctx context.Context) error {
	if p.flow.AccountID.IsZero() {
		return errForbidden
	}
	_, err := p.svc.stillAdmitted(ctx, id.Ref{Tenant: p.flow.TenantID, ID: p.flow.AccountID}, p.flow.PasswordModifiedAt)
	if errors.Is(err, apierr.NotFound) {
		return errSessionOver
	}
	return err
}

func (p *Page) wantAccount(ctx context.Context, account id.ID) error {
	if account != p.flow.AccountID {
		return errForbidden
	}
	return p.wantFirstStep(ctx)
}

// Factors returns the factors of the account that passed the first step.
func (p *Page) Factors(ctx context.Context, account id.ID) ([]mfaapi.AccountFactor, error) {
	if err := p.wantAccount(ctx, account); err != nil {
		return nil, err
	}
	factors, err := p.svc.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: p.flow.TenantID, ID: account})
	return factors.Items, err
}

// EnrollFactor creates a factor. An account that has one which can pass the second
// step must use it: the password alone must not add another.
func (p *Page) EnrollFactor(ctx context.Context, account id.ID, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	if err := p.wantAccount(ctx, account); err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	usable, err := p.svc.usableFactors(ctx, p.flow)
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	if len(usable) > 0 {
		return mfaapi.EnrolledFactor{}, apierr.Forbidden.Because("the account has a factor; this login must use it")
	}
	if !p.flow.Allows(strings.ToLower(in.Type)) {
		return mfaapi.EnrolledFactor{}, apierr.Unsupported.Because("type must be one of %s", strings.Join(p.flow.FactorTypes, ", "))
	}
	in.Tenant, in.Account = p.flow.TenantID, account
	return p.svc.peers.MFA.EnrollFactor(ctx, in)
}

// Challenge creates a challenge of a factor of the account, or answers it at once
// with a code.
func (p *Page) Challenge(ctx context.Context, factor id.ID, code string) (mfaapi.Challenged, Answer, error) {
	kind, err := p.wantFactor(ctx, factor)
	if err == nil {
		err = p.wantFirstStep(ctx)
	}
	if err != nil {
		return mfaapi.Challenged{}, Answer{}, err
	}
	challenged, err := p.svc.peers.MFA.ChallengeFactor(ctx, mfaapi.ChallengeFactor{
		Tenant: p.flow.TenantID, Account: p.flow.AccountID, Factor: factor, Code: code,
	})
	if err != nil {
		return challenged, Answer{}, err
	}
	return p.answered(ctx, challenged, kind)
}

// AnswerChallenge compares a code with a challenge of the account.
func (p *Page) AnswerChallenge(ctx context.Context, challenge id.ID, code string) (mfaapi.Challenged, Answer, error) {
	if err := p.wantFirstStep(ctx); err != nil {
		return mfaapi.Challenged{}, Answer{}, err
	}
	challenged, err := p.svc.peers.MFA.AnswerFactor(ctx, mfaapi.AnswerFactor{
		Tenant: p.flow.TenantID, Account: p.flow.AccountID, Challenge: challenge, Code: code,
	})
	if errors.Is(err, apierr.NotFound) {
		err = errForbidden
	}
	if err != nil {
		return challenged, Answer{}, err
	}
	kind, err := p.wantFactor(ctx, challenged.Factor)
	if err != nil {
		return challenged, Answer{}, err
	}
	return p.answered(ctx, challenged, kind)
}

// wantFactor returns the type of a factor. It refuses one that is not the account's, or
// of a type that the request does not allow.
func (p *Page) wantFactor(ctx context.Context, factor id.ID) (kind string, err error) {
	if p.flow.AccountID.IsZero() {
		return "", errForbidden
	}
	factors, err := p.svc.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: p.flow.TenantID, ID: p.flow.AccountID})
	if err != nil {
		return "", err
	}
	for _, f := range factors.Items {
		if f.ID == factor && p.flow.Allows(f.Type) {
			return f.Type, nil
		}
	}
	return "", errForbidden
}

// answered ends the login with the right code of a factor of a type.
func (p *Page) answered(ctx context.Context, c mfaapi.Challenged, kind string) (mfaapi.Challenged, Answer, error) {
	if c.Status != "SUCCESS" {
		return c, Answer{Account: p.flow.AccountID}, nil
	}
	if err := p.wantFirstStep(ctx); err != nil {
		return c, Answer{}, err
	}
	p.flow.FactorPassed, p.flow.FactorType = true, kind
	redirect, err := p.svc.finish(ctx, p.flow, p.site, authenticated, p.flow.IsNew)
	return c, Answer{Redirect: redirect, Account: p.flow.AccountID}, err
}
