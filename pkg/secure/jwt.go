package secure

import (
	"errors"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ErrToken is returned for a token that is not a JWT signed with HS256 by the
// key that its header leads to.
var ErrToken = errors.New("secure: not a token of ours")

// Claims are the members of a token's payload.
type Claims = jwt.MapClaims

// SignJWT signs claims with HS256 (RFC 7515) under the UTF-8 bytes of key.
// The header holds alg and the given members. Access and refresh tokens are signed in
// services/oauth/token.go. The key is symmetric: there is no JWKS endpoint.
func SignJWT(header map[string]any, claims Claims, key Secret) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	delete(token.Header, "typ")
	maps.Copy(token.Header, header)
	return token.SignedString([]byte(key))
}

// parser knows one spelling of each token: the bits that the last character of
// a Base64 text leaves over are zero (RFC 4648, section 3.5), so that a token
// whose last character was changed is another one, and refused.
var parser = jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())

// ParseJWT verifies a token with HS256 alone, whatever alg its header asks for (none, or
// another one: algorithm confusion), and returns its header and claims. key finds the secret by the header and the
// claims, neither of which is verified at that moment. Times are not checked:
// the caller checks them, in the order that its errors require.
func ParseJWT(text string, key func(header map[string]any, claims Claims) (Secret, error)) (map[string]any, Claims, error) {
	claims := Claims{}
	token, err := parser.ParseWithClaims(text, claims, func(t *jwt.Token) (any, error) {
		secret, err := key(t.Header, claims)
		if err != nil {
			return nil, err
		}
		return []byte(secret), nil
	})
	if err != nil {
		if token != nil && errors.Is(err, jwt.ErrTokenUnverifiable) {
			// The key function failed: its own error says more.
			return nil, nil, errors.Join(ErrToken, err)
		}
		return nil, nil, ErrToken
	}
	return token.Header, claims, nil
}

// JWTExpiry returns the claim exp of a JWT whose signature the caller knows to be
// good: it verifies nothing.
func JWTExpiry(text Secret) (time.Time, error) {
	claims := Claims{}
	if _, _, err := parser.ParseUnverified(text.Reveal(), claims); err != nil {
		return time.Time{}, ErrToken
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return time.Time{}, ErrToken
	}
	return exp.Time, nil
}
