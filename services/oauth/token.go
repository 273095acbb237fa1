package oauth

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/store"
)

// clockSkew is the difference that is allowed between the clocks of two processes: an iat
// up to that far in the future is accepted.
const clockSkew = time.Minute

// lastUnixTime is 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const lastUnixTime = 253402300799

// signToken returns the JWT of an access or refresh token
// (docs/interface/oauth.md#token-contents); its header stt (token type) is access or refresh. As the
// policy of the application says, it is signed with HS256 under the secret of an API key (which key, for
// the Client API, is in hosted.go), or by a signing key of the tenant. The JWT is not stored.
func (s *Service) signToken(ctx context.Context, t store.Token, secret secure.Secret) (secure.Secret, error) {
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
	if org := s.organizationClaim(t); org != "" {
		claims["org"] = org
	}
	policy, err := s.store.CachedPolicy(ctx, t.TenantID, t.ApplicationID)
	if err != nil {
		return "", err
	}
	if policy.TokenSigning == store.TokensByAPIKey {
		text, err := secure.SignJWT(map[string]any{"kid": t.KeyID, "stt": string(t.Kind)}, claims, secret)
		return secure.Secret(text), err
	}
	algorithm, err := s.SigningAlgorithm(ctx, id.Ref{Tenant: t.TenantID, ID: t.ApplicationID})
	if err != nil {
		return "", err
	}
	return s.Sign(ctx, t.TenantID, algorithm, map[string]any{"stt": string(t.Kind)}, claims, t.ExpiresAt)
}

// organizationClaim returns the claim org of a token: the href of the organization that
// the login named, or the empty string.
func (s *Service) organizationClaim(t store.Token) string {
	if t.OrganizationID.IsZero() {
		return ""
	}
	return s.cfg.Base.To("organizations", t.OrganizationID)
}

// verifiedToken has the claims of an access or refresh token whose signature is valid. The
// claims are not checked yet.
type verifiedToken struct {
	key       store.APIKey    // that signed the token; zero: a signing key of the tenant did
	kind      store.TokenKind // its header stt (token type); empty: it has none
	id        id.ID           // zero: its jti is not an id
	issuer    string
	subject   string
	org       string // href of an organization; empty: none
	issuedAt  time.Time
	expiresAt time.Time
}

// errTokenSignature refuses text that is not a JWT signed by a key of the tenant.
var errTokenSignature = apierr.TokenSignature.Because("the token is not a JWT that an API key of the tenant has signed with HS256, " +
	"or one of its signing keys")

// verifiedJWT is a JWT whose signature is valid, with the API key that has signed it.
type verifiedJWT struct {
	header map[string]any
	claims secure.Claims
	key    store.APIKey
}

// verifyTenantJWT verifies the signature of a JWT with an API key of the tenant (any
// tenant: VerifyJWT in hosted.go). keyIDOf returns the id of the key from the header and
// the claims, which are not verified at that moment; its error refuses the JWT.
func (s *Service) verifyTenantJWT(ctx context.Context, tenant id.ID, text secure.Secret,
	keyIDOf func(map[string]any, secure.Claims) (string, error)) (jwt verifiedJWT, err error) {
	var lookupErr error // more precise than errTokenSignature
	jwt.header, jwt.claims, err = secure.ParseJWT(text.Reveal(), func(header map[string]any, claims secure.Claims) (secure.Secret, error) {
		var keyID string
		if keyID, lookupErr = keyIDOf(header, claims); lookupErr == nil {
			jwt.key, lookupErr = s.signingKey(ctx, tenant, keyID)
		}
		return jwt.key.Secret, lookupErr
	})
	switch {
	case lookupErr != nil && !errors.Is(lookupErr, apierr.NotFound):
		return jwt, lookupErr
	case err != nil:
		return jwt, errTokenSignature
	}
	if _, critical := jwt.header["crit"]; critical {
		return jwt, errTokenSignature // demands an extension (RFC 7515, section 4.1.11); none is supported
	}
	return jwt, nil
}

// verifyBySigningKey verifies the signature of a JWT with the signing key of the tenant that its header kid names.
func (s *Service) verifyBySigningKey(ctx context.Context, tenant id.ID, text secure.Secret) (jwt verifiedJWT, err error) {
	jwt.header, jwt.claims, err = s.Verify(ctx, tenant, text)
	if errors.Is(err, secure.ErrToken) {
		err = errTokenSignature
	}
	return jwt, err
}

