package idsite

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// browserLength and sessionLength are the lengths of the cookies' random texts.
const (
	browserLength = 32
	sessionLength = 43
)

// browserCookie is the cookie that a browser has brought, or a new one.
func browserCookie(brought secure.Secret) secure.Secret {
	if len(brought) != browserLength {
		return secure.Token(browserLength)
	}
	return brought
}

// Visit is a browser at one of the redirecting endpoints.
type Visit struct {
	Token   secure.Secret // jwtRequest or jwtResponse
	Browser secure.Secret // cookie that binds a login to the browser that began it
	Session secure.Secret // cookie of the single sign-on session
}

// Redirect is where a browser is sent, with its new cookies.
type Redirect struct {
	Location string
	Browser  secure.Secret // empty: the cookie stays as it is
	Session  secure.Secret // empty: the cookie stays as it is
	// SessionLife is the Max-Age of Session; zero: until the browser is closed.
	SessionLife time.Duration
	EndSession  bool
}

// Begin answers GET /sso: it sends the browser to the hosted pages, or straight
// back where it has a session. An error has no place to be sent to and is a page.
func (s *Service) Begin(ctx context.Context, v Visit) (Redirect, error) {
	r, err := s.readRequest(ctx, v.Token)
	if err != nil {
		return Redirect{}, applicationError{err, s.displayName(r.application.Name, r.application.Builtin)}
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	browser := browserCookie(v.Browser)
	flow, err := s.newFlow(r, browser)
	if err != nil {
		return Redirect{}, err
	}
	location, err := s.begin(ctx, r, &flow, v)
	if err != nil {
		if location, err = s.failTo(ctx, flow, err); err != nil {
			return Redirect{}, err
		}
	}
	return Redirect{Location: location, Browser: browser}, nil
}

func (s *Service) newFlow(r request, browser secure.Secret) (store.Flow, error) {
	ttl, err := lifetime(r.site.SessionTTL)
	if err != nil {
		return store.Flow{}, err
	}
	now, where := s.now(), r.where()
	state, stateJSON := r.state()
	return store.Flow{
		TenantID: r.tenant, ID: id.New(now), ApplicationID: r.application.ID, KeyID: r.key, RequestID: r.text("jti"),
		CallbackURI: r.callback, State: state, StateJSON: stateJSON, NameKey: where.NameKey, AccountStore: where.AccountStore.Href,
		ShowOrganization: r.flag("sof"), UseSubdomain: r.flag("usd"), Token: r.text("sp_token"),
		FactorTypes: r.factorTypes(), Browser: secure.Digest(browser),
		CreatedAt: now, ExpiresAt: now.Add(max(ttl, keepEnded)),
	}, nil
}

func (s *Service) begin(ctx context.Context, r request, f *store.Flow, v Visit) (string, error) {
	if err := r.check(s.now()); err != nil {
		return "", err
	}
	if where := whereOf(*f); where.NameKey != "" || where.AccountStore.Href != "" || f.ShowOrganization {
		stores, err := s.organization(ctx, where)
		if err != nil {
			return "", err
		}
		f.ShowOrganization = f.ShowOrganization && stores.HasOrganizations // else nobody could fill the field in
	}
	if err := s.insertFlow(ctx, *f); err != nil {
		return "", err
	}
	path := r.path()
	if path == "/" {
		if location, err := s.resume(ctx, f, r.site, v.Session); location != "" || err != nil {
			return location, err
		}
	}
	token, err := s.sessionToken(ctx, *f, r.site)
	if err != nil {
		return "", err
	}
	return s.pageOrigin(*f, r.site) + "/#" + path + "?jwt=" + token.Reveal(), nil
}

// resume logs the browser in by the session of its cookie, and returns where it goes.
// The address is empty where pages are needed: there is no session, or the flow demands a
// second step that the session does not prove, for which the first one is passed then.
func (s *Service) resume(ctx context.Context, f *store.Flow, site store.Site, cookie secure.Secret) (string, error) {
	session, logged, err := s.liveSession(ctx, *f, site, cookie)
	if errors.Is(err, apierr.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	done := f.PassedBy(logged.Account, logged.Organization)
	done.SAMLSession = session.SAMLSession
	if session.Satisfies(done) {
		done.FactorPassed, done.FactorType = session.FactorPassed, session.FactorType
		return s.finish(ctx, done, site, authenticated, false)
	}
	*f = done
	return "", s.passFirstStep(ctx, f, logged, false)
}

func (s *Service) insertFlow(ctx context.Context, f store.Flow) error {
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertFlow(ctx, f) })
	if errors.Is(err, apierr.Exists) {
		err = apierr.TokenReplayed.Because("the jti of the request was used already")
	}
	return err
}

