package idsite

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/openid"
	"github.com/doorward/doorward/services/idsite/store"
)

// PageAPI is the session-token API of the hosted pages: what a page may call with its session
// token (pagetoken.go; docs/interface/id-site.md#calls): for the application of its flow and, once the
// first step of the login is passed, for the account that has passed it. Any other call returns
// apierr.Forbidden. What the calls do is in journey.Login, the HTTP part is rest/pageapi.go.
type PageAPI struct {
	journey.Login
	svc  *Service
	site store.Site
}

// OpenPageAPI verifies the session token of a hosted page and returns what the page may call.
// It returns apierr.Unauthorized for a text that is no session token. After the end of the session it
// returns apierr.SessionTimedOut and, where the flow is known,
// the address of the application to which the browser goes with that error. Also with an error
// the PageAPI is not nil, because AllowsOrigin decides which pages may read the error.
func (s *Service) OpenPageAPI(ctx context.Context, token secure.Secret) (page *PageAPI, redirect string, err error) {
	flow, site, err := s.verifyPageToken(ctx, token)
	page = s.page(flow, site)
	if flow.ID.IsZero() || !errors.Is(err, apierr.SessionTimedOut) {
		return page, "", err
	}
	redirect, failed := s.errorRedirect(caller.WithTenant(ctx, flow.TenantID), flow, err)
	if failed != nil {
		return page, "", failed
	}
	return page, redirect, err
}

// page returns what the pages of a flow may call.
func (s *Service) page(flow store.Flow, site store.Site) *PageAPI {
	return &PageAPI{journey.Login{Journey: s.Journey, Flow: flow}, s, site}
}

// Tenant is the tenant of the hosted login, or zero where the session token is not valid.
func (p *PageAPI) Tenant() id.ID { return p.Flow.TenantID }

// Token returns the next session token of the page.
func (p *PageAPI) Token(ctx context.Context) (secure.Secret, error) {
	return p.svc.newPageToken(ctx, p.Flow, p.site)
}

// AllowsOrigin reports whether pages of an origin may read the answers (CORS): the origin of the
// hosted pages, the subdomain of the organization that the request names, and the origins in
// authorizedOriginUris of the settings.
func (p *PageAPI) AllowsOrigin(origin string) bool {
	if p.site.ID.IsZero() {
		return false
	}
	own := []string{p.svc.cfg.Base.Origin(p.site.DomainName), p.svc.organizationOrigin(p.site, p.Flow.NameKey)}
	return redirecturi.IsListedOrigin(origin, slices.Concat(own, p.site.AuthorizedOriginURIs))
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
	if err := p.CheckResource(ctx, kind, at); err != nil {
		return PageModel{}, err
	}
	app, err := p.svc.peers.Application.Application(ctx, id.Ref{Tenant: p.Flow.TenantID, ID: p.Flow.ApplicationID})
	if err != nil {
		return PageModel{}, err
	}
	form, err := p.Journey.Form(ctx, p.Flow)
	self := p.svc.cfg.Base.To(kind, at)
	return PageModel{
		Form: form, Href: self, Name: p.svc.displayName(app.Name, app.Builtin), Application: app.ID, Tenant: p.Flow.TenantID,
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
	out := PageResult{Account: p.Flow.AccountID, Pending: r.Wants == journey.Verification}
	if err != nil || r.Wants != journey.Nothing {
		return out, err
	}
	out.Redirect, err = p.svc.assertionRedirect(ctx, p.Flow, p.site, outcome{status: status, isNew: r.IsNew})
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
		return p.svc.beginPage(ctx, p.Flow, p.site, "/")
	}
	_, assertion, _ := strings.Cut(answer.Redirect, "jwtResponse=")
	return p.svc.cfg.Base.Host() + "/sso?jwtResponse=" + assertion, nil
}

// Cancel ends a login that the user does not want, and returns where the browser goes: to the relying party, which
// gets access_denied. Other logins than those of OpenID providers have no such answer (apierr.Forbidden).
func (p *PageAPI) Cancel(application id.ID) (PageResult, error) {
	if err := p.CheckApplication(application); err != nil {
		return PageResult{}, err
	}
	if p.Flow.OpenIDRequest == nil {
		return PageResult{}, journey.ErrNotAllowed
	}
	return PageResult{Redirect: openid.ResumeAddress(p.Flow)}, nil
}

// LogIn verifies a password. value is the Base64 of <login>:<password>.
func (p *PageAPI) LogIn(ctx context.Context, application id.ID, value string,
	at directoryapi.StoreName) (PageResult, error) {
	if err := p.CheckApplication(application); err != nil {
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
	result, err := p.Journey.LogIn(ctx, &p.Flow, at, login, secure.Secret(password))
	return p.answer(ctx, result, authenticated, err)
}

// LogInWithProviderData logs a user in by a token or code that a provider has issued to the page
// itself (providerData). The page sends it to the application, or to the account store that the
// request names.
func (p *PageAPI) LogInWithProviderData(ctx context.Context, kind string, at id.ID,
	login directoryapi.SocialLogin) (PageResult, error) {
	if err := p.CheckResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	result, err := p.Journey.LogInWithProviderData(ctx, &p.Flow, login)
	return p.answer(ctx, result, authenticated, err)
}

// Register registers a user (self-service registration, sign-up) at the application, or at the account store that
// the request names. The page may name an organization.
func (p *PageAPI) Register(
	ctx context.Context, kind string, at id.ID, in directoryapi.NewAccount, named directoryapi.StoreName,
) (PageResult, error) {
	if err := p.CheckResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	result, err := p.Journey.Register(ctx, &p.Flow, named, in)
	answer, err := p.answer(ctx, result, registered, err)
	if err == nil && !answer.Pending {
		answer.Created = &result.Account
	}
	return answer, err
}

// Challenge creates a challenge of a factor of the account. With a code it also answers that
// challenge.
func (p *PageAPI) Challenge(ctx context.Context, factor id.ID, code string) (mfaapi.Challenged, PageResult, error) {
	challenged, err := p.Journey.Challenge(ctx, &p.Flow, factor, code)
	answer, err := p.answer(ctx, challenged.Result, authenticated, err)
	return challenged.Challenged, answer, err
}

// AnswerChallenge verifies the code of a challenge of the account.
func (p *PageAPI) AnswerChallenge(ctx context.Context, challenge id.ID,
	code string) (mfaapi.Challenged, PageResult, error) {
	challenged, err := p.Journey.AnswerChallenge(ctx, &p.Flow, challenge, code)
	answer, err := p.answer(ctx, challenged.Result, authenticated, err)
	return challenged.Challenged, answer, err
}
