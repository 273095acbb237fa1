package openid

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// maxObjectAge bounds the lifetime of a request object, and how far its beginning is back.
const maxObjectAge = time.Hour

var errObject = refuse("invalid_request_object",
	"the request object must be signed by a key of the client with its requestObjectSigningAlg, have iss and client_id "+
		"of the client, aud of the issuer, nbf and exp within %s of each other and of now, and "+
		"parameters that are texts", maxObjectAge)

// readObject replaces the parameters of a request by those of its signed request object. Those beside it have no
// effect, but that client_id must be the same (RFC 9101, section 6.3).
func (s *Service) readObject(ctx context.Context, r *authorizationRequest) error {
	text := secure.Secret(r.parameters["request"])
	if len(text) > maxObject {
		return errObject
	}
	header, err := secure.UnverifiedHeader(text)
	v := r.client.Settings
	switch {
	case err != nil:
		return errObject
	case header["alg"] == "none" || v.JWKS == nil && v.JWKSURI == nil:
		return refuse("request_not_supported", "a request object must be signed by a key of the client")
	}
	claims, err := s.verifyByClient(ctx, r.issuer, r.client, text, v.RequestObjectSigningAlg)
	if apierr.IsRefusal(err) {
		return errObject
	}
	if err != nil {
		return err
	}
	p, err := objectParameters(claims, r.client.ClientID, r.url, s.Now())
	if err != nil {
		return err
	}
	r.parameters, r.repeated, r.signed = p, nil, true
	return nil
}

// objectParameters returns the parameters of a request object whose signature is valid.
func objectParameters(claims secure.Claims, clientID, issuer string, now time.Time) (parameters, error) {
	expires, hasExpiry := secure.NumericDate(claims, "exp")
	begins, hasBeginning := secure.NumericDate(claims, "nbf")
	audience, err := claims.GetAudience()
	_, hasURI := claims["request_uri"]
	_, hasObject := claims["request"]
	switch {
	case err != nil, claims["iss"] != clientID || claims["client_id"] != clientID || hasURI || hasObject,
		claims["sub"] == clientID, // a client assertion
		!slices.Contains(audience, issuer),
		!hasExpiry || !hasBeginning || expires.Sub(begins) > maxObjectAge,
		!now.Before(expires), begins.After(now.Add(relyingparty.ClockSkew)), begins.Before(now.Add(-maxObjectAge)):
		return nil, errObject
	}
	p := parameters{}
	for _, name := range authorizationParameters {
		text, ok := parameterText(name, claims[name])
		if !ok {
			return nil, errObject
		}
		if text != "" {
			p[name] = text
		}
	}
	return p, nil
}

// parameterText returns a member of a request object as a parameter: texts, the number max_age, and the object claims.
func parameterText(name string, value any) (string, bool) {
	switch value := value.(type) {
	case nil:
		return "", true
	case string:
		return value, true
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), name == "max_age"
	case map[string]any:
		text, err := json.Marshal(value)
		return string(text), err == nil && name == "claims"
	}
	return "", false
}
