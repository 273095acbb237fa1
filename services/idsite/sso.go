package idsite

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// browserTokenLength and sessionTokenLength are the lengths of the random values of the cookies.
const (
	browserTokenLength = 32
	sessionTokenLength = 43
)

// newBrowserToken returns the value of the cookie that binds a login to the browser that has begun
// it (login CSRF). Each login has one of its own: a value that was planted before is worth nothing.
func newBrowserToken() secure.Secret { return secure.Token(browserTokenLength) }

// BrowserTokens are the values of these cookies that a browser has sent: of the logins that it has
// begun.
type BrowserTokens []secure.Secret

// digests returns the SHA-256 of the values, which rows have.
func (b BrowserTokens) digests() [][]byte {
	var digests [][]byte
	for _, token := range b {
		if len(token) == browserTokenLength {
			digests = append(digests, secure.Digest(token))
		}
	}
	return digests
}

// include reports whether one of the values has a digest.
func (b BrowserTokens) include(digest []byte) bool {
	return slices.ContainsFunc(b.digests(), func(sent []byte) bool { return subtle.ConstantTimeCompare(sent, digest) == 1 })
}

// BrowserRequest is the request of a browser to /sso or /sso/logout: its token and its cookies.
type BrowserRequest struct {
	Token    secure.Secret // jwtRequest, jwtResponse or signOn
	Browsers BrowserTokens // cookies that bind logins to the browser that began them
	Session  secure.Secret // cookie of the single sign-on session
}

// Redirect is the answer to a BrowserRequest: the address to which the browser is redirected, with
// its new cookies (rest/sso.go).
type Redirect struct {
	Location string
	Browser  secure.Secret // of the login that has begun; empty: none has
	Session  secure.Secret // empty: the cookie stays as it is
	// SessionLife is the Max-Age of Session; zero: until the browser is closed.
	SessionLife time.Duration
	EndSession  bool // delete the cookie of the session
}

// BeginLogin answers GET /sso?jwtRequest=: it begins a hosted login. It redirects the browser to
// the hosted pages, or back to the application where the session of single sign-on is enough.
// It returns an error only where no callback is known that could get the error; the browser is
// then shown a page.
func (s *Service) BeginLogin(ctx context.Context, in BrowserRequest) (Redirect, error) {
	r, err := s.verifyRequest(ctx, in.Token)
	if err != nil {
		return Redirect{}, applicationError{err, s.originOfApplication(r.application)}
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	browser := newBrowserToken()
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
	ttl, err := parseDuration(r.site.SessionTTL)
	if err != nil {
		return store.Flow{}, err
	}
	now, where := s.now(), r.accountStore()
	state, stateJSON := r.state()
	return store.Flow{
		TenantID: r.tenant, ID: id.New(now), ApplicationID: r.application.ID, KeyID: r.key, RequestID: r.stringClaim("jti"),
		CallbackURI: r.callback, State: state, StateJSON: stateJSON, NameKey: where.NameKey, AccountStore: where.AccountStore.Href,
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
	if where := accountStoreOf(*f); where.NameKey != "" || where.AccountStore.Href != "" || f.ShowOrganization {
		stores, err := s.loginStores(ctx, where)
		if err != nil {
			return "", err
		}
		f.ShowOrganization = f.ShowOrganization && stores.HasOrganizations // without organizations nobody could fill the field in
	}
	if err := s.insertFlow(ctx, *f); err != nil {
		return "", err
	}
	path := r.pagePath()
	if path == "/" {
		if location, err := s.logInBySession(ctx, f, r.site, in.Session); location != "" || err != nil {
			return location, err
		}
	}
	token, err := s.newPageToken(ctx, *f, r.site)
	if err != nil {
		return "", err
	}
	return s.pageOrigin(*f, r.site) + "/#" + path + "?jwt=" + token.Reveal(), nil
}

// logInBySession logs the browser in by its session of single sign-on (SSO), and returns the
// address of the application. The address is "" where a page is needed: there is no valid
// session, or the request demands a factor that was not passed in the session. In the second
// case the first step counts as passed.
func (s *Service) logInBySession(ctx context.Context, f *store.Flow, site store.Site, cookie secure.Secret) (string, error) {
	session, logged, err := s.validSession(ctx, *f, site, cookie)
	if errors.Is(err, apierr.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	passed := f.WithAccount(logged.Account, logged.Organization)
	passed.SAMLSession = session.SAMLSession
	if session.Satisfies(passed) {
		passed.FactorPassed, passed.FactorType = session.FactorPassed, session.FactorType
		passed.AuthenticatedAt, passed.SessionIndex = &session.CreatedAt, samlSessionIndex(session.ID)
		return s.finishFlow(ctx, passed, site, authenticated, false)
	}
	*f = passed
	return "", s.recordFirstStep(ctx, f, logged, false)
}

// insertFlow adds a flow. It returns apierr.TokenReplayed where a flow with the same jti exists
// (replay).
func (s *Service) insertFlow(ctx context.Context, f store.Flow) error {
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertFlow(ctx, f) })
	if errors.Is(err, apierr.Exists) {
		err = apierr.TokenReplayed.Because("the jti of the request was used already")
	}
	return err
}

// accountStoreOf is the account store that the request of a flow names.
func accountStoreOf(f store.Flow) applicationapi.LoginTarget {
	where := applicationapi.LoginTarget{Tenant: f.TenantID, Application: f.ApplicationID, NameKey: f.NameKey}
	where.AccountStore.Href = f.AccountStore
	return where
}

// recordFirstStep records which account has passed the first step of a flow. It returns
// apierr.SessionTimedOut where the flow has ended.
func (s *Service) recordFirstStep(ctx context.Context, f *store.Flow, logged applicationapi.LoggedIn, isNew bool) error {
	passed := f.WithAccount(logged.Account, logged.Organization)
	passed.IsNew = isNew
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordFirstStep(ctx, passed, s.now()) })
	if errors.Is(err, apierr.NotFound) {
		return errSessionEnded
	}
	*f = passed
	return err
}

