package openid

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// errRefresh refuses a refresh token without telling which check has failed.
var errRefresh = refuse("invalid_grant", "the refresh token is unknown, used, expired, revoked, or of another client")

// refreshGrant is the grant of a refresh token (RFC 6749, section 6). A refresh token is used once: the answer has
// another one (rotation; RFC 9700, section 4.14). One that is used again after the grace ends its family, because one
// of the two that have it has stolen it.
func (s *Service) refreshGrant(ctx context.Context, r request) (issue, error) {
	tenant := r.app.TenantID
	t, err := s.Store.RefreshToken(ctx, tenant, secure.Digest(r.Form["refresh_token"]))
	if errors.Is(err, apierr.NotFound) {
		return issue{}, errRefresh
	}
	if err != nil {
		return issue{}, err
	}
	family := id.Ref{Tenant: tenant, ID: t.GrantID}
	g, err := s.Store.OpenIDGrant(ctx, family)
	switch {
	case errors.Is(err, apierr.NotFound):
		return issue{}, errRefresh
	case err != nil:
		return issue{}, err
	case g.ClientID != r.client.ID || g.ApplicationID != r.app.ID || !r.issued(g.Login) ||
		!r.now.Before(t.ExpiresAt) || !r.now.Before(g.ExpiresAt):
		return issue{}, errRefresh
	case g.Login.JKT != "" && g.Login.JKT != r.jkt:
		return issue{}, refuse("invalid_dpop_proof", "the refresh token is bound to another key")
	}
	out := issue{login: g.Login, grant: g.ID, idToken: true, audience: g.Login.Audience,
		scopes: slices.Clone(g.Login.Scopes)}
	if r.jkt != "" {
		out.login.JKT = r.jkt
	}
	if out.scopes, err = narrow(g.Login.Scopes, r.Form.text("scope")); err != nil {
		return issue{}, err
	}
	if resource := r.Form.text("resource"); resource != "" {
		if g.Login.Audience != "" && g.Login.Audience != resource {
			return issue{}, refuse("invalid_target", "the refresh token is for another resource")
		}
		if out.audience, err = r.target(resource); err != nil {
			return issue{}, err
		}
	}
	idle, grace, err := s.refreshLifetimes(r)
	if err != nil {
		return issue{}, err
	}
	expires := earlier(r.now.Add(idle), g.ExpiresAt)
	if r.client.Settings.RefreshTokenRotation == relyingparty.Keep {
		out.refresh = r.Form["refresh_token"]
		out.save = func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.LockOpenIDGrant(ctx, family); err != nil {
				return endedAs(err)
			}
			tx.ExtendRefreshToken(t, expires)
			return nil
		}
		return out, nil
	}
	out.refresh = secure.Token(relyingparty.SecretLength)
	out.save = func(ctx context.Context, tx *store.Tx) error {
		if err := s.useRefreshToken(ctx, tx, t, grace); err != nil {
			return err
		}
		tx.InsertRefreshToken(store.RefreshToken{
			TenantID: tenant, Digest: secure.Digest(out.refresh), GrantID: g.ID, Generation: t.Generation + 1,
			ExpiresAt: expires,
		})
		return nil
	}
	return out, nil
}

// errReplayed says that a refresh token was used again after the grace: its family has to end, which issueTokens
// (token.go) does, in a transaction of its own.
var errReplayed = errors.New("openid: a refresh token was used again")

// useRefreshToken records the use of a refresh token. The family counts generations: the answers to the tokens of one
// generation are of the next. The first use of a generation makes all its tokens used ones; within the grace they give
// another pair still, after it they return errReplayed.
func (s *Service) useRefreshToken(ctx context.Context, tx *store.Tx, t store.RefreshToken, grace time.Duration) error {
	g, err := tx.LockOpenIDGrant(ctx, id.Ref{Tenant: t.TenantID, ID: t.GrantID})
	if err != nil {
		return endedAs(err)
	}
	if t, err = tx.RefreshToken(ctx, t.TenantID, t.Digest); err != nil {
		return endedAs(err)
	}
	usedAt := t.UsedAt
	if t.Generation == g.Generation {
		usedAt = g.UsedAt
	}
	now := s.Now()
	switch {
	case t.Generation > g.Generation:
		tx.UseRefreshToken(t, now)
	case usedAt == nil || !now.Before(usedAt.Add(grace)):
		return errReplayed
	}
	return nil
}

// endedAs returns errRefresh for a grant that has ended.
func endedAs(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return errRefresh
	}
	return err
}

// refreshLifetimes returns the idle lifetime of refresh tokens, and the grace of used ones.
func (s *Service) refreshLifetimes(r request) (idle, grace time.Duration, err error) {
	idle, err = field.ParseDuration(r.provider.Settings.RefreshTokenIdleTTL)
	if err == nil {
		grace, err = field.ParseDuration(r.provider.Settings.RefreshTokenGrace)
	}
	return idle, grace, err
}

// refreshTTL returns the lifetime of a family of refresh tokens; zero: there are none.
func (s *Service) refreshTTL(ctx context.Context, r request) (time.Duration, error) {
	_, text, err := s.Lifetimes(ctx, r.ref())
	if err != nil {
		return 0, err
	}
	if r.client.Settings.RefreshTokenTTL != nil {
		text = *r.client.Settings.RefreshTokenTTL
	}
	d, err := field.ParseDuration(text)
	return d.Truncate(time.Second), err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// narrow returns the scopes that a request names, all of which must have been granted; without names all.
func narrow(granted []string, text string) ([]string, error) {
	asked := strings.Fields(text)
	if len(asked) == 0 {
		return slices.Clone(granted), nil
	}
	for _, name := range asked {
		if !slices.Contains(granted, name) {
			return nil, refuse("invalid_scope", "the scope %s was not granted", name)
		}
	}
	slices.Sort(asked)
	return slices.Compact(asked), nil
}
