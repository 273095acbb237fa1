package journey

// The session of single sign-on (SSO): its cookie is set in rest/sso.go, its row is in store/session.go. The
// session token of a hosted page is in pagetoken.go.

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
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

// browserTokenLength and sessionTokenLength are the lengths of the random values of the cookies.
const (
	browserTokenLength = 32
	sessionTokenLength = 43
)

// AssertionTTL is the lifetime of the assertion of a login that has ended, and of the right to its session.
const AssertionTTL = time.Minute

// NewBrowserToken returns the value of the cookie that binds a login to the browser that has begun
// it (login CSRF). Each login has one of its own: a value that was planted before is worth nothing.
func NewBrowserToken() secure.Secret { return secure.Token(browserTokenLength) }

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

// Include reports whether one of the values has a digest.
func (b BrowserTokens) Include(digest []byte) bool { return b.Of(digest) != "" }

// Of returns the value that has a digest, or "".
func (b BrowserTokens) Of(digest []byte) secure.Secret {
	for _, token := range b {
		if len(token) == browserTokenLength && subtle.ConstantTimeCompare(secure.Digest(token), digest) == 1 {
			return token
		}
	}
	return ""
}

// LogInBySession logs the browser in by its session of single sign-on (SSO), and reports whether the login has
// ended by it. It has not where there is no valid session, or where the login demands a factor that was not
// passed in the session. In the second case the first step counts as passed. A valid session gets a new idle
// timeout.
func (j *Journey) LogInBySession(ctx context.Context, f *store.Flow, cookie secure.Secret,
	idle time.Duration) (bool, error) {
	session, logged, err := j.validSession(ctx, *f, cookie)
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	session.IdleExpiresAt = j.now().Add(idle)
	if err := j.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.ExtendSession(ctx, session, j.now())
	}); err != nil {
		return false, err
	}
	passed := f.WithAccount(logged.Account, logged.Organization)
	passed.SAMLSession, passed.ByPassword = session.SAMLSession, session.ByPassword
	if !session.Satisfies(passed) {
		*f = passed
		return false, j.recordFirstStep(ctx, f, logged, false)
	}
	passed.FactorPassed, passed.FactorType = session.FactorPassed, session.FactorType
	passed.AuthenticatedAt, passed.SessionIndex = &session.CreatedAt, samlSessionIndex(session.ID)
	passed.SessionID = session.SessionID
	*f = passed
	return true, j.finish(ctx, f)
}

// validSession verifies the session of a cookie and completes the login of its account to the
// application of a login. It returns apierr.NotFound where there is no session, where the account
// is disabled or has a new password since, which end the session, where the account may not
// log in to this application, and where the login asks the user to prove who he is again.
func (j *Journey) validSession(ctx context.Context, f store.Flow, cookie secure.Secret) (
	session store.Session, logged applicationapi.LoggedIn, err error) {
	if cookie == "" {
		return session, logged, apierr.NotFound
	}
	if session, err = j.store.Session(ctx, f.TenantID, secure.Digest(cookie), j.now()); err != nil {
		return session, logged, err
	}
	if !f.Accepts(session, j.now()) {
		return session, logged, apierr.NotFound
	}
	account, err := j.peers.Directory.Account(ctx, id.Ref{Tenant: f.TenantID, ID: session.AccountID})
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return session, logged, err
	}
	switch {
	case err != nil || !sameTime(account.PasswordModifiedAt, session.PasswordModifiedAt):
		return session, logged, errors.Join(apierr.NotFound, j.endRow(ctx, session)) // its tokens: services/oauth/handlers.go
	case account.Status != directoryapi.Enabled:
		return session, logged, errors.Join(apierr.NotFound, j.EndSession(ctx, session, false))
	}
	logged, err = j.completeLogin(ctx, f, account.ID, false)
	if apierr.IsRefusal(err) {
		return session, logged, apierr.NotFound // the session goes on; the user may log in with another account
	}
	return session, logged, err
}

// completeLogin completes the login of an account that was proved elsewhere to the application of a login,
// which begins with that where isLogin.
func (j *Journey) completeLogin(ctx context.Context, f store.Flow, account id.ID, isLogin bool) (applicationapi.LoggedIn, error) {
	where := Requested(f)
	return j.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: f.TenantID, Application: f.ApplicationID, Account: account, AccountStore: where.AccountStore,
		NameKey: where.NameKey, IsLogin: isLogin,
	})
}

