package relyingparty

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// ClockSkew is how far the clock of a client may be ahead.
	ClockSkew = 10 * time.Second
	// MaxAssertionAge bounds the lifetime of a client assertion: its jti is kept for as long.
	MaxAssertionAge = 10 * time.Minute
)

// ErrSignature says that a text is no JWT that a client has signed.
var ErrSignature = errors.New("relyingparty: the client has not signed this")

// VerifySigned returns the claims of a JWT that a client has signed with one of its keys, by the algorithm that it is
// registered with, else by one of the algorithms. Any other text is ErrSignature.
func (s *Clients) VerifySigned(ctx context.Context, client store.OpenIDClient, text secure.Secret, registered *string,
	algorithms []string) (secure.Claims, error) {
	header, err := secure.UnverifiedHeader(text)
	if err != nil {
		return nil, ErrSignature
	}
	algorithm, _ := header["alg"].(string)
	if registered != nil && algorithm != *registered || !slices.Contains(algorithms, algorithm) {
		return nil, ErrSignature
	}
	keys, err := s.publicKeys(ctx, client, header["kid"])
	if errors.Is(err, errKeys) {
		return nil, ErrSignature
	}
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if kid, named := header["kid"].(string); named && key.ID() != "" && key.ID() != kid {
			continue
		}
		if claims, err := key.Verify(text, algorithm); err == nil {
			return claims, nil
		}
	}
	return nil, ErrSignature
}

// CheckAssertion returns the jti and the end of a client assertion whose signature is valid (RFC 7523, section 3); ok
// is false where its claims are not those of the client, the issuer and the time.
func CheckAssertion(claims secure.Claims, clientID, issuer string, now time.Time) (jti string, expires time.Time,
	ok bool) {
	expires, hasExpiry := secure.NumericDate(claims, "exp")
	notBefore, hasStart := secure.NumericDate(claims, "nbf")
	issued, hasIssued := secure.NumericDate(claims, "iat")
	audience, _ := claims["aud"].(string)
	jti, _ = claims["jti"].(string)
	switch {
	case claims["iss"] != clientID || claims["sub"] != clientID,
		audience != issuer && audience != issuer+"/token",
		!hasExpiry || !now.Before(expires) || expires.After(now.Add(MaxAssertionAge)),
		claims["nbf"] != nil && (!hasStart || notBefore.After(now.Add(ClockSkew))),
		claims["iat"] != nil && (!hasIssued || issued.After(now.Add(ClockSkew))),
		jti == "":
		return "", expires, false
	}
	return jti, expires, true
}
