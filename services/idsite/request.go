package idsite

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

const (
	// maxRequestAge is the maximum age of a request by its iat, whatever its exp says.
	maxRequestAge = 10 * time.Minute
	// clockSkew is the difference that is allowed between the clocks of a client and the service.
	clockSkew = time.Minute
	// maxRequestID bounds the jti of a request, in bytes: it is part of an index.
	maxRequestID = 1024
)

// request is a signed request for a hosted login or logout, a jwtRequest
// (docs/interface/id-site.md#requests). Its signature and its callback were verified.
type request struct {
	tenant      id.ID
	key         string // id of the API key that signed it
	application applicationapi.Application
	site        store.Site
	callback    string
	claims      map[string]json.RawMessage
}

// verifyRequest verifies the signature of a jwtRequest and its callback (cb_uri), which must be
// listed in the application or the settings (open redirect). An error of verifyRequest cannot be
// sent to the callback. The other claims are checked by validate, whose errors are.
func (s *Service) verifyRequest(ctx context.Context, text secure.Secret) (request, error) {
	verified, err := s.verifySignature(ctx, "jwtRequest", text)
	if err != nil {
		return request{}, err
	}
	r, err := parseRequest("jwtRequest", verified, rawClaims(text))
	if err != nil {
		return r, err
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	if issuer := r.stringClaim("iss"); issuer != r.key {
		return r, apierr.BadRequest.Because("iss must be the id of the API key that signed jwtRequest")
	}
	ref, ok := s.cfg.Base.Parse(r.stringClaim("sub"))
	if !ok || ref.Kind != "applications" {
		return r, apierr.BadRequest.Because("sub must be the href of an application")
	}
	r.application, err = s.peers.Application.Application(ctx, id.Ref{Tenant: r.tenant, ID: ref.ID})
	if errors.Is(err, apierr.NotFound) {
		return r, apierr.BadRequest.Because("sub must be the href of an application of the tenant")
	}
	if err != nil {
		return r, err
	}
	if r.site, err = s.store.TenantSite(ctx, r.tenant); err != nil {
		return r, err
	}
	r.callback = r.stringClaim("cb_uri")
	if r.callback == "" {
		return r, apierr.BadRequest.Because("cb_uri is required")
	}
	allowed := slices.Concat(r.application.AuthorizedCallbackURIs, r.site.AuthorizedRedirectURIs)
	if !redirecturi.IsListed(r.callback, allowed) {
		return r, apierr.BadRequest.Because(
			"cb_uri %q is listed neither in authorizedCallbackUris of the application nor in authorizedRedirectUris of the ID site", r.callback)
	}
	return r, nil
}

// verifySignature verifies the signature of a request, which is in a parameter of the query.
func (s *Service) verifySignature(ctx context.Context, parameter string,
	token secure.Secret) (oauthapi.VerifiedJWT, error) {
	if token == "" {
		return oauthapi.VerifiedJWT{}, apierr.BadRequest.Because("the query parameter %s is required", parameter)
	}
	verified, err := s.peers.OAuth.VerifyJWT(ctx, oauthapi.VerifyJWT{Token: token})
	if errors.Is(err, apierr.TokenSignature) {
		err = apierr.BadRequest.Because("%s is not a JWT that an enabled API key of an administrator signed with HS256",
			parameter)
	}
	if err != nil {
		return verified, err
	}
	return verified, s.Journey.CheckTenant(ctx, verified.Tenant)
}

// parseRequest reads the header and the claims of a request whose signature is verified.
func parseRequest(parameter string, verified oauthapi.VerifiedJWT, claims []byte) (request, error) {
	r := request{tenant: verified.Tenant, key: verified.KeyID}
	var header map[string]any
	if json.Unmarshal(verified.Header, &header) != nil || json.Unmarshal(claims, &r.claims) != nil {
		return r, apierr.BadRequest.Because("%s cannot be read", parameter)
	}
	for name := range r.claims {
		if strings.ContainsRune(r.stringClaim(name), 0) {
			return r, apierr.BadRequest.Because("the claim %s has a NUL character", name)
		}
	}
	if stt, given := header["stt"]; given && stt != "request" {
		return r, apierr.BadRequest.Because("%s is a token of another kind: its header has stt", parameter)
	}
	return r, nil
}

// applicationError is the error of a request, with its application.
type applicationError struct {
	error
	application Origin
}

func (e applicationError) Unwrap() error { return e.error }

// OriginOf returns the origin of the page that shows the error of a request: its application, or nothing.
func OriginOf(err error) Origin {
	var known applicationError
	errors.As(err, &known)
	return known.application
}

// rawClaims returns the claims of a JWT whose signature is verified, byte for byte as the client
// wrote them, because a large number must not change.
func rawClaims(text secure.Secret) []byte {
	parts := strings.Split(text.Reveal(), ".")
	if len(parts) != 3 {
		return nil
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	return claims
}

// stringClaim returns a claim that is a string, otherwise "".
func (r request) stringClaim(name string) string {
	var text string
	_ = json.Unmarshal(r.claims[name], &text) // a claim of another type counts as absent
	return text
}

// boolClaim returns a claim that is true, or the string "true".
func (r request) boolClaim(name string) bool {
	var flag bool
	if json.Unmarshal(r.claims[name], &flag) == nil {
		return flag
	}
	return strings.EqualFold(r.stringClaim(name), "true")
}

// state returns the claim state, which the client gets back: a string, or other JSON. Both are
// nil where the request has no state.
func (r request) state() (text, other *string) {
	raw := r.claims["state"]
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	if other := string(raw); raw != nil {
		return nil, &other
	}
	return nil, nil
}

// validate checks the claims of a request: jti, iat, exp and nbf, and whether the application is
// enabled. Its error goes to the callback of the request.
func (r request) validate(now time.Time) error {
	for _, name := range []string{"iss", "sub", "cb_uri", "jti", "iat", "onk", "ash", "sof", "usd", "sp_token", "require_mfa", "exp", "nbf"} {
		if raw, given := r.claims[name]; given && (string(bytes.TrimSpace(raw)) == "null" || string(raw) == `""`) {
			return apierr.ClaimEmpty.Because("the claim %s must not be null or empty", name)
		}
	}
	if jti := r.stringClaim("jti"); jti == "" || len(jti) > maxRequestID {
		return apierr.ClaimEmpty.Because("the claim jti must be text of at most %d bytes that is used once", maxRequestID)
	}
	issuedAt, ok := r.timeClaim("iat")
	if !ok {
		return apierr.ClaimEmpty.Because("the claim iat must be the time in Unix seconds")
	}
	expiresAt, hasExpiry := r.timeClaim("exp")
	notBefore, hasNotBefore := r.timeClaim("nbf")
	switch {
	case r.claims["nbf"] != nil && !hasNotBefore:
		return apierr.ClaimEmpty.Because("the claim nbf must be a time in Unix seconds")
	case hasNotBefore && notBefore.After(now.Add(clockSkew)):
		return apierr.TokenFromFuture.Because("the request is not valid yet (nbf)")
	case issuedAt.After(now.Add(clockSkew)):
		return apierr.TokenFromFuture.Because("the request was issued in the future")
	case now.After(issuedAt.Add(maxRequestAge + clockSkew)):
		return apierr.TokenExpired.Because("the request is older than %s", maxRequestAge)
	case r.claims["exp"] != nil && !hasExpiry:
		return apierr.ClaimEmpty.Because("the claim exp must be a time in Unix seconds")
	case hasExpiry && now.After(expiresAt.Add(clockSkew)):
		return apierr.TokenExpired.Because("the request has expired")
	case r.application.Status != directoryapi.Enabled:
		return apierr.TokenApplicationDisabled.Because("the application is disabled")
	}
	return nil
}

// timeClaim returns a claim that is a time in Unix seconds, which may have a fraction.
func (r request) timeClaim(name string) (time.Time, bool) {
	var seconds float64
	if json.Unmarshal(r.claims[name], &seconds) != nil || seconds < 0 || seconds > 1e11 {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

// factorTypes returns the types of factor that the claim require_mfa demands. A value without a
// known type demands a factor of any type, so that a typing error does not turn MFA off.
func (r request) factorTypes() []string {
	raw := r.claims["require_mfa"]
	if raw == nil {
		return []string{}
	}
	var names []string
	if json.Unmarshal(raw, &names) != nil {
		names = []string{r.stringClaim("require_mfa")}
	}
	types := []string{}
	for _, name := range names {
		name = strings.ToLower(name)
		if slices.Contains(mfaapi.Types, name) && !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	if len(types) == 0 && len(names) > 0 {
		types = mfaapi.Types
	}
	return types
}

// pagePath returns the route of the hosted page that the claim path names, with a slash at its
// beginning and without #.
func (r request) pagePath() string {
	path := strings.TrimPrefix(strings.TrimPrefix(r.stringClaim("path"), "/"), "#")
	path = "/" + strings.TrimLeft(path, "/")
	escaped := (&url.URL{Path: path}).EscapedPath()
	return strings.ReplaceAll(escaped, "//", "/")
}

// accountStore is the account store that the claims onk or ash name.
func (r request) accountStore() applicationapi.LoginTarget {
	where := applicationapi.LoginTarget{Tenant: r.tenant, Application: r.application.ID,
		NameKey: strings.ToLower(r.stringClaim("onk"))}
	if where.NameKey == "" {
		where.AccountStore.Href = r.stringClaim("ash")
	}
	return where
}
