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

// assertionLife limits the time between the creation of an assertion and its
// exchange, also of one with a later exp or without any. A jti that was used is
// stored for as long.
const assertionLife = 10 * time.Minute

// assertion states that an account has proved itself elsewhere: on the hosted
// login, at a provider, or to a client that says so with an API key of an
// administrator (docs/interface/oauth.md#assertions).
type assertion struct {
	jti          string // used once; empty for one that a client made, which is good until it expires
	account      id.ID
	organization string // href of the one that the login named; empty: none
	expiresAt    time.Time
	second       secondStep
}

// assertion reads the assertion of a request. The key that signed it must belong
// to an administrator of the caller's tenant: end users have API keys of the
// tenant too, and could log in as anybody.
func (s *Service) assertion(ctx context.Context, in TokenRequest, text secure.Secret) (assertion, error) {
	jwt, err := s.verified(ctx, in.Tenant, text, func(header map[string]any, claims secure.Claims) (string, error) {
		return signerOf(header, claims, in.Key), nil
	})
	if err != nil {
		return assertion{}, err
	}
	if !jwt.isAssertion() {
		return assertion{}, apierr.TokenSignature.Because("the token must be an assertion, by its header, and kid and aud must name one key")
	}
	if err := s.wantAdministrator(ctx, jwt.key); err != nil {
		return assertion{}, err
	}
	if iss, _ := jwt.claims["iss"].(string); iss != s.cfg.Base.To("applications", in.Application) &&
		!(jwt.header["stt"] == "assertion" && isHostedLogin(iss)) {
		return assertion{}, apierr.TokenOtherApplication.Because("the issuer of the assertion is neither the application nor a hosted login")
	}
	a := assertion{second: secondStepOf(jwt.claims)}
	if a.expiresAt, err = s.assertionTimes(jwt.claims); err != nil {
		return a, err
	}
	if status, _ := jwt.claims["status"].(string); status != "AUTHENTICATED" && status != "REGISTERED" {
		return a, apierr.NotAuthenticated.Because("the status of the assertion is neither AUTHENTICATED nor REGISTERED")
	}
	return a, a.identify(jwt, s.cfg.Base.Parse)
}

// signerOf returns the id of the key that an assertion names: in its header, in
// its audience, or, where it names none, the caller's. A name that is not a
// string is returned as the empty one, which no key has.
func signerOf(header map[string]any, claims secure.Claims, caller string) string {
	if kid, named := header["kid"]; named {
		text, _ := kid.(string)
		return text
	}
	if claims["aud"] == nil {
		return caller
	}
	return audience(claims)
}

// audience returns the only member of the claim aud, which may also be a string
// instead of a list (RFC 7519, section 4.1.3).
func audience(claims secure.Claims) string {
	if of, err := claims.GetAudience(); err == nil && len(of) == 1 {
		return of[0]
	}
	return ""
}

// isAssertion reports whether a JWT can be an assertion. Those that clients make
// have no stt; access and refresh tokens have another.
func (t signed) isAssertion() bool {
	if typ, given := t.header["typ"]; given {
		if text, _ := typ.(string); !strings.EqualFold(text, "JWT") {
			return false
		}
	}
	stt, given := t.header["stt"]
	return (!given || stt == "assertion") && (t.claims["aud"] == nil || audience(t.claims) == t.key.ID)
}

// wantAdministrator refuses a key that may not sign for others.
func (s *Service) wantAdministrator(ctx context.Context, k store.Key) error {
	if k.Status != directoryapi.Enabled {
		return apierr.TokenSignature.Because("the API key that signed the assertion is not enabled")
	}
	err := s.stillAdministers(ctx, k)
	if errors.Is(err, errBadKey) {
		err = apierr.TokenSignature.Because("the API key that signed the assertion is not one of an enabled administrator of the tenant")
	}
	return err
}

// isHostedLogin reports whether an issuer has the form of a hosted login: https
// and a host, and nothing else. Which domains those are, only the idsite service
// knows; the key is the proof.
func isHostedLogin(issuer string) bool {
	address, err := url.Parse(issuer)
	return err == nil && address.Hostname() != "" && issuer == "https://"+address.Host
}

// assertionTimes returns when an assertion expires, or refuses one that is from
// the future, has expired, or has no plausible iat.
func (s *Service) assertionTimes(claims secure.Claims) (expiresAt time.Time, err error) {
	issuedAt, ok := unixTime(claims, "iat")
	if !ok {
		return expiresAt, apierr.TokenSignature.Because("the assertion must have an iat in Unix seconds")
	}
	expiresAt = issuedAt.Add(assertionLife)
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
	switch {
	case issuedAt.After(now.Add(skew)):
		return expiresAt, apierr.TokenFromFuture.Because("the assertion was issued in the future")
	case !now.Before(expiresAt):
		return expiresAt, apierr.TokenExpired.Because("the assertion has expired; one is good until its exp, and for at most %s", assertionLife)
	}
	return expiresAt, nil
}

// identify reads the account that has logged in, and the jti of an assertion that
// the service itself made.
func (a *assertion) identify(jwt signed, parse func(string) (href.Ref, bool)) error {
	jti, isText := jwt.claims["jti"].(string)
	own := jwt.header["stt"] != nil
	if (!isText || jti == "") && (own || jwt.claims["jti"] != nil) {
		return apierr.TokenSignature.Because("the jti of the assertion must be text that is used once")
	}
	if own {
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

// consume records that an assertion which the service made is exchanged, once (single use,
// replay protection). One of any number of attempts, in any number of processes, succeeds. A
// client that signs its own assertions could sign another, so that these may be exchanged
// again.
func (s *Service) consume(ctx context.Context, tenant id.ID, a assertion) error {
	if a.jti == "" {
		return nil
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.ConsumeAssertion(ctx, tenant, a.jti, a.expiresAt) })
	if errors.Is(err, apierr.Exists) {
		return apierr.TokenReplayed.Because("the assertion was exchanged already")
	}
	return err
}
