package oauth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// maxAssertionAge is the longest time from the iat of an assertion to its exchange, also
// where its exp is later or missing. A jti that was used is stored for that time.
const maxAssertionAge = 10 * time.Minute

// assertion is a verified JWT which states that an account has logged in elsewhere: on the
// hosted login, at a provider, or at a client that signs the JWT with an API key of an
// administrator (docs/interface/oauth.md#assertions). The grant is in grant_assertion.go.
type assertion struct {
	jti          string // single use; empty: signed by a client, may be used until expiresAt
	account      id.ID
	organization string // href of the organization that the login named; empty: none
	expiresAt    time.Time
	secondStep   secondStep
}

// verifyAssertion verifies and reads the assertion of a request. It must be signed with an
// API key of an administrator of the caller's tenant: end users have API keys of the tenant
// too, and could log in as anybody.
func (s *Service) verifyAssertion(ctx context.Context, in TokenRequest, text secure.Secret) (assertion, error) {
	jwt, err := s.verifyTenantJWT(ctx, in.Tenant, text, func(header map[string]any, claims secure.Claims) (string, error) {
		return assertionKeyID(header, claims, in.Key), nil
	})
	if err != nil {
		return assertion{}, err
	}
	if !jwt.isAssertion() {
		return assertion{}, apierr.TokenSignature.Because("the token must be an assertion, by its header, and kid and aud must name one key")
	}
	if err := s.checkAssertionSigner(ctx, jwt.key); err != nil {
		return assertion{}, err
	}
	if iss, _ := jwt.claims["iss"].(string); !s.cfg.Base.Is(iss, "applications", in.Application) &&
		!(jwt.header["stt"] == "assertion" && isHostedLogin(iss)) {
		return assertion{}, apierr.TokenOtherApplication.Because("the issuer of the assertion is neither the application nor a hosted login")
	}
	if isOpenIDLogin(jwt.claims) {
		return assertion{}, apierr.TokenOtherApplication.Because("the assertion is that of an authorization request, which gets a code")
	}
	a := assertion{secondStep: readSecondStep(jwt.claims)}
	if a.expiresAt, err = s.checkAssertionTimes(jwt.claims); err != nil {
		return a, err
	}
	if status, _ := jwt.claims["status"].(string); status != "AUTHENTICATED" && status != "REGISTERED" {
		return a, apierr.NotAuthenticated.Because("the status of the assertion is neither AUTHENTICATED nor REGISTERED")
	}
	return a, a.readSubject(jwt, s.cfg.Base.Parse)
}

// assertionKeyID returns the id of the API key that an assertion names in its header kid or
// else in its claim aud; without both it returns callerKeyID. An id that is not a string is
// returned as the empty string, which is the id of no key.
func assertionKeyID(header map[string]any, claims secure.Claims, callerKeyID string) string {
	if kid, named := header["kid"]; named {
		text, _ := kid.(string)
		return text
	}
	if claims["aud"] == nil {
		return callerKeyID
	}
	return audience(claims)
}

// audience returns the claim aud, a string or a list of one string (RFC 7519, section
// 4.1.3), or the empty string for any other value.
func audience(claims secure.Claims) string {
	if aud, err := claims.GetAudience(); err == nil && len(aud) == 1 {
		return aud[0]
	}
	return ""
}

// isAssertion reports whether a JWT is an assertion by its header and audience. Assertions
// of clients have no header stt; access and refresh tokens have another stt.
func (t verifiedJWT) isAssertion() bool {
	if typ, given := t.header["typ"]; given {
		if text, _ := typ.(string); !strings.EqualFold(text, "JWT") {
			return false
		}
	}
	stt, given := t.header["stt"]
	return (!given || stt == "assertion") && (t.claims["aud"] == nil || audience(t.claims) == t.key.ID)
}

// checkAssertionSigner refuses an API key that is not an enabled key of an administrator:
// such a key may not sign assertions about other accounts.
func (s *Service) checkAssertionSigner(ctx context.Context, k store.APIKey) error {
	if k.Status != directoryapi.Enabled {
		return apierr.TokenSignature.Because("the API key that signed the assertion is not enabled")
	}
	_, err := s.checkAdministrator(ctx, k)
	if errors.Is(err, errBadAPIKey) {
		err = apierr.TokenSignature.Because("the API key that signed the assertion is not one of an enabled administrator of the tenant")
	}
	return err
}

