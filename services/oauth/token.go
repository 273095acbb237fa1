package oauth

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// skew is the clock skew that is allowed between two processes: a token whose iat is
// that far ahead is not from the future.
const skew = time.Minute

// lastUnixTime is 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const lastUnixTime = 253402300799

// sign returns the JWT of a token (docs/interface/oauth.md#token-contents), which has no
// "roles", "groups" or "scope". It is the same text for the same token and secret, so that
// it is not stored.
func (s *Service) sign(t store.Token, secret secure.Secret) (secure.Secret, error) {
	claims := secure.Claims{
		"jti": t.ID.String(),
		"iat": t.IssuedAt.Unix(),
		"iss": s.cfg.Base.To("applications", t.ApplicationID),
		"sub": s.cfg.Base.To("accounts", t.AccountID),
		"exp": t.ExpiresAt.Unix(),
	}
	if !t.RefreshID.IsZero() {
		claims["rti"] = t.RefreshID.String()
	}
	if org := s.orgOf(t); org != "" {
		claims["org"] = org
	}
	text, err := secure.SignJWT(map[string]any{"kid": t.KeyID, "stt": string(t.Kind)}, claims, secret)
	return secure.Secret(text), err
}

// orgOf returns the claim org of a token: the href of the organization that its
// login named, or the empty string.
func (s *Service) orgOf(t store.Token) string {
	if t.OrganizationID.IsZero() {
		return ""
	}
	return s.cfg.Base.To("organizations", t.OrganizationID)
}

// presented is a token that a client sent and whose signature is valid: a key of
// the tenant signed it.
type presented struct {
	key       store.Key
	kind      store.Kind // empty: the token has no stt
	id        id.ID      // zero: its jti is not an id
	issuer    string
	subject   string
	org       string // href of an organization; empty: none
	issuedAt  time.Time
	expiresAt time.Time
}

// errUnreadable refuses text that is not a JWT signed by a key of the tenant.
var errUnreadable = apierr.TokenSignature.Because("the token is not a JWT that an API key of the tenant has signed with HS256")

// signed is a JWT with the API key of the tenant that has signed it.
type signed struct {
	header map[string]any
	claims secure.Claims
	key    store.Key
}

// verified verifies the signature of a JWT with the key of the caller's tenant
// whose id name returns. The header and the claims that name gets are not verified
// yet; an error of it refuses the JWT.
func (s *Service) verified(ctx context.Context, tenant id.ID, text secure.Secret,
	name func(map[string]any, secure.Claims) (string, error)) (jwt signed, err error) {
	var failure error // of the look-up, which is more precise than errUnreadable
	jwt.header, jwt.claims, err = secure.ParseJWT(text.Reveal(), func(header map[string]any, claims secure.Claims) (secure.Secret, error) {
		var key string
		if key, failure = name(header, claims); failure == nil {
			jwt.key, failure = s.signingKey(ctx, tenant, key)
		}
		return jwt.key.Secret, failure
	})
	switch {
	case failure != nil && !errors.Is(failure, apierr.NotFound):
		return jwt, failure
	case err != nil:
		return jwt, errUnreadable
	}
	if _, critical := jwt.header["crit"]; critical {
		return jwt, errUnreadable // extensions that must be understood (RFC 7515, section 4.1.11), and there are none here
	}
	return jwt, nil
}

// read verifies the signature of a token with the key that its header names.
// checkHeader, where not nil, may refuse a token before that.
func (s *Service) read(ctx context.Context, tenant id.ID, text secure.Secret, checkHeader func(map[string]any) error) (presented, error) {
	jwt, err := s.verified(ctx, tenant, text, func(header map[string]any, _ secure.Claims) (string, error) {
		if checkHeader != nil {
			if err := checkHeader(header); err != nil {
				return "", err
			}
		}
		kid, _ := header["kid"].(string)
		return kid, nil
	})
	if err != nil {
		return presented{}, err
	}
	p, header, claims := presented{key: jwt.key}, jwt.header, jwt.claims
	stt, _ := header["stt"].(string)
	p.kind = store.Kind(stt)
	var hasIssued, hasExpiry bool
	p.issuedAt, hasIssued = unixTime(claims, "iat")
	p.expiresAt, hasExpiry = unixTime(claims, "exp")
	if !hasIssued || !hasExpiry {
		return p, errUnreadable
	}
	p.issuer, _ = claims["iss"].(string)
	p.subject, _ = claims["sub"].(string)
	p.org, _ = claims["org"].(string)
	jti, _ := claims["jti"].(string)
	p.id, _ = id.Parse(jti)
	return p, nil
}

