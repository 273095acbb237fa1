package openid

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
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
		jti, expires, ok := relyingparty.CheckAssertion(claims, "c", "https://id.test", now)
		if !ok {
			return
		}
		if jti == "" || claims["iss"] != "c" || claims["sub"] != "c" || !expires.After(now) ||
			expires.Sub(now) > relyingparty.MaxAssertionAge {
			t.Fatalf("%s is accepted until %s", text, expires)
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
		native := relyingparty.IsRedirectURI(text, relyingparty.TypeNative)
		if relyingparty.IsRedirectURI(text, relyingparty.TypeWeb) && !native {
			t.Fatalf("%q is for the web and not for native applications", text)
		}
		if native {
			u, err := url.Parse(text)
			if err != nil || u.User != nil || u.Fragment != "" || u.Scheme == "http" && !relyingparty.IsOwnMachine(u.Hostname()) {
				t.Fatalf("%q is accepted: %v", text, err)
			}
		}
		matched := relyingparty.MatchesRedirectURI(store.OpenIDClientSettings{ApplicationType: relyingparty.TypeNative,
			RedirectURIs: registered}, text)
		u, err := url.Parse(text)
		if matched && (err != nil || u.Hostname() != "" && u.Hostname() != "shop.example.test" &&
			!relyingparty.IsOwnMachine(u.Hostname())) {
			t.Fatalf("%q matches", text)
		}
	})
}

// FuzzRequestObject checks that the claims of a request object of any form are refused as such, or bind it to its
// client, its issuer and its time, without a request within.
func FuzzRequestObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"iss":"c","client_id":"c","aud":"https://id.test","nbf":1000,"exp":1060,"scope":"openid"}`,
		`{"iss":"c","client_id":"c","aud":["https://id.test"],"nbf":1000,"exp":1060,"max_age":1.5,"claims":{"userinfo":{}}}`,
		`{"iss":"c","client_id":"c","aud":"https://id.test","nbf":-1,"exp":1e300,"request":"x"}`,
	} {
		f.Add(seed)
	}
	now := time.Unix(1000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		claims := secure.Claims{}
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		p, err := objectParameters(claims, "c", "https://id.test", now)
		if err != nil {
			if apierr.From(err).Fields["error"] != "invalid_request_object" {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		if p["client_id"] != "c" || claims["iss"] != "c" || p["request"] != "" || p["request_uri"] != "" {
			t.Fatalf("%s is accepted as %v", text, p)
		}
	})
}

// FuzzAuthorizationParameters checks that parameters of any form are read once each, and that a redirect URI which is
// not registered gets nothing.
func FuzzAuthorizationParameters(f *testing.F) {
	for _, seed := range []string{
		"client_id=c&redirect_uri=https://shop.example.test/cb&scope=openid", "redirect_uri=https://evil.test",
		"redirect_uri=https://shop.example.test/cb&redirect_uri=https://evil.test", "scope=a&scope=openid", "state=%00",
	} {
		f.Add(seed)
	}
	settings := store.OpenIDClientSettings{ApplicationType: "web", RedirectURIs: []string{"https://shop.example.test/cb"}}
	f.Fuzz(func(t *testing.T, query string) {
		sent, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		p, repeated := readParameters(sent, authorizationParameters)
		for name, value := range p {
			if len(sent[name]) != 1 || value == "" {
				t.Fatalf("%s of %q is %q", name, query, value)
			}
		}
		uri, named, err := redirectOf(store.OpenIDClient{Settings: settings}, p, repeated)
		if err == nil && uri != settings.RedirectURIs[0] || err != nil && (uri != "" || named) {
			t.Fatalf("%q leads to %q, %v", query, uri, err)
		}
	})
}
