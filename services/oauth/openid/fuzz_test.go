package openid

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// FuzzClientAssertion checks that claims of any form are accepted only where they say what a client assertion must say.
func FuzzClientAssertion(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"iss":"c","sub":"c","aud":"https://id.test","exp":1060,"jti":"1"}`,
		`{"iss":"c","sub":"c","aud":["https://id.test"],"exp":1060,"jti":"1"}`,
		`{"iss":"c","sub":"c","aud":"https://id.test/token","exp":1e300,"jti":"1"}`,
		`{"iss":["c"],"sub":{},"aud":7,"exp":"x","jti":null,"nbf":-1}`,
	} {
		f.Add(seed)
	}
	now := time.Unix(1000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		claims := secure.Claims{}
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		jti, expires, err := checkAssertionClaims(claims, "c", "https://id.test", now)
		if err != nil {
			if apierr.From(err).Status != 401 {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		if jti == "" || claims["iss"] != "c" || claims["sub"] != "c" || !expires.After(now) ||
			expires.Sub(now) > maxAssertionAge {
			t.Fatalf("%s is accepted until %s", text, expires)
		}
	})
}

// FuzzProof checks that a proof of any form is refused as such, or has all that is needed.
func FuzzProof(f *testing.F) {
	for _, seed := range []string{"", "a.b.c", "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7fX0.e30.AA",
		strings.Repeat("e30.", 3)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseProof(secure.Secret(text))
		if err == nil && (p.jkt == "" || p.id == "" || p.method == "" || p.address == "") {
			t.Fatalf("%q is %+v", text, p)
		}
		if err != nil && apierr.From(err).Status != 400 {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// FuzzRedirectURI checks that a redirect URI leads where its parser says, and that another one than a registered one
// is none, but for the port of the own machine.
func FuzzRedirectURI(f *testing.F) {
	for _, seed := range []string{
		"https://shop.example.test/cb", "http://127.0.0.1:4711/cb", "http://localhost/cb", "com.example.app:/cb",
		"https://u@x.test/", "https://x.test\\@y.test/",
		"http://127.0.0.1.evil.test/cb", "http://[::1]:80/cb", "javascript:alert(1)", "https://x.test/#a", "//x.test",
		"http://127.0.0.1:80:90/cb",
	} {
		f.Add(seed)
	}
	registered := []string{"https://shop.example.test/cb", "http://127.0.0.1/cb", "http://[::1]:80/cb",
		"com.example.app:/cb"}
	f.Fuzz(func(t *testing.T, text string) {
		native := isRedirectURI(text, typeNative)
		if isRedirectURI(text, typeWeb) && !native {
			t.Fatalf("%q is for the web and not for native applications", text)
		}
		if native {
			u, err := url.Parse(text)
			if err != nil || u.User != nil || u.Fragment != "" || u.Scheme == "http" && !isOwnMachine(u.Hostname()) {
				t.Fatalf("%q is accepted: %v", text, err)
			}
		}
		matched := matchesRedirectURI(store.OpenIDClientSettings{ApplicationType: typeNative, RedirectURIs: registered}, text)
		u, err := url.Parse(text)
		if matched && (err != nil || u.Hostname() != "" && u.Hostname() != "shop.example.test" &&
			!isOwnMachine(u.Hostname())) {
			t.Fatalf("%q matches", text)
		}
	})
}
