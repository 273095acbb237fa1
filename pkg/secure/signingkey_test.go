package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// pair makes a key pair of an algorithm, as it is read back from where it is sealed.
func pair(t *testing.T, algorithm string) (SigningKey, VerificationKey) {
	t.Helper()
	made, err := NewSigningKey("k1", algorithm)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	private, err := ParseSigningKey("k1", algorithm, encoded)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.JWK()
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParseVerificationKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func TestSigningKeys(t *testing.T) {
	for _, algorithm := range SigningAlgorithms {
		private, public := pair(t, algorithm)
		text, err := private.Sign(map[string]any{"typ": "at+jwt"}, Claims{"sub": "jo"})
		if err != nil {
			t.Fatal(err)
		}
		header, err := UnverifiedHeader(text)
		if err != nil || header["kid"] != "k1" || header["alg"] != algorithm || header["typ"] != "at+jwt" {
			t.Errorf("the header of %s is %v, %v", algorithm, header, err)
		}
		claims, err := public.Verify(text, algorithm)
		if err != nil || claims["sub"] != "jo" {
			t.Errorf("the JWT of %s has %v, %v", algorithm, claims, err)
		}
		for _, other := range append([]string{"none", "HS256", ""}, SigningAlgorithms...) {
			if _, err := public.Verify(text, other); other != algorithm && !errors.Is(err, ErrToken) {
				t.Errorf("a JWT of %s verified as %s returns %v, want %v", algorithm, other, err, ErrToken)
			}
		}
		if _, stranger := pair(t, algorithm); stranger.Thumbprint() == public.Thumbprint() {
			t.Error("two keys have one thumbprint")
		} else if _, err := stranger.Verify(text, algorithm); !errors.Is(err, ErrToken) {
			t.Errorf("another key of %s verifies with %v", algorithm, err)
		}
	}
}

// The public key of RS256 is known to everybody: a JWT that is signed with it as the secret of HS256 is none.
func TestAPublicKeyIsNoSecret(t *testing.T) {
	private, public := pair(t, RS256)
	jwk, err := private.JWK()
	if err != nil {
		t.Fatal(err)
	}
	for _, alg := range []string{"HS256", "none"} {
		token := jwt.NewWithClaims(jwt.GetSigningMethod(alg), Claims{"sub": "jo"})
		key := any([]byte(jwk))
		if alg == "none" {
			key = jwt.UnsafeAllowNoneSignatureType
		}
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := public.Verify(Secret(text), RS256); !errors.Is(err, ErrToken) {
			t.Errorf("a JWT of %s returns %v, want %v", alg, err, ErrToken)
		}
	}
}

func TestKeysThatVerifyNothing(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, jwk := range map[string]jose.JSONWebKey{
		"a short RSA key":           {Key: short.Public()},
		"a key of another curve":    {Key: curve.Public()},
		"a private key":             {Key: good},
		"a symmetric key":           {Key: []byte("secret")},
		"a key for encryption":      {Key: good.Public(), Use: "enc"},
		"a key of another alg":      {Key: good.Public(), Algorithm: RS256},
		"a key of a symmetric alg":  {Key: good.Public(), Algorithm: "HS256"},
		"a key of another key type": {Key: good.Public(), Algorithm: EdDSA},
	} {
		text, err := jwk.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseVerificationKey(text); !errors.Is(err, ErrToken) {
			t.Errorf("%s is read with %v, want %v", name, err, ErrToken)
		}
		set, err := json.Marshal(map[string]any{"keys": []any{json.RawMessage(text), jose.JSONWebKey{Key: good.Public(),
			KeyID: "good"}}})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := ParseKeySet(set)
		if private := !jwk.IsPublic(); private != (err != nil) || err == nil && (len(keys) != 1 || keys[0].ID() != "good") {
			t.Errorf("a set with %s is %v, %v", name, keys, err)
		}
	}
	if _, err := ParseKeySet([]byte(`{}`)); !errors.Is(err, ErrToken) {
		t.Errorf("no set is read with %v", err)
	}
}
