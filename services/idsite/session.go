package idsite

// The session of single sign-on (SSO): the cookie is set in rest/sso.go, the row is in
// store/session.go. The session token of a hosted page is in pagetoken.go.

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// validSession verifies the session of a cookie and completes the login of its account to the
// application of a flow. It returns apierr.NotFound where there is no session, where the account
// is disabled or has a new password since, which end the session, and where the account may not
// log in to this application. A valid session gets a new idle timeout.
func (s *Service) validSession(ctx context.Context, f store.Flow, site store.Site, cookie secure.Secret) (session store.Session,
	logged applicationapi.LoggedIn, err error) {
	if cookie == "" {
		return session, logged, apierr.NotFound
	}
	if session, err = s.store.Session(ctx, f.TenantID, secure.Digest(cookie), s.now()); err != nil {
		return session, logged, err
	}
	account, err := s.unchangedAccount(ctx, id.Ref{Tenant: f.TenantID, ID: session.AccountID}, session.PasswordModifiedAt)
	if errors.Is(err, apierr.NotFound) {
		return session, logged, errors.Join(err,
			s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSession(ctx, f.TenantID, session.ID) }))
	}
	if err != nil {
		return session, logged, err
	}
	where := accountStoreOf(f)
	logged, err = s.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: f.TenantID, Application: f.ApplicationID, Account: account.ID, AccountStore: where.AccountStore, NameKey: where.NameKey,
	})
	if apierr.IsRefusal(err) {
		return session, logged, apierr.NotFound // the session goes on; the user may log in with another account
	}
	if err != nil {
		return session, logged, err
	}
	idle, err := parseDuration(site.SessionTTI)
	if err != nil {
		return session, logged, err
	}
	return session, logged, s.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.ExtendSession(ctx, f.TenantID, session.ID, s.now().Add(idle))
	})
}

// createSession creates the session of an assertion and returns the value of its cookie. The session
// counts from when the user proved who he is: a login by a session does not prolong it. It ends the
// session that the browser had, and gives the new session a new id (session fixation). It
// returns apierr.NotFound where the assertion was used already, and for another browser than the
// one that has begun the login.
func (s *Service) createSession(
	ctx context.Context, tenant id.ID, assertion string, site store.Site, in BrowserRequest,
) (secure.Secret, error) {
	idle, err := parseDuration(site.SessionTTI)
	if err != nil {
		return "", err
	}
	ttl, err := parseDuration(site.SessionTTL)
	if err != nil {
		return "", err
	}
	now, cookie := s.now(), secure.Token(sessionTokenLength)
	var flow store.Flow
	if err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		flow, err = tx.ConsumeAssertion(ctx, tenant, assertion, in.Browsers.digests(), now.Add(-assertionTTL))
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
		if in.Session != "" {
			if err := tx.DeleteSession(ctx, tenant, secure.Digest(in.Session)); err != nil {
				return err
			}
		}
		if flow.SAMLRequest != nil {
			if err := tx.RecordSession(ctx, flow, samlSessionIndex(secure.Digest(cookie))); err != nil {
				return err
			}
		}
		return tx.InsertSession(ctx, store.Session{
			TenantID: tenant, ID: secure.Digest(cookie), AccountID: flow.AccountID, FactorPassed: flow.FactorPassed,
			FactorType: flow.FactorType, SAMLSession: flow.SAMLSession,
			PasswordModifiedAt: account.PasswordModifiedAt, CreatedAt: flow.ProvedAt(), IdleExpiresAt: now.Add(idle),
			ExpiresAt: flow.ProvedAt().Add(ttl),
		})
	})
}

// samlSessionIndex returns the name of a session for SAML service providers. It leads neither to the cookie
// nor to the row of the session.
func samlSessionIndex(session []byte) string {
	return "_" + hex.EncodeToString(secure.Digest(secure.Secret("saml "+string(session))))
}

// unchangedAccount returns an account, or apierr.NotFound where it is disabled or its password was
// set at another time than the given one.
func (s *Service) unchangedAccount(ctx context.Context, at id.Ref, passwordModifiedAt *time.Time) (directoryapi.Account, error) {
	account, err := s.peers.Directory.Account(ctx, at)
	if err == nil && (account.Status != directoryapi.Enabled || !sameTime(account.PasswordModifiedAt, passwordModifiedAt)) {
		err = apierr.NotFound
	}
	return account, err
}

// sameTime reports whether two times are equal, or both nil.
func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
