package idsite

import (
	"context"
	"errors"
	"log/slog"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// BrowserTokens are the cookies of the logins that a browser has begun.
type BrowserTokens = journey.BrowserTokens

// BrowserRequest is the request of a browser to /sso or /sso/logout: its token and its cookies.
type BrowserRequest = journey.BrowserRequest

// Redirect is the answer to a BrowserRequest.
type Redirect = journey.Redirect

// BeginLogin answers GET /sso?jwtRequest=: it begins a hosted login. It redirects the browser to
// the hosted pages, or back to the application where the session of single sign-on is enough.
// It returns an error only where no callback is known that could get the error; the browser is
// then shown a page.
func (s *Service) BeginLogin(ctx context.Context, in BrowserRequest) (Redirect, error) {
	r, err := s.verifyRequest(ctx, in.Token)
	if err != nil {
		return Redirect{}, applicationError{err, s.OriginOfApplication(r.application)}
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	browser := journey.NewBrowserToken()
	flow, err := s.newFlow(r, browser)
	if err != nil {
		return Redirect{}, err
	}
	location, err := s.beginFlow(ctx, r, &flow, in)
	if err != nil {
		if location, err = s.errorRedirect(ctx, flow, err); err != nil {
			return Redirect{}, err
		}
	}
	return Redirect{Location: location, Browser: browser}, nil
}

// newFlow returns the flow of a signed request, for the browser with a cookie.
func (s *Service) newFlow(r request, browser secure.Secret) (store.Flow, error) {
	ttl, err := store.ParseDuration(r.site.SessionTTL)
	if err != nil {
		return store.Flow{}, err
	}
	now, where := s.now(), r.accountStore()
	state, stateJSON := r.state()
	return store.Flow{
		TenantID: r.tenant, ID: id.New(now), ApplicationID: r.application.ID, KeyID: r.key, RequestID: r.stringClaim("jti"),
		CallbackURI: r.callback, State: state, StateJSON: stateJSON, NameKey: where.NameKey,
		AccountStore:     where.AccountStore.Href,
		ShowOrganization: r.boolClaim("sof"), UseSubdomain: r.boolClaim("usd"), Token: r.stringClaim("sp_token"),
		FactorTypes: r.factorTypes(), Browser: secure.Digest(browser),
		CreatedAt: now, ExpiresAt: now.Add(max(ttl, endedFlowRetention)),
	}, nil
}

// beginFlow validates the claims of a request, inserts its flow, and returns where the browser
// goes: to the application by its session, or to a hosted page.
func (s *Service) beginFlow(ctx context.Context, r request, f *store.Flow, in BrowserRequest) (string, error) {
	if err := r.validate(s.now()); err != nil {
		return "", err
	}
	if where := journey.Requested(*f); where.NameKey != "" || where.AccountStore.Href != "" || f.ShowOrganization {
		stores, err := s.Journey.Stores(ctx, where)
		if err != nil {
			return "", err
		}
		// Without organizations nobody could fill the field in.
		f.ShowOrganization = f.ShowOrganization && stores.HasOrganizations
	}
	if err := s.Journey.Begin(ctx, *f); err != nil {
		return "", err
	}
	path := r.pagePath()
	if path == "/" {
		if location, err := s.logInBySession(ctx, f, r.site, in.Session); location != "" || err != nil {
			return location, err
		}
	}
	return s.beginPage(ctx, *f, r.site, path)
}

// beginPage returns the address of a hosted page of a login in progress, with the session token of the page.
func (s *Service) beginPage(ctx context.Context, f store.Flow, site store.Site, path string) (string, error) {
	token, err := s.newPageToken(ctx, f, site)
	return s.pageOrigin(f, site) + "/#" + path + "?jwt=" + token.Reveal(), err
}

// logInBySession logs the browser in by its session of single sign-on (SSO), and returns the
// address of the application. The address is "" where a page is needed (journey.LogInBySession).
func (s *Service) logInBySession(ctx context.Context, f *store.Flow, site store.Site,
	cookie secure.Secret) (string, error) {
	idle, err := store.ParseDuration(site.SessionTTI)
	if err != nil {
		return "", err
	}
	ended, err := s.Journey.LogInBySession(ctx, f, cookie, idle)
	if err != nil || !ended {
		return "", err
	}
	return s.assertionRedirect(ctx, *f, site, outcome{status: authenticated})
}

// errNoPageToken is the error for a Bearer token that is not the session token of a hosted login.
var errNoPageToken = apierr.Unauthorized.Because("the Bearer token is not that of a hosted login; " +
	"programs send an API key in the header Authorization, as Basic or SAuthc1")

// FinishLogin answers GET /sso/?jwtResponse=: it creates the session of single sign-on for the
// browser that has begun the login, and redirects the browser to the callback of the application
// with the same assertion.
func (s *Service) FinishLogin(ctx context.Context, in BrowserRequest) (Redirect, error) {
	a, err := s.verifyAssertion(ctx, in.Token)
	if err != nil {
		return Redirect{}, err
	}
	ctx, site := caller.WithTenant(ctx, a.tenant), a.site
	// The signature is not enough: any tenant could sign an assertion with any callback by an
	// API key of its own (open redirect). The callback must be that of the request.
	flow, err := s.store.FlowOfRequest(ctx, a.tenant, a.Audience, a.RequestID)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return Redirect{}, err
	}
	if err != nil || flow.CallbackURI != a.Callback {
		return Redirect{}, errInvalidAssertion
	}
	if flow.OpenIDRequest != nil {
		return s.OpenID.Finish(ctx, flow, site, a.ID, in)
	}
	_, out, err := s.Journey.CreateSession(ctx, site, a.ID, in)
	if err != nil { // of apierr.NotFound another browser has begun the login, or the session exists already
		out = Redirect{}
		if !errors.Is(err, apierr.NotFound) {
			slog.WarnContext(ctx, "creation of a single sign-on session failed", "error", err.Error())
		}
	}
	out.Location = withAssertion(a.Callback, in.Token)
	return out, nil
}

// Logout answers GET /sso/logout?jwtRequest=: it ends the session of single sign-on of the browser
// and redirects the browser to the callback of the application. Where the user has logged in at
// a SAML identity provider, the browser goes there first (journey.BeginSAMLLogout).
func (s *Service) Logout(ctx context.Context, in BrowserRequest) (Redirect, error) {
	r, err := s.verifyRequest(ctx, in.Token)
	if err != nil {
		return Redirect{}, applicationError{err, s.OriginOfApplication(r.application)}
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	flow, err := s.newFlow(r, journey.NewBrowserToken())
	if err != nil {
		return Redirect{}, err
	}
	now := s.now()
	flow.FinishedAt = &now
	out := Redirect{EndSession: true}
	out.Location, err = s.logout(ctx, r, flow, in.Session)
	if err != nil {
		out.EndSession = false
		out.Location, err = s.errorRedirect(ctx, flow, err)
	}
	return out, err
}

// logout ends the session of the cookie and returns where the browser goes.
func (s *Service) logout(ctx context.Context, r request, f store.Flow, cookie secure.Secret) (string, error) {
	if err := r.validate(s.now()); err != nil && !errors.Is(err, apierr.TokenApplicationDisabled) {
		return "", err
	}
	var session store.Session
	if cookie != "" {
		var err error
		session, err = s.store.Session(ctx, f.TenantID, secure.Digest(cookie), s.now())
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return "", err
		}
		f.AccountID = session.AccountID // what the logout says, also after the way by an identity provider
	}
	if err := s.Journey.Begin(ctx, f); err != nil {
		return "", err
	}
	if !session.AccountID.IsZero() {
		if err := s.Journey.EndSession(ctx, session, true); err != nil {
			return "", err
		}
		if to := s.Journey.BeginSAMLLogout(ctx, f, session); to != "" {
			return to, nil
		}
	}
	return s.assertionRedirect(ctx, f, r.site, outcome{status: loggedOut})
}