// recordStepUp records that the account of a flow has passed a factor of a type that the flow does
// not allow. It returns apierr.SessionTimedOut where the flow has ended, or another account has
// passed its first step since.
func (s *Service) recordStepUp(ctx context.Context, f *store.Flow) error {
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordStepUp(ctx, *f, s.now()) })
	if errors.Is(err, apierr.NotFound) {
		return errSessionEnded
	}
	f.SteppedUp = err == nil
	return err
}

// errSessionEnded is the error for a hosted login that has ended or timed out.
var errSessionEnded = apierr.SessionTimedOut.Because("the hosted login of the Bearer token has ended or has timed out")

// errNoPageToken is the error for a Bearer token that is not the session token of a hosted login.
var errNoPageToken = apierr.Unauthorized.Because("the Bearer token is not that of a hosted login; " +
	"programs send an API key in the header Authorization, as Basic or SAuthc1")

// finishFlow ends a flow and returns the callback of the application with an assertion. Of
// parallel calls one succeeds; the others return apierr.SessionTimedOut.
func (s *Service) finishFlow(ctx context.Context, f store.Flow, site store.Site, status string, isNew bool) (string, error) {
	now := s.now()
	jti := id.New(now).String()
	f.AssertionID = &jti
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.FinishFlow(ctx, f, now) })
	if errors.Is(err, apierr.NotFound) {
		return "", errSessionEnded
	}
	if err != nil {
		return "", err
	}
	return s.assertionRedirect(ctx, f, site, jti, outcome{status: status, account: f.AccountID, isNew: isNew})
}

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
	if errors.Is(err, apierr.NotFound) || err == nil && flow.CallbackURI != a.Callback {
		return Redirect{}, errInvalidAssertion
	}
	if err != nil {
		return Redirect{}, err
	}
	out := Redirect{Location: withAssertion(a.Callback, in.Token)}
	session, err := s.createSession(ctx, a.tenant, a.ID, site, in)
	if errors.Is(err, apierr.NotFound) {
		return out, nil // another browser has begun the login, or the session exists already
	}
	if err != nil {
		slog.WarnContext(ctx, "creation of a single sign-on session failed", "error", err.Error())
		return out, nil
	}
	out.Session = session
	if site.SessionCookiePersistent {
		out.SessionLife, err = parseDuration(site.SessionTTL)
	}
	return out, err
}

// Logout answers GET /sso/logout?jwtRequest=: it ends the session of single sign-on of the browser
// and redirects the browser to the callback of the application. Where the user has logged in at
// a SAML identity provider, the browser goes there first (samlLogout).
func (s *Service) Logout(ctx context.Context, in BrowserRequest) (Redirect, error) {
	r, err := s.verifyRequest(ctx, in.Token)
	if err != nil {
		return Redirect{}, applicationError{err, s.originOfApplication(r.application)}
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	flow, err := s.newFlow(r, newBrowserToken())
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
	if err := s.insertFlow(ctx, f); err != nil {
		return "", err
	}
	if !session.AccountID.IsZero() {
		if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSession(ctx, f.TenantID, session.ID) }); err != nil {
			return "", err
		}
		if to := s.samlLogout(ctx, f, session); to != "" {
			return to, nil
		}
	}
	return s.assertionRedirect(ctx, f, r.site, id.New(s.now()).String(), outcome{status: loggedOut, account: f.AccountID})
}
