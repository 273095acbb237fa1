package secure

import (
	"errors"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ErrToken is returned for a token that is not a JWT signed with HS256 by the
// key that its header names.
var ErrToken = errors.New("secure: not a token of ours")

// Claims are the members of a token's payload.
type Claims = jwt.MapClaims

// SignJWT signs claims with HS256 (RFC 7515) under the UTF-8 bytes of key.
// The header holds alg and the given members. Access and refresh tokens are signed in
// services/oauth/token.go.
func SignJWT(header map[string]any, claims Claims, key Secret) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	delete(token.Header, "typ")
	maps.Copy(token.Header, header)
	return token.SignedString([]byte(key))
}

// parser accepts one text for each token: it refuses Base64 whose unused bits are not zero
// (RFC 4648, section 3.5), so that a token whose last character was changed is refused.
var parser = jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithStrictDecoding(),
	jwt.WithoutClaimsValidation())

// ParseJWT verifies the signature of a JWT and returns its header and claims. It accepts HS256 only,
// whatever alg the header has, such as none (algorithm confusion). key returns the secret by the
// header and the claims, neither of which is verified at that moment. Times (exp, nbf) are not
// validated: the caller does so, in the order of its errors.
func ParseJWT(
	text string, key func(header map[string]any, claims Claims) (Secret, error),
) (map[string]any, Claims, error) {
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
			// The function key failed: its error is returned too.
			return nil, nil, errors.Join(ErrToken, err)
		}
		return nil, nil, ErrToken
	}
	return token.Header, claims, nil
}

// JWTExpiry returns the claim exp of a JWT. It verifies no signature: the caller must have verified
// or made the token.
func JWTExpiry(text Secret) (time.Time, error) {
	claims, err := UnverifiedClaims(text)
	if err != nil {
		return time.Time{}, err
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return time.Time{}, ErrToken
	}
	return exp.Time, nil
}

// UnverifiedClaims returns the claims of a JWT, or ErrToken. It verifies no signature: nothing may be
// allowed because of them.
func UnverifiedClaims(text Secret) (Claims, error) {
	claims := Claims{}
	if _, _, err := parser.ParseUnverified(text.Reveal(), claims); err != nil {
		return nil, ErrToken
	}
	return claims, nil
}

// NumericDate returns the time of a claim, and false for a value that is no number of seconds from 0 to the year 9999
// (RFC 7519, section 2).
func NumericDate(claims Claims, name string) (time.Time, bool) {
	seconds, ok := claims[name].(float64)
	if !ok || !(seconds >= 0 && seconds <= 253402300799) {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
