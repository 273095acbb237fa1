package connect

import (
	"bytes"
	"context"
	"crypto/subtle"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// clockSkew is how far the clock of a provider may be ahead.
const clockSkew = time.Minute

// verifyIDToken validates the id token of a login (OpenID Connect Core, section 3.1.3.7): its
// signature, issuer, time of issue and expiry, audience, authorized party and nonce, and that it belongs to the
// access token (at_hash).
func (s *providerLogin) verifyIDToken(ctx context.Context) error {
	config := &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: s.provider.algorithms, Now: s.now}
	token, err := oidc.NewVerifier(s.provider.Issuer, keySet{s.Client, s.provider.JWKS}, config).Verify(ctx, s.idToken)
	if err != nil {
		return s.providerError("its id token is not valid")
	}
	var claims map[string]any
	var raw rawClaims
	if err = token.Claims(&raw); err == nil {
		claims, err = decode(raw)
	}
	if err != nil || claims == nil || token.Subject == "" {
		return s.providerError("its id token makes no sense")
	}
	if token.IssuedAt.After(s.now().Add(clockSkew)) {
		return s.providerError("its id token was issued in the future; see that the clocks agree")
	}
	party := firstText(claims, "azp")
	if party == "" && len(token.Audience) == 1 {
		party = token.Audience[0]
	}
	if party != s.provider.ClientID || !slices.Contains(token.Audience, s.provider.ClientID) {
		return s.otherClientError()
	}
	if s.login.Nonce != "" && subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(s.login.Nonce.Reveal())) != 1 {
		return s.providerError("its id token is not of this login: the nonce differs")
	}
	if token.AccessTokenHash != "" && token.VerifyAccessToken(s.tokens.AccessToken.Reveal()) != nil {
		return s.providerError("its id token does not belong to its access token")
	}
	s.claims = claims
	return nil
}

// rawClaims is the undecoded JSON of claims.
type rawClaims []byte

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawClaims) UnmarshalJSON(text []byte) error {
	*r = bytes.Clone(text)
	return nil
}

// keySet verifies signatures with the provider's JWKS, which is cached. Where no cached key
// verifies a signature, it fetches the JWKS again: the provider may have rotated its keys before
// the cache expired.
type keySet struct {
	client  *Client
	address string
}

// VerifySignature implements oidc.KeySet.
func (k keySet) VerifySignature(ctx context.Context, jwt string) (payload []byte, err error) {
	for _, fresh := range []bool{false, true} {
		cached := &http.Client{Transport: cachedKeys{k, fresh}}
		if payload, err = oidc.NewRemoteKeySet(oidc.ClientContext(ctx, cached), k.address).
			VerifySignature(ctx, jwt); err == nil {
			return payload, nil
		}
	}
	return nil, err
}

// cachedKeys answers the request for the JWKS of a provider from the cache.
type cachedKeys struct {
	keySet
	fresh bool
}

// RoundTrip implements http.RoundTripper.
func (k cachedKeys) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := k.client.document(request.Context(), k.address, k.fresh)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}
