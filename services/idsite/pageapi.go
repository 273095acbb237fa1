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
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// PageAPI is the session-token API of the hosted pages: what a page may call with its session
// token (pagetoken.go; docs/interface/id-site.md#calls): for the application of its flow and, once the
// first step of the login is passed, for the account that has passed it. Any other call returns
// apierr.Forbidden. The HTTP part is rest/pageapi.go; the rest of the methods are in
// registration.go, providerlogin.go, saml.go and enumeration.go.
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
	if err == nil || flow.ID.IsZero() || !errors.Is(err, apierr.SessionTimedOut) {
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
		return errNotAllowedForPage
	}
	return nil
}

// errNotAllowedForPage is the error for what a hosted page may not call.
var errNotAllowedForPage = apierr.Forbidden.Because(
	"a hosted login may call nothing but its own application and, after the password, its own account")

// checkResource returns apierr.Forbidden for a resource that is neither the application of the
// flow nor the account store that the request of the flow names.
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

// PageModel is what a hosted page shows of an application: the idSiteModel.
type PageModel struct {
	Href                string
	Name                string
	Application, Tenant id.ID
	Accounts            string // address to which the page sends a registration
	Directories         []directoryapi.LoginDirectory
	Rules               *directoryapi.RegistrationRules // nil: nobody can register
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
		LogoURL: p.site.LogoURL, AccentColor: p.site.AccentColor, HomeURL: app.HomeURL,
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

// PageResult is the result of a step that a page takes in a login: either the login goes on
// with another step, or it has ended and the browser returns to the application.
type PageResult struct {
	Redirect string // address of the application; "": the login goes on
	Account  id.ID  // the account that has passed the first step
	Created  *directoryapi.Account
	Pending  bool // the email address must be verified first
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
	where, err := p.accountStore(ctx, at)
	if err != nil {
		return PageResult{}, err
	}
	logged, err := p.svc.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: where.Tenant, Application: where.Application, Login: login, Password: secure.Secret(password),
		AccountStore: where.AccountStore, NameKey: where.NameKey,
	})
	if errors.Is(err, apierr.NoSuchAccount) || errors.Is(err, apierr.WrongPassword) {
		err = errWrongLogin
	}
	if errors.Is(err, apierr.AccountUnverified) {
		err = p.recordUnverified(ctx, applicationapi.LoginName{LoginTarget: where, Login: login}, err)
	}
	if err != nil {
		return PageResult{}, err
	}
	return p.completeFirstStep(ctx, logged, authenticated, false)
}

// recordUnverified records the account of a login that was refused after its right password, because its email
// is not verified: the page may show the address, and have the verification mail sent again. It returns the
// refusal.
func (p *PageAPI) recordUnverified(ctx context.Context, login applicationapi.LoginName, refusal error) error {
	account, err := p.svc.peers.Application.LoginAccount(ctx, login)
	if errors.Is(err, apierr.NotFound) || err == nil && account.Status != directoryapi.Unverified {
		return refusal // verified meanwhile, or the status is that of a linked account
	}
	if err != nil {
		return err
	}
	p.flow.UnverifiedID = account.ID
	err = p.svc.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordUnverified(ctx, p.flow, p.svc.now()) })
	if errors.Is(err, apierr.NotFound) {
		return errSessionEnded
	}
	return cmp.Or(err, refusal)
}

// SendVerificationMail sends another verification mail to the account whose right password was entered in this
// login; login must be a login name of it. It returns apierr.Forbidden for any other, apierr.NotFound for an account
// that is verified meanwhile, apierr.VerificationDisabled, and apierr.TooMany beyond the limit of mails.
func (p *PageAPI) SendVerificationMail(ctx context.Context, application id.ID, login string) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	if p.flow.UnverifiedID.IsZero() {
		return errNotAllowedForPage
	}
	account, err := p.svc.peers.Directory.Account(ctx, id.Ref{Tenant: p.flow.TenantID, ID: p.flow.UnverifiedID})
	login = field.LoginName(login)
	if errors.Is(err, apierr.NotFound) || err == nil && login != field.LoginName(account.Email) && login != field.LoginName(account.Username) {
		return errNotAllowedForPage
	}
	if err != nil {
		return err
	}
	return p.svc.sendVerification(ctx, account, application)
}

// errWrongLogin does not tell whether the account exists (user enumeration), because anybody can
// call from a hosted page.
var errWrongLogin = apierr.WrongPassword.Because("the user name, the email or the password is wrong")