// verifyToken verifies the signature of an access or refresh token with the API key or, by its alg, the signing key
// that its header kid names, and reads its claims. checkHeader, where not nil, is called first
// and may refuse the token.
func (s *Service) verifyToken(
	ctx context.Context, tenant id.ID, text secure.Secret, checkHeader func(map[string]any) error,
) (verifiedToken, error) {
	jwt, err := s.verifyTenantJWT(ctx, tenant, text, func(header map[string]any, _ secure.Claims) (string, error) {
		if checkHeader != nil {
			if err := checkHeader(header); err != nil {
				return "", err
			}
		}
		kid, _ := header["kid"].(string)
		return kid, nil
	})
	if errors.Is(err, apierr.TokenSignature) {
		jwt, err = s.verifyBySigningKey(ctx, tenant, text)
		if err == nil && checkHeader != nil {
			err = checkHeader(jwt.header)
		}
	}
	if err != nil {
		return verifiedToken{}, err
	}
	p, header, claims := verifiedToken{key: jwt.key}, jwt.header, jwt.claims
	stt, _ := header["stt"].(string)
	p.kind = store.TokenKind(stt)
	var hasIssued, hasExpiry bool
	p.issuedAt, hasIssued = unixTime(claims, "iat")
	p.expiresAt, hasExpiry = unixTime(claims, "exp")
	if !hasIssued || !hasExpiry {
		return p, errTokenSignature
	}
	p.issuer, _ = claims["iss"].(string)
	p.subject, _ = claims["sub"].(string)
	p.org, _ = claims["org"].(string)
	jti, _ := claims["jti"].(string)
	p.id, _ = id.Parse(jti)
	return p, nil
}

