package cells

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// jwt makes a token that nobody has signed.
func jwt(header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

const (
	application = "1a2b3c4d5e6f7G8H9I0J1K"
	account     = "2a2b3c4d5e6f7G8H9I0J1K"
	tenantID    = "3a2b3c4d5e6f7G8H9I0J1K"
	apiKey      = "ABCDEFGHJKMNPQRSTVWXYZ0123"
	mailed      = "zzzzzzzzzzzzzzzzzzzzzz" // larger than an id
)

func TestWhatARequestNames(t *testing.T) {
	t.Parallel()
	basic := func(user string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":secret")) }
	for what, c := range map[string]struct{ host, uri, authorization, want string }{
		"an API key": {"", "/v1/tenants/current", basic(apiKey), "key=" + apiKey},
		"an API key before an id": {"", "/v1/accounts/" + account + "?expand=groups", basic(apiKey),
			"key=" + apiKey + " id=" + account},
		"a client of an OpenID provider": {"", "/oidc/" + application + "/token", basic(account),
			"key=" + account + " id=" + account + " id=" + application},
		"a signed request": {"", "/v1/tenants/current",
			"SAuthc1 sauthc1Id=" + apiKey + "/20261128/nonce/sauthc1_request, sauthc1SignedHeaders=host, sauthc1Signature=00",
			"key=" + apiKey},
		"an access token": {"", "/v1/applications/" + application, "Bearer " + jwt(`{"kid":"`+apiKey+`"}`, `{}`),
			"key=" + apiKey + " id=" + application},
		"a token of DPoP by its issuer": {"", "/", "DPoP " + jwt(`{}`, `{"iss":"https://id.test/oidc/`+application+`"}`),
			"id=" + application + " host=id.test"},
		"the session token of a page": {"", "/v1/accounts", "Bearer " + jwt(`{"kid":"default","tid":"`+tenantID+`"}`, `{}`),
			"id=" + tenantID},
		"a request to the hosted login": {"", "/sso?jwtRequest=" + jwt(`{"kid":"`+apiKey+`"}`, `{"iss":"other"}`), "",
			"key=" + apiKey},
		"one without kid":       {"", "/sso?jwtRequest=" + jwt(`{}`, `{"iss":"`+apiKey+`"}`), "", "key=" + apiKey},
		"the answer of a login": {"", "/x?jwtResponse=" + jwt(`{"kid":"`+apiKey+`"}`, `{}`), "", "key=" + apiKey},
		"a reset": {"", "/passwordReset?sptoken=" + strings.ReplaceAll(jwt(`{"tid":"`+tenantID+`"}`, `{}`), ".", "%252E"), "",
			"id=" + tenantID},
		"a verification":               {"", "/emailVerificationTokens?sptoken=" + mailed, "", "id=" + mailed},
		"a login at a provider":        {"", "/sso/provider?state=" + jwt(`{"tid":"`+tenantID+`"}`, `{}`), "", "id=" + tenantID},
		"a state of somebody else":     {"", "/oidc/" + application + "/authorize?state=" + mailed, "", "id=" + application},
		"an OpenID provider":           {"", "/.well-known/oauth-authorization-server/oidc/" + application, "", "id=" + application},
		"a receipt of a text message":  {"", "/sms/receipts/" + tenantID + "/" + account, "", "id=" + tenantID + " id=" + account},
		"a Client API by its path":     {"", "/client/Clever-Otter/me", "", "host=clever-otter"},
		"a custom domain":              {"Login.Shop.test:443", "/", "", "host=login.shop.test"},
		"an escaped id":                {"", "/v1/accounts/%32a2b3c4d5e6f7G8H9I0J1K", "", "id=" + account},
		"an address":                   {"[::1]:443", "/", "", ""},
		"a path of no id":              {"", "/v1/accounts/" + mailed, "", ""},
		"Basic that cannot be read":    {"", "/", "Basic !", ""},
		"Basic with another character": {"", "/", basic("a b"), ""},
		"a kid that is no text":        {"", "/", "Bearer " + jwt(`{"kid":7}`, `{"iss":"`+apiKey+`"}`), "key=" + apiKey},
		"no JWT":                       {"", "/", "Bearer a.b", ""},
		"one that is too large":        {"", "/", "Bearer " + jwt(`{"kid":"`+apiKey+`"}`, strings.Repeat(" ", maxToken)), ""},
		"the same id twice":            {"", "/" + account + "/" + account, "", "id=" + account},
	} {
		r := request{host: c.host, uri: c.uri}
		if c.authorization != "" {
			r.authorization = []string{c.authorization}
		}
		var got []string
		for _, n := range r.names() {
			got = append(got, string(n.kind)+"="+n.value)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s names %q, want %q", what, strings.Join(got, " "), c.want)
		}
	}
	two := request{uri: "/", authorization: []string{basic(apiKey), basic(account)}}
	if found := two.names(); len(found) != 0 {
		t.Errorf("a request with two headers Authorization names %v", found)
	}
	var path strings.Builder
	for i := range 3 * maxNames {
		fmt.Fprintf(&path, "/%022d", i+1)
	}
	if found := (request{uri: path.String()}).names(); len(found) != maxNames {
		t.Errorf("a path of many ids has %d names, want %d", len(found), maxNames)
	}
}

func TestAProxyThatSendsNoHeadersSendsTheRequestItself(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://login.shop.test/v1/accounts/"+account, nil)
	want := names{{byID, account}, {byHost, "login.shop.test"}}
	if got := forwarded(r).names(); !slices.Equal(got, want) {
		t.Errorf("a request without X-Forwarded-Uri names %v, want %v", got, want)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("id.test", "/sso?jwtRequest="+jwt(`{}`, `{"iss":"`+apiKey+`"}`), "Basic YTpi")
	f.Add("id.test:443", "/v1/accounts/"+account, "SAuthc1 sauthc1Id=a/b/c/sauthc1_request")
	f.Fuzz(func(t *testing.T, host, uri, authorization string) {
		found := request{host: host, uri: uri, authorization: []string{authorization}}.names()
		if len(found) > maxNames {
			t.Errorf("%d names", len(found))
		}
		for _, n := range found {
			if n.value == "" || len(n.value) > maxName {
				t.Errorf("the name %q", n)
			}
		}
	})
}
