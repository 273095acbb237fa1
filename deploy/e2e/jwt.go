package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// SignJWT returns a token of the claims, signed with HMAC-SHA-256 whatever the header
// names. A claim that is nil is left out; json.RawMessage("null") is one that is null.
func SignJWT(header, claims Object, secret string) string {
	present := Object{}
	for name, value := range claims {
		if value != nil {
			present[name] = value
		}
	}
	text := encodePart(header) + "." + encodePart(present)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac([]byte(secret), text))
}

func encodePart(part Object) string {
	raw, err := json.Marshal(part)
	if err != nil {
		panic("a scenario signs what is no JSON: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Claims reads a token without its key.
func Claims(t testing.TB, token string) Object {
	t.Helper()
	claims, err := ReadClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// ReadClaims is Claims outside of a test.
func ReadClaims(token string) (claims Object, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q is no JWT", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	return claims, err
}