// isOpenIDLogin reports whether an assertion is that of a login that an authorization request has begun: it leads back
// to an OpenID provider. Without this check a page would get tokens for a login whose consent and whose client it does
// not know. The host does not matter: the domain of the hosted pages may have changed since the login began.
func isOpenIDLogin(claims secure.Claims) bool {
	callback, _ := claims["cb_uri"].(string)
	to, err := url.Parse(callback)
	if err != nil {
		return false
	}
	application, below := strings.CutPrefix(to.Path, "/oidc/")
	application, resumes := strings.CutSuffix(application, "/authorize/resume")
	return below && resumes && id.HasShape(application)
}

// isHostedLogin reports whether an issuer has the form of a hosted login: https and a host,
// and nothing else. The domains of hosted logins are known to the idsite service alone; the
// signature by an administrator's key is the proof.
func isHostedLogin(issuer string) bool {
	address, err := url.Parse(issuer)
	return err == nil && address.Hostname() != "" && issuer == "https://"+address.Host
}

// checkAssertionTimes returns when an assertion expires. It refuses an assertion that has no
// valid iat, was issued in the future, or has expired.
func (s *Service) checkAssertionTimes(claims secure.Claims) (expiresAt time.Time, err error) {
	issuedAt, ok := unixTime(claims, "iat")
	if !ok {
		return expiresAt, apierr.TokenSignature.Because("the assertion must have an iat in Unix seconds")
	}
	expiresAt = issuedAt.Add(maxAssertionAge)
	if claims["exp"] != nil {
		exp, ok := unixTime(claims, "exp")
		if !ok {
			return expiresAt, apierr.TokenSignature.Because("the exp of the assertion is not in Unix seconds")
		}
		if exp.Before(expiresAt) {
			expiresAt = exp
		}
	}
	now := s.now()
	notBefore, hasNotBefore := unixTime(claims, "nbf")
	switch {
	case claims["nbf"] != nil && !hasNotBefore:
		return expiresAt, apierr.TokenSignature.Because("the nbf of the assertion is not in Unix seconds")
	case issuedAt.After(now.Add(clockSkew)) || notBefore.After(now.Add(clockSkew)):
		return expiresAt, apierr.TokenFromFuture.Because("the assertion was issued in the future")
	case !now.Before(expiresAt):
		return expiresAt, apierr.TokenExpired.Because("the assertion has expired; one is good until its exp, and for at most %s", maxAssertionAge)
	}
	return expiresAt, nil
}

// readSubject reads the account that has logged in, the organization, and the jti of an
// assertion that the OAuth service has signed (SignAssertion).
func (a *assertion) readSubject(jwt verifiedJWT, parse func(string) (href.Ref, bool)) error {
	jti, isText := jwt.claims["jti"].(string)
	isOwn := jwt.header["stt"] != nil
	if (!isText || jti == "") && (isOwn || jwt.claims["jti"] != nil) {
		return apierr.TokenSignature.Because("the jti of the assertion must be text that is used once")
	}
	if isOwn {
		a.jti = jti
	}
	sub, _ := jwt.claims["sub"].(string)
	ref, ok := parse(sub)
	if !ok || ref.Kind != "accounts" {
		return apierr.TokenAccountDisabled.Because("the sub of the assertion is not the href of an account")
	}
	a.account = ref.ID
	if jwt.claims["org"] == nil {
		return nil
	}
	a.organization, _ = jwt.claims["org"].(string)
	if ref, ok := parse(a.organization); !ok || ref.Kind != "organizations" {
		return apierr.Reference.Because("the org of the assertion is not the href of an organization")
	}
	return nil
}

// consumeAssertion records an assertion of the OAuth service as used (single use, replay
// protection). Of any number of attempts, in any number of processes, one succeeds. An
// assertion that a client has signed may be used again: the client could sign another.
func (s *Service) consumeAssertion(ctx context.Context, tenant id.ID, a assertion) error {
	if a.jti == "" {
		return nil
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.ConsumeAssertion(ctx, tenant, a.jti, a.expiresAt) })
	if errors.Is(err, apierr.Exists) {
		return apierr.TokenReplayed.Because("the assertion was exchanged already")
	}
	return err
}
