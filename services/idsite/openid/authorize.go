package openid

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// loginTTL is how long a login may take that an authorization request has begun.
const loginTTL = 30 * time.Minute

// errLogin is the error for a login that this browser cannot go on with.
var errLogin = apierr.BadRequest.Because(
	"the login has ended, has timed out, or began in another browser; begin again at the application").
	Saying("This login has ended or began in another browser. Please begin again at the application.")

// Authorize answers an authorization request: it begins a login, and redirects the browser to the hosted pages, or
// back to the relying party where its session is enough. An error that the relying party must not get is returned:
// the browser is shown a page. A form that a page of another site has posted comes without the cookies of the
// browser, so that it leads to Begin.
func (p *Provider) Authorize(ctx context.Context, application id.ID, parameters url.Values, isForm bool,
	in journey.BrowserRequest) (journey.Redirect, error) {
	app, err := p.application(ctx, application)
	if err != nil {
		return journey.Redirect{}, err
	}
	ctx = caller.WithTenant(ctx, app.TenantID)
	session, err := p.Session(ctx, app.TenantID, in.Session)
	if err != nil {
		return journey.Redirect{}, err
	}
	asked, err := p.Peers.OAuth.Authorization(ctx, oauthapi.AskAuthorization{
		Application: application, Parameters: parameters, Account: session.AccountID,
	})
	if err != nil {
		return journey.Redirect{}, err
	}
	if asked.Refusal != nil {
		return respond(asked, errorValues(*asked.Refusal)), nil
	}
	browser := journey.NewBrowserToken()
	f, err := p.newFlow(ctx, app, store.OpenIDRequest{Authorization: asked}, browser)
	if apierr.IsRefusal(err) {
		return respond(asked, errorValues(errorOf(err))), nil
	}
	if err != nil {
		return journey.Redirect{}, err
	}
	if err := p.Journey.BeginAnonymous(ctx, f); err != nil {
		return journey.Redirect{}, err
	}
	out := journey.Redirect{Location: p.address(app.ID, "/authorize/begin?flow="+f.ID.String())}
	if !isForm {
		out, err = p.begin(ctx, f, in)
	}
	out.Browser = browser
	return out, err
}

// application returns the application of an address, or apierr.NotFound, or apierr.TenantSuspended.
func (p *Provider) application(ctx context.Context, application id.ID) (applicationapi.Application, error) {
	app, err := p.Peers.Application.FindApplication(ctx, applicationapi.FindApplication{ID: application})
	if err != nil {
		return app, err
	}
	return app, p.Journey.CheckTenant(ctx, app.TenantID)
}

// IsSuspended reports whether an application is one of a suspended tenant. One that is not there is none.
func (p *Provider) IsSuspended(ctx context.Context, application id.ID) bool {
	_, err := p.application(ctx, application)
	return errors.Is(err, apierr.TenantSuspended)
}

// Session returns the session of a cookie, or the zero one.
func (p *Provider) Session(ctx context.Context, tenant id.ID, cookie secure.Secret) (store.Session, error) {
	if cookie == "" {
		return store.Session{}, nil
	}
	session, err := p.Store.Session(ctx, tenant, secure.Digest(cookie), p.Now())
	if errors.Is(err, apierr.NotFound) {
		err = nil
	}
	return session, err
}

// newFlow returns the login in progress of a request.
func (p *Provider) newFlow(ctx context.Context, app applicationapi.Application, r store.OpenIDRequest,
	browser secure.Secret) (store.Flow, error) {
	now := p.Now()
	flow := id.New(now)
	f := store.Flow{
		TenantID: app.TenantID, ID: flow, ApplicationID: app.ID, RequestID: flow.String(),
		CallbackURI: r.Issuer + "/authorize/resume", NameKey: strings.ToLower(r.Organization), AccountStore: r.AccountStore,
		Browser: secure.Digest(browser), OpenIDRequest: &r, FactorTypes: []string{},
		CreatedAt: now, ExpiresAt: now.Add(loginTTL),
	}
	config, err := p.Peers.OAuth.ClientConfig(ctx, id.Ref{Tenant: app.TenantID, ID: app.ID})
	if err != nil {
		return f, err
	}
	switch {
	case config.MFARequired:
		f.FactorTypes = slices.Clone(config.FactorTypes)
	case wantsFactor(r.ACRValues):
		f.FactorTypes = slices.Clone(mfaapi.Types)
	case r.ACRRequired && !slices.Contains(r.ACRValues, oauthapi.ACRPassword):
		return f, apierr.BadRequest.Because("none of the acr values can be reached").
			With("error", "unmet_authentication_requirements")
	}
	if where := journey.Requested(f); where.NameKey != "" || where.AccountStore.Href != "" {
		_, err = p.Journey.Stores(ctx, where)
	}
	return f, err
}

