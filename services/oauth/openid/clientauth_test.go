package openid_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
)

func TestPrivateKeyJWT(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	key := newKeyPair(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := service("Signer")
	in.TokenEndpointAuthMethod, in.JWKS = field.Some("private_key_jwt"), field.Some(json.RawMessage(set))
	p := newParty(t, d, d.Site, in)
	issuer := issuerOf(t, d, d.Site)
	now := d.Clock.Now()
	assertion := func(method jwt.SigningMethod, signer any, change map[string]any) openid.Call {
		claims := jwt.MapClaims{"iss": p.ClientID, "sub": p.ClientID, "aud": issuer, "exp": now.Add(time.Minute).Unix(),
			"jti": id.New(now).String()}
		for name, value := range change {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = "c1"
		text, err := token.SignedString(signer)
		if err != nil {
			t.Fatal(err)
		}
		return p.call("/token", "grant_type", "client_credentials", "client_assertion", text,
			"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	}
	good := assertion(jwt.SigningMethodES256, key, nil)
	p.token(good)
	p.refuse("an assertion that was used", "invalid_client", good)
	p.token(assertion(jwt.SigningMethodES256, key, map[string]any{"aud": issuer + "/token"}))
	p.token(assertion(jwt.SigningMethodES256, key, map[string]any{"nbf": now.Add(8 * time.Second).Unix()}))
	for name, change := range map[string]map[string]any{
		"an audience that is a list": {"aud": []string{issuer}},
		"another audience":           {"aud": "https://other.test"},
		"no audience":                {"aud": nil},
		"an expired one":             {"exp": now.Add(-time.Second).Unix()},
		"one without end":            {"exp": nil},
		"one of a long life":         {"exp": now.Add(time.Hour).Unix()},
		"one of the future":          {"nbf": now.Add(time.Minute).Unix()},
		"one without jti":            {"jti": nil},
		"one of another issuer":      {"iss": "x"},
		"one without subject":        {"sub": nil},
		"an end that is no number":   {"exp": "soon"},
		"an end beyond all time":     {"exp": 1e300},
	} {
		p.refuse(name, "invalid_client", assertion(jwt.SigningMethodES256, key, change))
	}
	p.refuse("another key", "invalid_client", assertion(jwt.SigningMethodES256, newKeyPair(t), nil))
	p.refuse("the public key as a secret", "invalid_client", assertion(jwt.SigningMethodHS256, set, nil))
	p.refuse("no signature", "invalid_client", assertion(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil))
}