// unixTime returns the time of a claim, and false for a value that is no number of seconds
// from 0 to lastUnixTime: sums with greater numbers would overflow.
func unixTime(claims secure.Claims, name string) (time.Time, bool) {
	seconds, ok := claims[name].(float64)
	if !ok || !(seconds >= 0 && seconds <= lastUnixTime) {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

// checkToken verifies a JWT, checks its claims and returns the stored token, or the first
// error in the order of docs/interface/errors.md#failed-validation. A token that is not
// stored was revoked. A token that was signed with a disabled API key has an invalid
// signature: the key may have been disabled because it was stolen. Whether the account may
// still act is checked by checkTokenAccess.
func (s *Service) checkToken(
	ctx context.Context, tenant, application id.ID, text secure.Secret, readToken tokenReader, kinds ...store.TokenKind,
) (store.Token, error) {
	p, err := s.verifyToken(ctx, tenant, text, nil)
	now := s.now()
	switch {
	case err != nil:
		return store.Token{}, err
	case p.key.ID != "" && p.key.Status != directoryapi.Enabled:
		return store.Token{}, errTokenKey
	case !slices.Contains(kinds, p.kind):
		return store.Token{}, apierr.TokenSignature.Because("the header stt of the token must be %s", kinds[len(kinds)-1])
	case !s.cfg.Base.Is(p.issuer, "applications", application):
		return store.Token{}, apierr.TokenOtherApplication.Because("the token was issued by another application")
	case p.issuedAt.After(now.Add(clockSkew)):
		return store.Token{}, apierr.TokenFromFuture.Because("the token was issued in the future")
	case !now.Before(p.expiresAt):
		return store.Token{}, apierr.TokenExpired.Because("the token has expired")
	}
	t, err := readToken(ctx, p.kind, tenant, p.id)
	switch {
	case errors.Is(err, apierr.NotFound):
		return t, s.errTokenDeleted()
	case err != nil:
		return t, err
	case !s.matchesStoredToken(t, p):
		return t, apierr.TokenSignature.Because("the token is not the one that was issued under its id")
	case p.key.ID == "":
		return t, s.checkTokenKey(ctx, t)
	}
	return t, nil
}

var errTokenKey = apierr.TokenSignature.Because("the API key by which the token was issued is not enabled")

// checkTokenKey refuses a token whose API key, which has not signed it, is not enabled.
func (s *Service) checkTokenKey(ctx context.Context, t store.Token) error {
	key, err := s.signingKey(ctx, t.TenantID, t.KeyID)
	if errors.Is(err, apierr.NotFound) || err == nil && key.Status != directoryapi.Enabled {
		return errTokenKey
	}
	return err
}

// tokenDeleted is the text of errTokenDeleted, which clients compare
// (docs/interface/errors.md#texts-that-clients-compare).
const tokenDeleted = "Token does not exist. This can occur if the token has been manually deleted, " +
	"or if the token has expired and removed by %s."

func (s *Service) errTokenDeleted() *apierr.Error {
	return apierr.TokenRevoked.Because(tokenDeleted, s.cfg.Alias.Product())
}

// matchesStoredToken reports whether the claims of a JWT are those of the token that is
// stored under its id. A valid signature does not prove that the OAuth service has issued
// the JWT: end users have API keys of the tenant too, and can sign with them.
func (s *Service) matchesStoredToken(t store.Token, p verifiedToken) bool {
	return (p.key.ID == "" || p.key.ID == t.KeyID) && t.ExpiresAt.Equal(p.expiresAt) &&
		s.cfg.Base.Is(p.subject, "accounts", t.AccountID) &&
		(p.org == "" && t.OrganizationID.IsZero() || s.cfg.Base.Is(p.org, "organizations", t.OrganizationID))
}

// accessChecker is the method checkAccess, or a function that asks each time.
type accessChecker func(context.Context, applicationapi.CheckAccess) (directoryapi.Access, error)

func (s subject) accessRequest(tenant, application id.ID) applicationapi.CheckAccess {
	return applicationapi.CheckAccess{Tenant: tenant, Application: application, Account: s.account, Organization: s.organization}
}

// checkTokenAccess is checkLogin for a token.
func (s *Service) checkTokenAccess(ctx context.Context, t store.Token, check accessChecker) error {
	login := t.ID.Time()
	if !t.RefreshID.IsZero() {
		login = t.RefreshID.Time()
	}
	return s.checkLogin(ctx, subjectOf(t).accessRequest(t.TenantID, t.ApplicationID), login, check)
}

// checkLogin refuses the tokens of a login at a time whose account may not act any more. It also refuses those
// from before a change of the account's password, where the policy of the application revokes them:
// passwordChanged (handlers.go) deletes them, but only when Kafka has delivered the event.
func (s *Service) checkLogin(ctx context.Context, request applicationapi.CheckAccess, login time.Time,
	check accessChecker) error {
	account, err := check(ctx, request)
	if err != nil {
		return err
	}
	changed := account.PasswordModifiedAt
	// The first password of an account is not a change. It is excluded, because the clocks of
	// two processes may differ by more than the time from a registration to a login.
	if changed == nil || !changed.After(account.CreatedAt) || login.After(*changed) {
		return nil
	}
	policy, err := s.store.CachedPolicy(ctx, request.Tenant, request.Application)
	if err != nil || !policy.RevokeTokensOnPasswordChange {
		return err
	}
	return apierr.TokenRevoked.Because("the password of the account was changed after the login of the token")
}

// Validate is token introspection (in place of RFC 7662). It returns a valid access token; a
// refresh token is none (apierr.TokenSignature), so that nobody takes one for a login. The errors
// and their order are those of docs/interface/errors.md#failed-validation, with apierr.NotFound
// for the application.
//
// An access token of the application's OpenID provider is as good as one of the application where FirstPartyToken
// accepts it.
func (s *Service) Validate(ctx context.Context, in oauthapi.ValidateToken) (store.Token, error) {
	if isOpenIDToken(in.Token) {
		t, _, err := s.validateOpenID(ctx, in)
		return store.Token{Kind: store.Access, ID: t.ID}, s.notFoundOr(ctx, in.Tenant, in.Application, err)
	}
	t, err := s.checkToken(ctx, in.Tenant, in.Application, in.Token, s.store.RecentToken, store.Access)
	if err == nil {
		err = s.checkTokenAccess(ctx, t, s.checkAccess)
	}
	return t, s.notFoundOr(ctx, in.Tenant, in.Application, err)
}

// isOpenIDToken reports whether a token says that it is an access token of an OpenID provider (RFC 9068, section 2.1).
// Its header is searched as text, which costs the tokens of applications, nearly all, less than to parse it.
func isOpenIDToken(text secure.Secret) bool {
	encoded, _, _ := strings.Cut(text.Reveal(), ".")
	header, err := base64.RawURLEncoding.DecodeString(encoded)
	return err == nil && bytes.Contains(header, []byte(`"`+openid.TypeAccessToken+`"`))
}

func (s *Service) validateOpenID(ctx context.Context, in oauthapi.ValidateToken) (store.OpenIDToken,
	directoryapi.Account, error) {
	return s.FirstPartyToken(ctx, id.Ref{Tenant: in.Tenant, ID: in.Application}, openid.Call{Method: in.Method,
		Address: in.Address, Proofs: in.Proofs, Scheme: in.Scheme, Bearer: in.Token})
}

// tokenReader is the method Token or RecentToken of the store.
type tokenReader func(ctx context.Context, kind store.TokenKind, tenant, token id.ID) (store.Token, error)

// LiveToken returns a token that has not expired, with its JWT, or apierr.NotFound, also
// where the API key that signed the token was deleted, as nothing can verify its JWT, or its account or
// application was.
func (s *Service) LiveToken(ctx context.Context, kind store.TokenKind, tenant, token id.ID) (store.TokenWithJWT, error) {
	t, err := s.store.RecentToken(ctx, kind, tenant, token)
	switch {
	case errors.Is(err, apierr.NotFound) && kind == store.Access:
		return s.liveOpenIDToken(ctx, id.Ref{Tenant: tenant, ID: token})
	case err != nil:
		return store.TokenWithJWT{}, err
	case !t.ExpiresAt.After(s.now()):
		return store.TokenWithJWT{}, apierr.NotFound
	}
	key, err := s.signingKey(ctx, tenant, t.KeyID)
	if err != nil {
		return store.TokenWithJWT{}, err
	}
	if err := s.checkOwners(ctx, t); err != nil {
		return store.TokenWithJWT{}, err
	}
	jwt, err := s.signToken(ctx, t, key.Secret)
	return store.TokenWithJWT{Token: t, JWT: jwt}, err
}

// liveOpenIDToken is LiveToken for an access token of an OpenID provider, to which a validation redirects.
func (s *Service) liveOpenIDToken(ctx context.Context, token id.Ref) (store.TokenWithJWT, error) {
	t, jwt, err := s.SignedFirstPartyToken(ctx, token)
	return store.TokenWithJWT{Token: store.Token{
		Kind: store.Access, TenantID: t.TenantID, ID: t.ID, ApplicationID: t.ApplicationID, AccountID: t.AccountID,
		IssuedAt: t.IssuedAt, ExpiresAt: t.ExpiresAt,
	}, JWT: jwt}, err
}

// checkOwners returns apierr.NotFound for a token whose account or application was deleted: the events
// of these delete it, too, but a moment later (docs/interface/conventions.md#cascades). The owners of a
// token that may be used exist, which the validation that redirects here has just asked; only those of any
// other are read.
func (s *Service) checkOwners(ctx context.Context, t store.Token) error {
	if _, err := s.checkAccess(ctx, subjectOf(t).accessRequest(t.TenantID, t.ApplicationID)); err == nil {
		return nil
	}
	_, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: t.TenantID, ID: t.AccountID})
	if err == nil {
		_, err = s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: t.TenantID, ID: t.ApplicationID})
	}
	if errors.Is(err, apierr.NotFound) {
		return apierr.NotFound // the token, not its owner
	}
	return err
}