// wantsFactor reports whether the first acr value that can be reached is that of a second factor.
func wantsFactor(values []string) bool {
	for _, acr := range values {
		switch acr {
		case oauthapi.ACRMFA:
			return true
		case oauthapi.ACRPassword:
			return false
		}
	}
	return false
}

// Begin goes on with a login whose authorization request was a form: now the browser sends its cookies.
func (p *Provider) Begin(ctx context.Context, application, flow id.ID,
	in journey.BrowserRequest) (journey.Redirect, error) {
	f, err := p.flow(ctx, application, flow, in)
	if err != nil {
		return journey.Redirect{}, err
	}
	if f.FinishedAt != nil || !f.AccountID.IsZero() || !p.Now().Before(f.ExpiresAt) {
		return journey.Redirect{}, errLogin
	}
	return p.begin(caller.WithTenant(ctx, f.TenantID), f, in)
}

// flow returns a login of an application that the browser has begun and whose request was not answered yet. It
// returns errLogin for any other.
func (p *Provider) flow(ctx context.Context, application, flow id.ID, in journey.BrowserRequest) (store.Flow, error) {
	app, err := p.application(ctx, application)
	if err != nil {
		return store.Flow{}, err
	}
	f, err := p.Store.Flow(caller.WithTenant(ctx, app.TenantID), app.TenantID, flow)
	if errors.Is(err, apierr.NotFound) {
		return f, errLogin
	}
	if err != nil {
		return f, err
	}
	if f.ApplicationID != app.ID || f.OpenIDRequest == nil || f.OpenIDRequest.Answered ||
		!in.Browsers.Include(f.Browser) {
		return f, errLogin
	}
	return f, nil
}

// begin logs the browser in by its session of single sign-on, or shows the page that its login begins with.
func (p *Provider) begin(ctx context.Context, f store.Flow, in journey.BrowserRequest) (journey.Redirect, error) {
	r := *f.OpenIDRequest
	site, err := p.Store.TenantSite(ctx, f.TenantID)
	if err != nil {
		return journey.Redirect{}, err
	}
	idle, _, err := site.Lifetimes()
	if err != nil {
		return journey.Redirect{}, err
	}
	ended, err := p.Journey.LogInBySession(ctx, &f, in.Session, idle)
	switch {
	case err != nil:
		return journey.Redirect{}, err
	case ended:
		return p.complete(ctx, f)
	case r.Asks("none"):
		return p.answer(ctx, f, oauthapi.AuthorizationError{Error: "login_required", Description: "the user must log in"})
	}
	path := "/"
	if r.Asks("create") {
		path = "/register"
	}
	page, err := p.Page(ctx, f, site, path)
	return journey.Redirect{Location: page}, err
}

// Finish goes on after a login at the hosted pages, once: it creates the session of the browser that has begun the
// login. For any other browser it returns errLogin.
func (p *Provider) Finish(ctx context.Context, f store.Flow, site store.Site, assertion string,
	in journey.BrowserRequest) (journey.Redirect, error) {
	if f.OpenIDRequest.Answered {
		return journey.Redirect{}, errLogin
	}
	f, created, err := p.Journey.CreateSession(ctx, site, assertion, in)
	if errors.Is(err, apierr.NotFound) {
		err = errLogin
	}
	if err != nil {
		return journey.Redirect{}, err
	}
	out, err := p.complete(ctx, f)
	out.Session, out.SessionLife = created.Session, created.SessionLife
	return out, err
}

// Resume goes on with a login that has ended without an assertion: the user has cancelled it, or its time is over.
func (p *Provider) Resume(ctx context.Context, application, flow id.ID,
	in journey.BrowserRequest) (journey.Redirect, error) {
	f, err := p.flow(ctx, application, flow, in)
	if err != nil {
		return journey.Redirect{}, err
	}
	return p.answer(caller.WithTenant(ctx, f.TenantID), f, errDenied)
}

// errDenied is the answer for a user who has refused, or has not come to an end.
var errDenied = oauthapi.AuthorizationError{Error: "access_denied",
	Description: "the user has not logged in, or has refused what was asked for"}