// accountStore is where a call of the page logs in, registers or looks up its user: the account
// store that its body names, else the one that the signed request names. It decides that for every
// call, because the application has signed the request and the browser writes the body: it returns
// apierr.Forbidden where the request names an account store and the body another one. An
// organization is allowed even then, if the request lets the user name it (the claim sof).
func (p *PageAPI) accountStore(ctx context.Context, at directoryapi.StoreName) (applicationapi.LoginTarget, error) {
	signed := accountStoreOf(p.flow)
	if at == (directoryapi.StoreName{}) {
		return signed, nil
	}
	if at.Href != "" {
		at.NameKey = "" // the href decides
	}
	if signed.NameKey != "" || signed.AccountStore.Href != "" {
		own, err := p.svc.namedStore(ctx, p.flow)
		if err != nil {
			return signed, err
		}
		if p.isSameStore(at, own) {
			return signed, nil
		}
		if !p.flow.ShowOrganization || !p.isOrganization(at) {
			return signed, errOtherStore
		}
	}
	signed.NameKey, signed.AccountStore = strings.ToLower(at.NameKey), href.Link{Href: at.Href}
	return signed, nil
}

// errOtherStore is the error for a body that names another account store than the signed request.
var errOtherStore = apierr.Forbidden.Because("the signed request of this login names another account store")

// isSameStore reports whether a body names the account store of the request. Pages name it as
// their session token does: by the claim ash, an href, or by the claim asnk.
func (p *PageAPI) isSameStore(at, own directoryapi.StoreName) bool {
	if at.Href == "" {
		return strings.EqualFold(strings.TrimSpace(at.NameKey), own.NameKey)
	}
	named, ok := p.svc.cfg.Base.Parse(at.Href)
	signed, known := p.svc.cfg.Base.Parse(own.Href)
	return ok && known && named == signed
}

// isOrganization reports whether a body names an organization.
func (p *PageAPI) isOrganization(at directoryapi.StoreName) bool {
	ref, ok := p.svc.cfg.Base.Parse(at.Href)
	return at.Href == "" || ok && ref.Kind == "organizations"
}

// completeFirstStep continues the login after its first step: with the second step where the
// request demands one (require_mfa), else with the end of the login.
func (p *PageAPI) completeFirstStep(ctx context.Context, logged applicationapi.LoggedIn, status string, isNew bool) (PageResult, error) {
	if len(p.flow.FactorTypes) > 0 {
		return PageResult{Account: logged.Account.ID}, p.svc.recordFirstStep(ctx, &p.flow, logged, isNew)
	}
	p.flow = p.flow.WithAccount(logged.Account, logged.Organization)
	redirect, err := p.svc.finishFlow(ctx, p.flow, p.site, status, isNew)
	return PageResult{Redirect: redirect, Account: logged.Account.ID}, err
}

// CheckReset returns an error unless a password reset token is valid.
func (p *PageAPI) CheckReset(ctx context.Context, application id.ID, token secure.Secret) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	_, err := p.svc.peers.Application.CheckReset(ctx, applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: application,
		Token: token})
	return err
}

// ResetPassword sets a new password with a password reset token, which it consumes. It returns
// apierr.SessionTimedOut for another token than the first valid one of the session: a session sets
// one password. A password that is refused can be tried again with the same token.
func (p *PageAPI) ResetPassword(ctx context.Context, application id.ID, token, password secure.Secret) error {
	if err := p.CheckReset(ctx, application, token); err != nil {
		return err
	}
	err := p.svc.store.Tx(ctx, func(tx *store.Tx) error { return tx.ClaimReset(ctx, p.flow, secure.Digest(token)) })
	if errors.Is(err, apierr.NotFound) {
		return errSessionEnded
	}
	if err != nil {
		return err
	}
	_, err = p.svc.peers.Application.ResetPassword(ctx, applicationapi.ResetPassword{
		ResetToken: applicationapi.ResetToken{Tenant: p.flow.TenantID, Application: application, Token: token}, Password: password,
	})
	return err
}

// VerifyEmail verifies an email address with a token of the tenant, which it consumes.
func (p *PageAPI) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return p.svc.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Tenant: p.flow.TenantID, Token: token})
}

// checkFirstStep refuses a page whose first step has not been passed. It ends the session where
// the account may no longer log in to the application, or has a new password since.
func (p *PageAPI) checkFirstStep(ctx context.Context) error {
	if p.flow.AccountID.IsZero() {
		return errNotAllowedForPage
	}
	access, err := p.svc.peers.Application.CheckAccess(ctx, applicationapi.CheckAccess{
		Tenant: p.flow.TenantID, Application: p.flow.ApplicationID, Account: p.flow.AccountID, Organization: p.flow.OrganizationID,
	})
	if apierr.IsRefusal(err) {
		return errSessionEnded
	}
	if err != nil {
		return err
	}
	if !sameTime(access.PasswordModifiedAt, p.flow.PasswordModifiedAt) {
		return errSessionEnded
	}
	return nil
}