// deletedApplications returns the applications of an account's tokens that were deleted.
func (s *Service) deletedApplications(ctx context.Context, kind store.TokenKind, tenant, account id.ID) ([]id.ID, error) {
	applications, err := s.store.TokenApplications(ctx, kind, tenant, account)
	deleted := []id.ID{}
	for _, application := range applications {
		_, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: application})
		switch {
		case errors.Is(err, apierr.NotFound):
			deleted = append(deleted, application)
		case err != nil:
			return nil, err
		}
	}
	return deleted, err
}

// withJWT adds the JWT to a token that was read, unless err is set.
func (s *Service) withJWT(ctx context.Context, t store.TokenWithJWT, err error) (store.TokenWithJWT, error) {
	if err != nil {
		return t, err
	}
	secret, err := s.ring.Open(t.SecretSealed, apiKeyPurpose(t.KeyID))
	if err == nil {
		t.JWT, err = s.signToken(ctx, t.Token, secret)
	}
	return t, err
}

// ListTokens returns a page of an account's tokens that have not expired; with the filter
// application.href only those of that application. It returns apierr.NotFound for an
// unknown account and an unknown application.
func (s *Service) ListTokens(
	ctx context.Context, kind store.TokenKind, tenant, account id.ID, query list.Query,
) (list.Page[store.TokenWithJWT], error) {
	none := list.Page[store.TokenWithJWT]{}
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
		_, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: ref.ID})
		if errors.Is(err, apierr.NotFound) {
			err = apierr.NotFound.Because("no application has the id %q", ref.ID) // not the account of the path
		}
		if err != nil {
			return none, err
		}
		application = ref.ID
	}
	query.Filters = nil
	deleted, err := s.deletedApplications(ctx, kind, tenant, account)
	if err != nil {
		return none, err
	}
	query = query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt)
	page, err := s.store.ListTokens(ctx, kind, tenant, account, application, deleted, s.now(), query)
	for i := range page.Items {
		if page.Items[i], err = s.withJWT(ctx, page.Items[i], err); err != nil {
			return page, err
		}
	}
	return page, err
}

// DeleteToken revokes one token alone, or returns apierr.NotFound. The revocation of an
// access token together with its refresh token (RFC 7009) is in revocation.go.
func (s *Service) DeleteToken(ctx context.Context, kind store.TokenKind, tenant, token id.ID) error {
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteToken(ctx, kind, tenant, token, s.now()) })
	if errors.Is(err, apierr.NotFound) && kind == store.Access {
		return s.DeleteAccessToken(ctx, id.Ref{Tenant: tenant, ID: token})
	}
	return err
}
