package journey

// The session of single sign-on (SSO): its cookie is set in rest/sso.go, its row is in store/session.go. The
// session token of a hosted page is in pagetoken.go.

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
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
func (b BrowserTokens) Include(digest []byte) bool {
	return slices.ContainsFunc(b.digests(), func(sent []byte) bool {
		return subtle.ConstantTimeCompare(sent, digest) == 1
	})
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
	if err := j.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.ExtendSession(ctx, f.TenantID, session.ID, j.now().Add(idle))
	}); err != nil {
		return false, err
	}
	passed := f.WithAccount(logged.Account, logged.Organization)
	passed.SAMLSession = session.SAMLSession
	if !session.Satisfies(passed) {
		*f = passed
		return false, j.recordFirstStep(ctx, f, logged, false)
	}
	passed.FactorPassed, passed.FactorType = session.FactorPassed, session.FactorType
	passed.AuthenticatedAt, passed.SessionIndex = &session.CreatedAt, samlSessionIndex(session.ID)
	*f = passed
	return true, j.finish(ctx, f)
}

// validSession verifies the session of a cookie and completes the login of its account to the
// application of a login. It returns apierr.NotFound where there is no session, where the account
// is disabled or has a new password since, which end the session, and where the account may not
// log in to this application.
func (j *Journey) validSession(ctx context.Context, f store.Flow, cookie secure.Secret) (
	session store.Session, logged applicationapi.LoggedIn, err error) {
	if cookie == "" {
		return session, logged, apierr.NotFound
	}
	if session, err = j.store.Session(ctx, f.TenantID, secure.Digest(cookie), j.now()); err != nil {
		return session, logged, err
	}
	account, err := j.peers.Directory.Account(ctx, id.Ref{Tenant: f.TenantID, ID: session.AccountID})
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return session, logged, err
	}
	if err != nil || account.Status != directoryapi.Enabled ||
		!sameTime(account.PasswordModifiedAt, session.PasswordModifiedAt) {
		return session, logged, errors.Join(apierr.NotFound,
			j.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSession(ctx, f.TenantID, session.ID) }))
	}
	logged, err = j.completeLogin(ctx, f, account.ID)
	if apierr.IsRefusal(err) {
		return session, logged, apierr.NotFound // the session goes on; the user may log in with another account
	}
	return session, logged, err
}

// completeLogin completes the login of an account that was proved elsewhere to the application of a login.
func (j *Journey) completeLogin(ctx context.Context, f store.Flow, account id.ID) (applicationapi.LoggedIn, error) {
	where := Requested(f)
	return j.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: f.TenantID, Application: f.ApplicationID, Account: account, AccountStore: where.AccountStore,
		NameKey: where.NameKey,
	})
}

// NewSession asks for the session of a login that has ended.
type NewSession struct {
	Tenant    id.ID
	Assertion string        // Flow.AssertionID
	Browsers  BrowserTokens // cookies of the browser
	Former    secure.Secret // cookie of the session that the browser has; "": none
	Idle, TTL time.Duration
}

// CreateSession creates the session of a login and returns the value of its cookie. The session
// counts from when the user proved who he is: a login by a session does not prolong it. It ends the
// session that the browser had, and gives the new session a new id (session fixation). It
// returns apierr.NotFound where the assertion was used already, and for another browser than the
// one that has begun the login.
func (j *Journey) CreateSession(ctx context.Context, in NewSession) (secure.Secret, error) {
	now, cookie := j.now(), secure.Token(sessionTokenLength)
	var flow store.Flow
	if err := j.store.Tx(ctx, func(tx *store.Tx) (err error) {
		flow, err = tx.ConsumeAssertion(ctx, in.Tenant, in.Assertion, in.Browsers.digests(), now.Add(-AssertionTTL))
		return err
	}); err != nil {
		return "", err
	}
	account, err := j.peers.Directory.Account(ctx, id.Ref{Tenant: in.Tenant, ID: flow.AccountID})
	if err != nil {
		return "", err
	}
	if !sameTime(account.PasswordModifiedAt, flow.PasswordModifiedAt) {
		return "", apierr.NotFound // a new password was set since the login
	}
	return cookie, j.store.Tx(ctx, func(tx *store.Tx) error {
		if in.Former != "" {
			if err := tx.DeleteSession(ctx, in.Tenant, secure.Digest(in.Former)); err != nil {
				return err
			}
		}
		if flow.SAMLRequest != nil {
			if err := tx.RecordSession(ctx, flow, samlSessionIndex(secure.Digest(cookie))); err != nil {
				return err
			}
		}
		return tx.InsertSession(ctx, store.Session{
			TenantID: in.Tenant, ID: secure.Digest(cookie), AccountID: flow.AccountID, FactorPassed: flow.FactorPassed,
			FactorType: flow.FactorType, SAMLSession: flow.SAMLSession,
			PasswordModifiedAt: account.PasswordModifiedAt, CreatedAt: flow.ProvedAt(), IdleExpiresAt: now.Add(in.Idle),
			ExpiresAt: flow.ProvedAt().Add(in.TTL),
		})
	})
}

// samlSessionIndex returns the name of a session for SAML service providers. It leads neither to the cookie
// nor to the row of the session.
func samlSessionIndex(session []byte) string {
	return "_" + hex.EncodeToString(secure.Digest(secure.Secret("saml "+string(session))))
}