// CreateSession creates the session of a login. It returns the flow of the login, and a redirect with the cookie of the
// session, to which the door adds where the browser goes. The session counts from when the user proved who he is: a
// login by a session does not prolong it. It replaces the session that the browser had, and has a new cookie (session
// fixation); where the account is the same, its name stays (SessionID). It returns apierr.NotFound where the assertion
// was used already, and for another browser than the one that has begun the login.
func (j *Journey) CreateSession(ctx context.Context, site store.Site, assertion string, in BrowserRequest) (
	flow store.Flow, to Redirect, err error) {
	now, tenant, cookie := j.now(), site.TenantID, secure.Token(sessionTokenLength)
	idle, absolute, err := site.Lifetimes()
	if err != nil {
		return flow, to, err
	}
	var former store.Session
	if err := j.store.Tx(ctx, func(tx *store.Tx) (err error) {
		flow, err = tx.ConsumeAssertion(ctx, tenant, assertion, in.Browsers.digests(), now.Add(-AssertionTTL))
		return err
	}); err != nil {
		return flow, to, err
	}
	account, err := j.peers.Directory.Account(ctx, id.Ref{Tenant: tenant, ID: flow.AccountID})
	if err != nil {
		return flow, to, err
	}
	if !sameTime(account.PasswordModifiedAt, flow.PasswordModifiedAt) {
		return flow, to, apierr.NotFound // a new password was set since the login
	}
	if in.Session != "" {
		former, err = j.store.Session(ctx, tenant, secure.Digest(in.Session), now)
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return flow, to, err
		}
	}
	flow.SessionIndex, flow.SessionID = samlSessionIndex(secure.Digest(cookie)), id.New(now)
	if former.AccountID == flow.AccountID && !former.SessionID.IsZero() {
		flow.SessionID = former.SessionID
	} else if !former.AccountID.IsZero() {
		if err := j.EndSession(ctx, former, true); err != nil {
			return flow, to, err
		}
	}
	session := store.Session{
		TenantID: tenant, ID: secure.Digest(cookie), SessionID: flow.SessionID, AccountID: flow.AccountID,
		FactorPassed: flow.FactorPassed, FactorType: flow.FactorType, ByPassword: flow.ByPassword,
		SAMLSession: flow.SAMLSession, PasswordModifiedAt: account.PasswordModifiedAt, CreatedAt: flow.ProvedAt(),
		LastUsedAt: &now, RemoteAddress: addressOf(ctx), UserAgent: in.UserAgent,
		IdleExpiresAt: now.Add(idle), ExpiresAt: flow.ProvedAt().Add(absolute),
	}
	to.Session = cookie
	if site.SessionCookiePersistent {
		to.SessionLife = absolute
	}
	return flow, to, j.store.Tx(ctx, func(tx *store.Tx) error {
		if !former.AccountID.IsZero() {
			if err := tx.ReplaceSession(ctx, former, session); err != nil {
				return err
			}
		}
		if err := tx.RecordSession(ctx, flow); err != nil {
			return err
		}
		return tx.InsertSession(ctx, session)
	})
}

// addressOf returns the client address of a request, "" where it is not known.
func addressOf(ctx context.Context) string {
	address := caller.From(ctx).Address
	if !address.IsValid() {
		return ""
	}
	return address.String()
}

// EndSession ends a session, and the tokens that were made in it; its clients are told. With keepOffline, for a logout
// of the user or of a client, the tokens with the scope offline_access stay.
func (j *Journey) EndSession(ctx context.Context, s store.Session, keepOffline bool) error {
	if err := j.EndTokens(ctx, keepOffline, s); err != nil {
		return err
	}
	return j.endRow(ctx, s)
}

// EndTokens ends the tokens that were made in sessions of one account.
func (j *Journey) EndTokens(ctx context.Context, keepOffline bool, sessions ...store.Session) error {
	var names []string
	for _, s := range sessions {
		if !s.SessionID.IsZero() {
			names = append(names, s.SessionID.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := j.peers.OAuth.EndTokens(ctx, oauthapi.EndTokens{Tenant: sessions[0].TenantID,
		Account: sessions[0].AccountID, Sessions: names, KeepOffline: keepOffline})
	return err
}

// endRow ends a session without its tokens.
func (j *Journey) endRow(ctx context.Context, s store.Session) error {
	return j.store.Tx(ctx, func(tx *store.Tx) error { return tx.EndSessions(ctx, s.TenantID, s) })
}

// samlSessionIndex returns the name of a session for SAML service providers. It leads neither to the cookie
// nor to the row of the session.
func samlSessionIndex(session []byte) string {
	return "_" + hex.EncodeToString(secure.Digest(secure.Secret("saml "+string(session))))
}