// checkAccount returns apierr.Forbidden for another account than the one that has passed the
// first step, and the errors of checkFirstStep.
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

// EnrollFactor creates a factor of the account. The mfa service decides whether the login may: the
// password alone adds no factor to an account that has one.
func (p *PageAPI) EnrollFactor(ctx context.Context, account id.ID, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	if err := p.checkAccount(ctx, account); err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	in.Tenant, in.Account, in.Types, in.SecondFactor = p.flow.TenantID, account, p.factorTypes(), p.flow.SteppedUp
	return p.svc.peers.MFA.EnrollFactor(ctx, in)
}

// Challenge creates a challenge of a factor of the account. With a code it also answers that
// challenge.
func (p *PageAPI) Challenge(ctx context.Context, factor id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	if err := p.checkFirstStep(ctx); err != nil {
		return mfaapi.Challenged{}, PageResult{}, err
	}
	challenged, err := p.svc.peers.MFA.ChallengeFactor(ctx, mfaapi.ChallengeFactor{
		Tenant: p.flow.TenantID, Account: p.flow.AccountID, Factor: factor, Code: code, Types: p.factorTypes(), SecondFactor: p.flow.SteppedUp,
	})
	return p.completeChallenge(ctx, challenged, err)
}

// AnswerChallenge verifies the code of a challenge of the account.
func (p *PageAPI) AnswerChallenge(ctx context.Context, challenge id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	if err := p.checkFirstStep(ctx); err != nil {
		return mfaapi.Challenged{}, PageResult{}, err
	}
	challenged, err := p.svc.peers.MFA.AnswerFactor(ctx, mfaapi.AnswerFactor{
		Tenant: p.flow.TenantID, Account: p.flow.AccountID, Challenge: challenge, Code: code, Types: p.factorTypes(),
		SecondFactor: p.flow.SteppedUp,
	})
	return p.completeChallenge(ctx, challenged, err)
}

// factorTypes are the types of factor that complete the login. They are never none: without types
// the mfa service takes a user for logged in.
func (p *PageAPI) factorTypes() []string {
	if len(p.flow.FactorTypes) == 0 {
		return mfaapi.Types
	}
	return p.flow.FactorTypes
}

// completeChallenge continues the login after the answer to a challenge: a correct code ends the
// login or, where it is the code of a step-up, lets the page enroll a factor.
func (p *PageAPI) completeChallenge(ctx context.Context, c mfaapi.Challenged, err error) (mfaapi.Challenged, PageResult, error) {
	if errors.Is(err, apierr.NotFound) {
		err = errNotAllowedForPage
	}
	if err != nil || c.Status != "SUCCESS" {
		return c, PageResult{Account: p.flow.AccountID}, err
	}
	if err := p.checkFirstStep(ctx); err != nil {
		return c, PageResult{}, err
	}
	if c.StepUp {
		return c, PageResult{Account: p.flow.AccountID}, p.svc.recordStepUp(ctx, &p.flow)
	}
	p.flow.FactorPassed, p.flow.FactorType = true, c.Type
	redirect, err := p.svc.finishFlow(ctx, p.flow, p.site, authenticated, p.flow.IsNew)
	return c, PageResult{Redirect: redirect, Account: p.flow.AccountID}, err
}

// LogInWithProviderData logs a user in by a token or code that a provider has issued to the page
// itself (providerData). The page sends it to the application, or to the account store that the
// request names. A social login by redirect is in providerlogin.go.
func (p *PageAPI) LogInWithProviderData(ctx context.Context, kind string, at id.ID, login directoryapi.SocialLogin) (PageResult, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	where, err := p.accountStore(ctx, directoryapi.StoreName{Href: login.AccountStore, NameKey: login.NameKey})
	if err != nil {
		return PageResult{}, err
	}
	login.AccountStore, login.NameKey = where.AccountStore.Href, where.NameKey
	logged, err := p.svc.peers.Application.ProviderLogin(ctx, applicationapi.ProviderLogin{
		Tenant: p.flow.TenantID, Application: p.flow.ApplicationID, Login: login,
	})
	if err != nil {
		return PageResult{}, err
	}
	return p.completeFirstStep(ctx, logged.LoggedIn, authenticated, logged.IsNew)
}