// pageOrigin is the origin of the hosted pages. With usd the organization has a
// subdomain of the tenant's own domain.
func (s *Service) pageOrigin(f store.Flow, site store.Site) string {
	if origin := s.organizationOrigin(site, f.NameKey); f.UseSubdomain && origin != "" {
		return origin
	}
	return s.originOf(site.DomainName)
}

// organizationOrigin is the origin of an organization's pages: a subdomain of the
// tenant's own domain. It is empty where there is no organization or no such domain.
func (s *Service) organizationOrigin(site store.Site, nameKey string) string {
	if nameKey == "" || !site.HasCustomDomain() {
		return ""
	}
	return s.originOf(nameKey + "." + site.DomainName)
}

// originOf adds the port of the deployment's address to a host of hosted pages.
func (s *Service) originOf(host string) string {
	if base, err := url.Parse(s.cfg.Base.Host()); err == nil && base.Port() != "" && base.Port() != "443" {
		host += ":" + base.Port()
	}
	return "https://" + host
}

// liveSession returns the session of the cookie and the account that it logs in to
// the application of a flow. A session ends with a new password, and admits only
// an account that may log in now; otherwise apierr.NotFound.
func (s *Service) liveSession(ctx context.Context, f store.Flow, site store.Site, cookie secure.Secret) (session store.Session,
	logged applicationapi.LoggedIn, err error) {
	if cookie == "" {
		return session, logged, apierr.NotFound
	}
	if session, err = s.store.Session(ctx, f.TenantID, secure.Digest(cookie), s.now()); err != nil {
		return session, logged, err
	}
	account, err := s.stillAdmitted(ctx, id.Ref{Tenant: f.TenantID, ID: session.AccountID}, session.PasswordModifiedAt)
	if errors.Is(err, apierr.NotFound) {
		return session, logged, errors.Join(err,
			s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSession(ctx, f.TenantID, session.ID) }))
	}
	if err != nil {
		return session, logged, err
	}
	where := whereOf(f)
	logged, err = s.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: f.TenantID, Application: f.ApplicationID, Account: account.ID, AccountStore: where.AccountStore, NameKey: where.NameKey,
	})
	if refusal := apierr.From(err); err != nil && refusal.Status < 500 {
		return session, logged, apierr.NotFound // another account may log in here
	}
	if err != nil {
		return session, logged, err
	}
	idle, err := lifetime(site.SessionTTI)
	if err != nil {
		return session, logged, err
	}
	return session, logged, s.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.UseSession(ctx, f.TenantID, session.ID, s.now().Add(idle))
	})
}

// stillAdmitted returns an account that is enabled and whose password is the one that
// was set at a time, or apierr.NotFound.
func (s *Service) stillAdmitted(ctx context.Context, at id.Ref, passwordModifiedAt *time.Time) (directoryapi.Account, error) {
	account, err := s.peers.Directory.Account(ctx, at)
	if err == nil && (account.Status != directoryapi.Enabled || !sameTime(account.PasswordModifiedAt, passwordModifiedAt)) {
		err = apierr.NotFound
	}
	return account, err
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

func whereOf(f store.Flow) applicationapi.Where {
	where := applicationapi.Where{Tenant: f.TenantID, Application: f.ApplicationID, NameKey: f.NameKey}
	where.AccountStore.Href = f.AccountStore
	return where
}

// passFirstStep notes the account that has proved itself. The flow must still be
// open: apierr.SessionTimedOut otherwise.
func (s *Service) passFirstStep(ctx context.Context, f *store.Flow, logged applicationapi.LoggedIn, isNew bool) error {
	passed := f.PassedBy(logged.Account, logged.Organization)
	passed.IsNew = isNew
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.PassFirstStep(ctx, passed, s.now()) })
	if errors.Is(err, apierr.NotFound) {
		return errSessionOver
	}
	*f = passed
	return err
}