// unixTime returns the time of a claim. Numbers that cannot be a time of this
// product are not one: with them, sums of times would overflow.
func unixTime(claims secure.Claims, name string) (time.Time, bool) {
	seconds, ok := claims[name].(float64)
	if !ok || !(seconds >= 0 && seconds <= lastUnixTime) {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

// check refuses a token that is not one of the kinds, is not valid or was deleted,
// with the first error in the order of docs/interface/errors.md#failed-validation.
// A token of an API key that is not enabled counts as one with an invalid
// signature: the key may have been disabled because it was stolen. The token is looked
// up by read.
func (s *Service) check(ctx context.Context, tenant, application id.ID, text secure.Secret, read tokenReader, kinds ...store.Kind) (
	store.Token, error) {
	p, err := s.read(ctx, tenant, text, nil)
	now := s.now()
	switch {
	case err != nil:
		return store.Token{}, err
	case p.key.Status != directoryapi.Enabled:
		return store.Token{}, apierr.TokenSignature.Because("the API key that signed the token is not enabled")
	case !slices.Contains(kinds, p.kind):
		return store.Token{}, apierr.TokenSignature.Because("the header stt of the token must be %s", kinds[len(kinds)-1])
	case p.issuer != s.cfg.Base.To("applications", application):
		return store.Token{}, apierr.TokenOtherApplication.Because("the token was issued by another application")
	case p.issuedAt.After(now.Add(skew)):
		return store.Token{}, apierr.TokenFromFuture.Because("the token was issued in the future")
	case !now.Before(p.expiresAt):
		return store.Token{}, apierr.TokenExpired.Because("the token has expired")
	}
	t, err := read(ctx, p.kind, tenant, p.id)
	switch {
	case errors.Is(err, apierr.NotFound):
		return t, s.errTokenDeleted()
	case err != nil:
		return t, err
	case !s.issued(t, p):
		return t, apierr.TokenSignature.Because("the token is not the one that was issued under its id")
	}
	return t, nil
}

// tokenDeleted is a text that clients compare
// (docs/interface/errors.md#texts-that-clients-compare).
const tokenDeleted = "Token does not exist. This can occur if the token has been manually deleted, " +
	"or if the token has expired and removed by %s."

func (s *Service) errTokenDeleted() *apierr.Error {
	return apierr.TokenRevoked.Because(tokenDeleted, s.cfg.Alias.Product())
}

// issued reports whether a token that was presented equals the one that was
// issued under its id. A signature alone does not prove that: end users have API
// keys of the tenant too.
func (s *Service) issued(t store.Token, p presented) bool {
	return t.KeyID == p.key.ID && t.ExpiresAt.Equal(p.expiresAt) &&
		s.cfg.Base.To("accounts", t.AccountID) == p.subject && s.orgOf(t) == p.org
}

// accessChecker is checkAccess or recentAccess.
type accessChecker func(context.Context, applicationapi.CheckAccess) (directoryapi.Account, error)

// checkHolder refuses the account of a token that may not act through the
// application, or not through the organization that its login named.
func (s *Service) checkHolder(ctx context.Context, tenant, application id.ID, user holder, check accessChecker) error {
	asked := user.access(tenant, application)
	asked.Brief = true
	_, err := check(ctx, asked)
	return err
}

func (h holder) access(tenant, application id.ID) applicationapi.CheckAccess {
	return applicationapi.CheckAccess{Tenant: tenant, Application: application, Account: h.account, Organization: h.organization}
}

// checkTokenAccess is checkHolder for the account of a token, which it returns, and
// refuses a token of a login before the account's password was changed, where the
// policy of the application ends those. passwordChanged deletes them, but only when
// Kafka brings the event.
func (s *Service) checkTokenAccess(ctx context.Context, t store.Token, brief bool, check accessChecker) (directoryapi.Account, error) {
	asked := holderOf(t).access(t.TenantID, t.ApplicationID)
	asked.Brief = brief
	account, err := check(ctx, asked)
	if err != nil {
		return account, err
	}
	changed, login := account.PasswordModifiedAt, t.ID.Time()
	if !t.RefreshID.IsZero() {
		login = t.RefreshID.Time()
	}
	// The first password is no change. The clocks of two processes may differ by
	// more than the time from a registration to a login.
	if changed == nil || !changed.After(account.CreatedAt) || login.After(*changed) {
		return account, nil
	}
	policy, err := s.store.CachedPolicy(ctx, t.TenantID, t.ApplicationID)
	switch {
	case err == nil && !policy.RevokeTokensOnPasswordChange:
		return account, nil
	case err != nil && !errors.Is(err, apierr.NotFound): // without one the default ends them
		return account, err
	}
	return account, apierr.TokenRevoked.Because("the password of the account was changed after the login of the token")
}

// Validate is token introspection (in place of RFC 7662). It returns a token of either
// kind that is valid; its resource shows the kind to the client. The errors and their order are those of
// docs/interface/errors.md#failed-validation, with apierr.NotFound for the
// application and apierr.Unauthorized for the caller's API key.
func (s *Service) Validate(ctx context.Context, tenant, application id.ID, text secure.Secret) (store.Token, error) {
	if err := s.checkCaller(ctx, tenant); err != nil {
		return store.Token{}, err
	}
	t, err := s.check(ctx, tenant, application, text, s.recentToken, store.Kinds...)
	if err == nil {
		_, err = s.checkTokenAccess(ctx, t, true, s.recentAccess)
	}
	return t, s.refusal(ctx, tenant, application, err)
}

// tokenReader is Token of the store, or recentToken.
type tokenReader func(ctx context.Context, kind store.Kind, tenant, token id.ID) (store.Token, error)

// recentToken returns a token as it was at most 50 ms ago; a client sees its own
// changes at once.
func (s *Service) recentToken(ctx context.Context, kind store.Kind, tenant, token id.ID) (store.Token, error) {
	if caller.Changed(ctx) {
		return s.store.Token(ctx, kind, tenant, token)
	}
	return s.store.RecentToken(ctx, kind, tenant, token)
}

// LiveToken returns a token that has not expired, with its JWT, or
// apierr.NotFound. One whose API key was deleted is gone: nothing can verify it.
func (s *Service) LiveToken(ctx context.Context, kind store.Kind, tenant, token id.ID) (store.LiveToken, error) {
	t, err := s.recentToken(ctx, kind, tenant, token)
	switch {
	case err != nil:
		return store.LiveToken{}, err
	case !t.ExpiresAt.After(s.now()):
		return store.LiveToken{}, apierr.NotFound
	}
	read := s.signingKey
	if caller.Changed(ctx) {
		read = s.Key
	}
	key, err := read(ctx, tenant, t.KeyID)
	if err != nil {
		return store.LiveToken{}, err
	}
	jwt, err := s.sign(t, key.Secret)
	return store.LiveToken{Token: t, JWT: jwt}, err
}

// signed adds the JWT of a token that was read.
func (s *Service) signed(t store.LiveToken, err error) (store.LiveToken, error) {
	if err != nil {
		return t, err
	}
	secret, err := s.ring.Open(t.SecretSealed, keyPurpose(t.KeyID))
	if err == nil {
		t.JWT, err = s.sign(t.Token, secret)
	}
	return t, err
}

// ListTokens returns a page of an account's tokens that have not expired, with the
// filter application.href those of one application. It returns apierr.NotFound for
// the account and for the application.
func (s *Service) ListTokens(ctx context.Context, kind store.Kind, tenant, account id.ID, query list.Query) (list.Page[store.LiveToken],
	error) {
	none := list.Page[store.LiveToken]{}
	owner, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: tenant, ID: account})
	if err != nil {
		return none, err
	}
	var application id.ID
	for _, f := range query.Filters {
		ref, ok := s.cfg.Base.Parse(f.Text)
		if !ok || ref.Kind != "applications" || f.Match != list.Equal {
			return none, apierr.ParameterInvalid.Because("%s must be the href of an application", f.Attribute)
		}
		if _, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: ref.ID}); err != nil {
			return none, err
		}
		application = ref.ID
	}
	query.Filters = nil
	page, err := s.store.ListTokens(ctx, kind, tenant, account, application, s.now(), query.Of(owner.CreatedAt, owner.ModifiedAt))
	for i := range page.Items {
		if page.Items[i], err = s.signed(page.Items[i], err); err != nil {
			return page, err
		}
	}
	return page, err
}

// DeleteToken ends one token and no other, or returns apierr.NotFound.
func (s *Service) DeleteToken(ctx context.Context, kind store.Kind, tenant, token id.ID) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteToken(ctx, kind, tenant, token, s.now()) })
}
