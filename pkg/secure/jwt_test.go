package secure

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// The worked check of docs/interface/oauth.md#token-contents: the members
// stand in another order there, so the signature is compared by parsing it.
const worked = "eyJraWQiOiJNeUtleUlkIiwic3R0IjoiYWNjZXNzIiwiYWxnIjoiSFMyNTYifQ." +
	"eyJqdGkiOiI1ZVhuSG1KOW0za1V3MlFwN3NWYWJjIiwiaWF0IjoxNzA4MDAwMDAwLCJpc3MiOiJodHRwczovL2xvY2FsaG9zdC92MS9hcHBsaWNhdGlvbnMvNFh5NyIsInN1YiI6Imh0dHBzOi8vbG9jYWxob3N0L3YxL2FjY291bnRzLzhBYjkiLCJleHAiOjE3MDgwMDM2MDAsInJ0aSI6IjNyVGtMbThRdzJYeVowYUJjRGVGZ0gifQ." +
	"Dl9u8ascJfD-LxEG8DsPotQ9nNE_Snehde9b0adbvDY"

func keyOf(secret Secret) func(map[string]any, Claims) (Secret, error) {
	return func(map[string]any, Claims) (Secret, error) { return secret, nil }
}

func TestTheWorkedTokenVerifies(t *testing.T) {
	header, claims, err := ParseJWT(worked, keyOf("MyKeySecret"))
	if err != nil || header["kid"] != "MyKeyId" || claims["rti"] != "3rTkLm8Qw2XyZ0aBcDeFgH" {
		t.Fatalf("ParseJWT = %v, %v, %v", header, claims, err)
	}
	if _, _, err := ParseJWT(worked, keyOf("AnotherSecret")); err == nil {
		t.Fatal("the token verifies under another secret")
	}
	if _, _, err := ParseJWT(strings.TrimSuffix(worked, "Y")+"Z", keyOf("MyKeySecret")); err == nil {
		t.Fatal("the token verifies with another last character")
	}
}

func TestOnlyHS256IsAccepted(t *testing.T) {
	secret := Secret("MyKeySecret")
	claims := jwt.MapClaims{"sub": "x"}
	none, _ := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	hs512, _ := jwt.NewWithClaims(jwt.SigningMethodHS512, claims).SignedString([]byte(secret))
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rs256, _ := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(private)
	for name, token := range map[string]string{"none": none, "HS512": hs512, "RS256": rs256} {
		if _, _, err := ParseJWT(token, keyOf(secret)); err == nil {
			t.Errorf("a token with alg %s is accepted", name)
		}
	}
	ours, err := SignJWT(map[string]any{"kid": "k", "stt": "access"}, Claims{"sub": "x"}, secret)
	if err != nil {
		t.Fatal(err)
	}
	if header, claims, err := ParseJWT(ours, keyOf(secret)); err != nil || header["stt"] != "access" || claims["sub"] != "x" {
		t.Fatalf("ParseJWT of our own = %v, %v, %v", header, claims, err)
	}
}

func FuzzParseJWT(f *testing.F) {
	f.Add(worked)
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, err := ParseJWT(token, keyOf("another secret than that of any seed")); err == nil {
			t.Fatalf("%q verifies under a secret that never signed it", token)
		}
	})
}