var errSessionOver = apierr.SessionTimedOut.Because("the hosted login of the Bearer token has ended or has timed out, or the token is " +
	"not that of a hosted login; programs send an API key in the header Authorization, as Basic or SAuthc1")

// finish ends a flow with an assertion and returns where the browser goes. Of
// parallel calls one succeeds.
func (s *Service) finish(ctx context.Context, f store.Flow, site store.Site, status string, isNew bool) (string, error) {
	now := s.now()
	jti := id.New(now).String()
	f.AssertionID = &jti
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.FinishFlow(ctx, f, now) })
	if errors.Is(err, apierr.NotFound) {
		return "", errSessionOver
	}
	if err != nil {
		return "", err
	}
	return s.returnTo(ctx, f, site, jti, outcome{status: status, account: f.AccountID, isNew: isNew})
}

// Land answers GET /sso/?jwtResponse=: a session is made for the browser that
// began the login, and the browser goes on to the callback with the same
// assertion.
func (s *Service) Land(ctx context.Context, v Visit) (Redirect, error) {
	a, err := s.readAssertion(ctx, v.Token)
	if err != nil {
		return Redirect{}, err
	}
	ctx, site := caller.WithTenant(ctx, a.tenant), a.site
	// The signature is not enough: every tenant has keys that could sign any callback.
	flow, err := s.store.FlowOfRequest(ctx, a.tenant, a.Audience, a.RequestID)
	if errors.Is(err, apierr.NotFound) || err == nil && flow.CallbackURI != a.Callback {
		return Redirect{}, errNoAssertion
	}
	if err != nil {
		return Redirect{}, err
	}
	out := Redirect{Location: withResponse(a.Callback, v.Token)}
	session, err := s.newSession(ctx, a.tenant, a.ID, site, v)
	if errors.Is(err, apierr.NotFound) {
		return out, nil // another browser began, or it has its session
	}
	if err != nil {
		slog.WarnContext(ctx, "creation of a single sign-on session failed", "error", err.Error())
		return out, nil
	}
	out.Session = session
	if site.SessionCookiePersistent {
		out.SessionLife, err = lifetime(site.SessionTTL)
	}
	return out, err
}

// assertionClaims are the claims of a jwtResponse except sub.
type assertionClaims struct {
	tenant    id.ID
	site      store.Site
	ID        string  `json:"jti"`
	Issuer    string  `json:"iss"`
	Audience  string  `json:"aud"` // key of the request
	RequestID string  `json:"irt"`
	Callback  string  `json:"cb_uri"`
	Expires   float64 `json:"exp"`
}

var errNoAssertion = apierr.BadRequest.Because("jwtResponse is not an assertion of this service, or has expired")

// readAssertion verifies an assertion of a hosted login that has not expired. It
// returns apierr.BadRequest for any other text.
func (s *Service) readAssertion(ctx context.Context, token secure.Secret) (a assertionClaims, err error) {
	verified, err := s.peers.OAuth.VerifyJWT(ctx, oauthapi.VerifyJWT{Token: token})
	if errors.Is(err, apierr.TokenSignature) {
		return a, errNoAssertion
	}
	if err != nil {
		return a, err
	}
	var header struct {
		STT string `json:"stt"`
	}
	a.tenant = verified.Tenant
	if a.site, err = s.store.TenantSite(caller.WithTenant(ctx, a.tenant), a.tenant); err != nil {
		return a, err
	}
	if json.Unmarshal(verified.Header, &header) != nil || json.Unmarshal(verified.Claims, &a) != nil ||
		header.STT != "assertion" || a.Callback == "" || a.Issuer != "https://"+a.site.DomainName || s.now().Unix() > int64(a.Expires) {
		return a, errNoAssertion
	}
	return a, nil
}

// newSession makes the session of an assertion, once, under an id that nobody has
// seen before, and ends the one that the browser had.
func (s *Service) newSession(ctx context.Context, tenant id.ID, assertion string, site store.Site, v Visit) (secure.Secret, error) {
	if len(v.Browser) != browserLength {
		return "", apierr.NotFound
	}
	idle, err := lifetime(site.SessionTTI)
	if err != nil {
		return "", err
	}
	ttl, err := lifetime(site.SessionTTL)
	if err != nil {
		return "", err
	}
	now, cookie := s.now(), secure.Token(sessionLength)
	var flow store.Flow
	if err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		flow, err = tx.TakeAssertion(ctx, tenant, assertion, secure.Digest(v.Browser), now.Add(-assertionLife))
		return err
	}); err != nil {
		return "", err
	}
	account, err := s.peers.Directory.Account(ctx, id.Ref{Tenant: tenant, ID: flow.AccountID})
	if err == nil && !sameTime(account.PasswordModifiedAt, flow.PasswordModifiedAt) {
		err = apierr.NotFound // a new password was set since the login
	}
	if err != nil {
		return "", err
	}
	return cookie, s.store.Tx(ctx, func(tx *store.Tx) error {
		if v.Session != "" {
			if err := tx.DeleteSession(ctx, tenant, secure.Digest(v.Session)); err != nil {
				return err
			}
		}
		return tx.InsertSession(ctx, store.Session{
			TenantID: tenant, ID: secure.Digest(cookie), AccountID: flow.AccountID, FactorPassed: flow.FactorPassed,
			FactorType: flow.FactorType, SAMLSession: flow.SAMLSession,
			PasswordModifiedAt: account.PasswordModifiedAt, CreatedAt: now, IdleAt: now.Add(idle),
			ExpiresAt: now.Add(ttl),
		})
	})
}

// Logout answers GET /sso/logout: it ends the session of the browser and sends it
// back.
func (s *Service) Logout(ctx context.Context, v Visit) (Redirect, error) {
	r, err := s.readRequest(ctx, v.Token)
	if err != nil {
		return Redirect{}, applicationError{err, s.displayName(r.application.Name, r.application.Builtin)}
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	flow, err := s.newFlow(r, secure.Token(browserLength))
	if err != nil {
		return Redirect{}, err
	}
	now := s.now()
	flow.FinishedAt = &now
	out := Redirect{EndSession: true}
	out.Location, err = s.logout(ctx, r, flow, v.Session)
	if err != nil {
		out.EndSession = false
		out.Location, err = s.failTo(ctx, flow, err)
	}
	return out, err
}

func (s *Service) logout(ctx context.Context, r request, f store.Flow, cookie secure.Secret) (string, error) {
	if err := r.check(s.now()); err != nil && !errors.Is(err, apierr.TokenApplicationDisabled) {
		return "", err
	}
	if err := s.insertFlow(ctx, f); err != nil {
		return "", err
	}
	ended := outcome{status: loggedOut}
	if cookie != "" {
		session, err := s.store.Session(ctx, f.TenantID, secure.Digest(cookie), s.now())
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return "", err
		}
		if err == nil {
			ended.account = session.AccountID
			if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSession(ctx, f.TenantID, session.ID) }); err != nil {
				return "", err
			}
			if to := s.samlLogout(ctx, f, session); to != "" {
				return to, nil
			}
		}
	}
	return s.returnTo(ctx, f, r.site, id.New(s.now()).String(), ended)
}

// SiteOfHost returns the site that is shown at a host: that of the domain itself, or that of
// the parent domain. A domain of the tenant's own is served with a certificate that is valid.
// Otherwise it returns apierr.NotFound.
func (s *Service) SiteOfHost(ctx context.Context, host string) (store.Site, error) {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	_, parent, _ := strings.Cut(host, ".")
	for _, domain := range slices.Compact([]string{host, parent}) {
		tenant, err := s.store.DomainTenant(ctx, domain)
		if errors.Is(err, apierr.NotFound) {
			continue
		}
		if err != nil {
			return store.Site{}, err
		}
		site, err := s.store.TenantSite(caller.WithTenant(ctx, tenant), tenant)
		if err == nil && domain != site.DefaultDomain && s.TLSStatus(site) != TLSValid {
			err = apierr.NotFound.Because("the certificate of the domain is not valid")
		}
		return site, err
	}
	return store.Site{}, apierr.NotFound
}
