package rest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	collection := "/accounts/" + d.Account.String() + "/apiKeys"
	answer := want(t, 201, d.Do(t, d.Site, "POST", collection, `{"name":"laptop","description":"of Jo","id":"MINE","secret":"mine","status":"DISABLED","tenant":{"href":"x"}}`))
	key := decode(t, answer)
	path, secret := "/apiKeys/"+key["id"].(string), key["secret"].(string)
	names := map[string]string{key["id"].(string): "<new key>", secret: "<secret>"}
	golden(t, "key", d, answer.Body, names)
	if answer.Header.Get("Location") != key["href"] || key["href"] != string(oauthtest.Base)+path {
		t.Errorf("the key is at %q and says %v", answer.Header.Get("Location"), key["href"])
	}
	if len(key["id"].(string)) != 26 || len(secret) != 43 {
		t.Errorf("the id is %v, the secret has %d characters", key["id"], len(secret))
	}
	if again := want(t, 200, d.Do(t, d.Site, "GET", path, nil)); again.Body != answer.Body {
		t.Errorf("it reads %s", again.Body)
	}
	t.Run("no body makes a key without a name", func(t *testing.T) {
		bare := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection, nil)))
		if bare["name"] != nil || bare["description"] != nil || bare["status"] != "ENABLED" {
			t.Errorf("the key is %v", bare)
		}
		want(t, 204, d.Do(t, d.Site, "DELETE", bare["href"].(string), nil))
	})
	t.Run("an update changes what it names", func(t *testing.T) {
		answer := want(t, 200, d.Do(t, d.Site, "POST", path, `{"status":"disabled","description":null,"secret":"mine","account":{"href":"x"}}`))
		changed := decode(t, answer)
		if changed["status"] != "DISABLED" || changed["description"] != nil || changed["name"] != "laptop" || changed["secret"] != secret {
			t.Errorf("the key is %v", changed)
		}
		if answer.Header.Get("Location") != key["href"] {
			t.Errorf("the location is %q", answer.Header.Get("Location"))
		}
		if got := want(t, 200, d.Do(t, d.Site, "GET", path, nil)); got.Body != answer.Body {
			t.Errorf("it reads %s", got.Body)
		}
		want(t, 200, d.Do(t, d.Site, "POST", path, answer.Body)) // the whole resource goes back
	})
	t.Run("what is wrong is refused", func(t *testing.T) {
		for body, code := range map[string]int{
			`{"status":"GONE"}`: 2003,
			`{"status":null}`:   2000,
			`{"name":"` + strings.Repeat("x", 256) + `"}`:         2008,
			`{"description":"` + strings.Repeat("x", 1001) + `"}`: 2008,
			`{"name":7}`:        2004,
			`{"name":"\u0000"}`: 2006,
			`{"nonsense":1}`:    2015,
			`[]`:                2006,
		} {
			refused(t, 400, code, d.Do(t, d.Site, "POST", path, body))
			if !strings.Contains(body, "status") {
				refused(t, 400, code, d.Do(t, d.Site, "POST", collection, body))
			}
		}
		refused(t, 415, 1101, d.Do(t, d.Site, "POST", path, url.Values{"name": {"x"}}))
		refused(t, 404, 404, d.Do(t, d.Site, "POST", "/accounts/"+d.Application.String()+"/apiKeys", nil))
		for _, nobody := range []string{"NOBODY", "'%20OR%20''='", "%00", strings.Repeat("A", 1000), "..%2f" + key["id"].(string)} {
			for _, method := range []string{"GET", "DELETE"} {
				refused(t, 404, 404, d.Do(t, d.Site, method, "/apiKeys/"+nobody, nil))
			}
			refused(t, 404, 404, d.Do(t, d.Site, "POST", "/apiKeys/"+nobody, `{"name":"x"}`))
		}
	})
	t.Run("the collection of an account", func(t *testing.T) {
		d.Clock.Move(time.Second)
		want(t, 201, d.Do(t, d.Site, "POST", collection, `{"name":"a phone"}`))
		for query, want := range map[string]string{"": "laptop,a phone", "?orderBy=name": "a phone,laptop",
			"?orderBy=status": "laptop,a phone", "?offset=1": "a phone", "?limit=1": "laptop"} {
			page := decode(t, d.Do(t, d.Site, "GET", collection+query, nil))
			var names []string
			for _, item := range page["items"].([]any) {
				names = append(names, item.(object)["name"].(string))
			}
			if got := strings.Join(names, ","); got != want || page["size"] != 2.0 {
				t.Errorf("%q returns %s of %v, want %s of 2", query, got, page["size"], want)
			}
		}
		refused(t, 400, 2105, d.Do(t, d.Site, "GET", collection+"?name=laptop", nil))
		for id, want := range map[string]float64{key["id"].(string): 1, d.Key: 0, "NOBODY": 0} {
			if page := decode(t, d.Do(t, d.Site, "GET", collection+"?id="+id, nil)); page["size"] != want {
				t.Errorf("the id %s finds %v", id, page)
			}
		}
		refused(t, 404, 404, d.Do(t, d.Site, "GET", "/accounts/"+d.Application.String()+"/apiKeys", nil))
		golden(t, "keys", d, d.Do(t, d.Site, "GET", collection+"?limit=1", nil).Body, names)
	})
	t.Run("a key of right shape that is not there is deleted", func(t *testing.T) {
		want(t, 204, d.Do(t, d.Site, "DELETE", "/apiKeys/"+strings.Repeat("A", 26), nil))
	})
	t.Run("a key whose id the operator chose is deleted", func(t *testing.T) {
		chosen := oauthapi.EnsureKey{Tenant: d.Tenant, Account: d.Account, ID: "FIRSTKEY", Secret: secure.Token(43)}
		if _, err := d.Service.EnsureKey(t.Context(), chosen); err != nil {
			t.Fatal(err)
		}
		want(t, 204, d.Do(t, d.Site, "DELETE", "/apiKeys/"+chosen.ID, nil))
		refused(t, 404, 404, d.Do(t, d.Site, "GET", "/apiKeys/"+chosen.ID, nil))
	})
	t.Run("a deleted key is gone at once", func(t *testing.T) {
		want(t, 204, d.Do(t, d.Site, "DELETE", path, nil))
		refused(t, 404, 404, d.Do(t, d.Site, "GET", path, nil))
		want(t, 204, d.Do(t, d.Site, "DELETE", path, nil))
		refused(t, 404, 404, d.Do(t, d.Site, "POST", path, `{"name":"x"}`))
	})
}

func TestKeysOfAnApplication(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := "/applications/" + d.Application.String() + "/apiKeys"
	key := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Account.String()+"/apiKeys", nil)))
	query := path + "?id=" + key["id"].(string)
	found := func(t *testing.T, n int, query string) {
		t.Helper()
		page := decode(t, want(t, 200, d.Do(t, d.Site, "GET", query, nil)))
		if items := page["items"].([]any); len(items) != n || page["size"] != float64(n) {
			t.Errorf("the page is %v, want %d keys", page, n)
		}
	}
	found(t, 1, query)
	golden(t, "keys-of-application", d, d.Do(t, d.Site, "GET", query, nil).Body,
		map[string]string{key["id"].(string): "<new key>", key["secret"].(string): "<secret>"})
	t.Run("a key that is not there, or not reached", func(t *testing.T) {
		found(t, 0, path+"?id=NOBODY")
		found(t, 0, path+"?id=*")
		found(t, 0, path+"?id="+key["id"].(string)[:20]+"*")
		found(t, 0, path+"?id="+strings.ToLower(key["id"].(string)))
		found(t, 0, path+"?id="+d.Key) // of an administrator
		foreign := d.NewSite(t)
		found(t, 0, path+"?id="+foreign.Key)
	})
	t.Run("nor one of a disabled account that is not reached", func(t *testing.T) {
		elsewhere := d.NewApplication(d.Tenant, d.NewDirectory(d.Tenant))
		d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
		found(t, 0, "/applications/"+elsewhere.String()+"/apiKeys?id="+key["id"].(string))
		d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled)
	})
	t.Run("whatever the status of the key, its account and its directory", func(t *testing.T) {
		want(t, 200, d.Do(t, d.Site, "POST", key["href"].(string), `{"status":"DISABLED"}`))
		found(t, 1, query)
		d.SetStatus(d.Tenant, d.Directory, directoryapi.Disabled)
		found(t, 1, query)
		d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
		found(t, 1, query)
		d.SetStatus(d.Tenant, d.Directory, directoryapi.Enabled)
		d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled)
	})
	t.Run("nobody is reached through a disabled application, or by no mapping", func(t *testing.T) {
		d.SetStatus(d.Tenant, d.Application, directoryapi.Disabled)
		found(t, 0, query)
		d.SetStatus(d.Tenant, d.Application, directoryapi.Enabled)
		d.Map(d.Tenant, d.Application)
		found(t, 0, query)
		d.Map(d.Tenant, d.Application, d.Directory)
		found(t, 1, query)
	})
	t.Run("without an id", func(t *testing.T) {
		refused(t, 400, 2101, d.Do(t, d.Site, "GET", path, nil))
		refused(t, 400, 2101, d.Do(t, d.Site, "GET", path+"?id=", nil))
		refused(t, 400, 2101, d.Do(t, d.Site, "GET", path+"?id", nil))
		refused(t, 400, 2102, d.Do(t, d.Site, "GET", query+"&id=x", nil))
	})
	t.Run("a page beyond the one key", func(t *testing.T) {
		page := decode(t, want(t, 200, d.Do(t, d.Site, "GET", query+"&offset=1", nil)))
		if len(page["items"].([]any)) != 0 || page["size"] != 1.0 {
			t.Errorf("the page is %v", page)
		}
	})
	t.Run("an account that was deleted", func(t *testing.T) {
		d.Delete(d.Tenant, d.Account)
		found(t, 0, query)
	})
	t.Run("an application that was deleted", func(t *testing.T) {
		d.Delete(d.Tenant, d.Application)
		refused(t, 404, 404, d.Do(t, d.Site, "GET", query, nil))
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := "/oAuthPolicies/" + d.Application.String()
	answer := want(t, 200, d.Do(t, d.Site, "GET", path, nil))
	golden(t, "policy", d, answer.Body, nil)
	d.Clock.Move(time.Minute)
	answer = want(t, 200, d.Do(t, d.Site, "POST", path, `{"accessTokenTtl":"PT30M","tokenEndpoint":{"href":"x"}}`))
	golden(t, "policy-changed", d, answer.Body, nil)
	if answer.Header.Get("Location") != string(oauthtest.Base)+path {
		t.Errorf("the location is %q", answer.Header.Get("Location"))
	}
	if again := want(t, 200, d.Do(t, d.Site, "GET", path, nil)); again.Body != answer.Body {
		t.Errorf("it reads %s", again.Body)
	}
	want(t, 200, d.Do(t, d.Site, "POST", path, answer.Body)) // the whole resource goes back
	for body, code := range map[string]int{
		`{"accessTokenTtl":"PT0S"}`:                                  2002,
		`{"accessTokenTtl":"P0D"}`:                                   2002,
		`{"accessTokenTtl":"1h"}`:                                    2002,
		`{"accessTokenTtl":"-PT1H"}`:                                 2002,
		`{"accessTokenTtl":""}`:                                      2000,
		`{"accessTokenTtl":null}`:                                    2000,
		`{"accessTokenTtl":"PT0.5S"}`:                                2009,
		`{"accessTokenTtl":"P11Y"}`:                                  2010,
		`{"accessTokenTtl":"P3654D"}`:                                2010,
		`{"accessTokenTtl":"PT999999999999999999999S"}`:              2010,
		`{"accessTokenTtl":3600}`:                                    2004,
		`{"refreshTokenTtl":"PT0.5S"}`:                               2009,
		`{"refreshTokenTtl":"P3653DT1S"}`:                            2010,
		`{"refreshTokenTtl":"P"}`:                                    2002,
		`{"refreshTokenTtl":"PT` + strings.Repeat("0", 300) + `1S"}`: 2008,
		`{"nonsense":"PT1H"}`:                                        2015,
		`{"accessTokenTtl":"PT5M","refreshTokenTtl":"never"}`:        2002,
	} {
		refused(t, 400, code, d.Do(t, d.Site, "POST", path, body))
	}
	if again := decode(t, d.Do(t, d.Site, "GET", path, nil)); again["accessTokenTtl"] != "PT30M" {
		t.Errorf("a refused change is kept: %v", again)
	}
	refused(t, 400, 2000, d.Do(t, d.Site, "POST", path, `{"revokeTokensOnPasswordChange":null}`))
	refused(t, 400, 2004, d.Do(t, d.Site, "POST", path, `{"revokeTokensOnPasswordChange":7}`))
	for _, on := range []bool{false, true} {
		body := fmt.Sprintf(`{"revokeTokensOnPasswordChange":%t}`, on)
		if got := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path, body))); got["revokeTokensOnPasswordChange"] != on {
			t.Errorf("%s returns %v", body, got)
		}
	}
	for _, body := range []string{`{"accessTokenTtl":"P10Y"}`, `{"accessTokenTtl":"P3653D"}`, `{"refreshTokenTtl":"PT0M"}`,
		`{"accessTokenTtl":"PT1S"}`, `{}`} {
		want(t, 200, d.Do(t, d.Site, "POST", path, body))
	}
	nobody := "/oAuthPolicies/" + d.Account.String()
	refused(t, 404, 404, d.Do(t, d.Site, "GET", nobody, nil))
	refused(t, 404, 404, d.Do(t, d.Site, "POST", nobody, `{"accessTokenTtl":"PT1H"}`))
	refused(t, 404, 404, d.Do(t, d.Site, "GET", "/oAuthPolicies/x", nil))
}

// Tenant isolation: every request of one tenant for a resource of another is answered as if the
// resource did not exist, and changes nothing.
func TestIsolation(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	stranger := d.NewSite(t)
	login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
	access := login["access_token"].(string)
	resource := decode(t, d.Do(t, d.Site, "GET", login["service_access_token_href"].(string), nil))
	refresh := "/refreshTokens/" + resource["expandedJwt"].(object)["claims"].(object)["rti"].(string)
	account, application, key := "/accounts/"+d.Account.String(), "/applications/"+d.Application.String(), "/apiKeys/"+d.Key
	own := decode(t, want(t, 200, d.Do(t, stranger, "POST", tokens(stranger), passwordForm())))

	for _, request := range []struct {
		method, path string
		body         any
	}{
		{"GET", login["service_access_token_href"].(string), nil},
		{"DELETE", login["service_access_token_href"].(string), nil},
		{"GET", refresh, nil},
		{"DELETE", refresh, nil},
		{"GET", account + "/accessTokens", nil},
		{"GET", account + "/refreshTokens", nil},
		{"GET", account + "/apiKeys", nil},
		{"POST", account + "/apiKeys", nil},
		{"GET", key, nil},
		{"POST", key, `{"status":"DISABLED"}`},
		{"DELETE", key, nil},
		{"GET", application + "/apiKeys?id=" + d.Key, nil},
		{"GET", application + "/authTokens/" + access, nil},
		{"GET", application + "/authTokens/" + own["access_token"].(string), nil},
		{"POST", application + "/oauth/token", passwordForm()},
		{"POST", application + "/oauth/token", refreshForm(login["refresh_token"].(string))},
		{"POST", application + "/oauth/token", refreshForm(own["refresh_token"].(string))},
		{"POST", application + "/oauth/token", url.Values{"grant_type": {"client_credentials"}, "client_id": {stranger.Key},
			"client_secret": {stranger.Secret.Reveal()}}},
		{"POST", application + "/oauth/token", url.Values{}},
		{"POST", application + "/oauth/revoke", url.Values{"token": {access}}},
		{"GET", "/oAuthPolicies/" + d.Application.String(), nil},
		{"POST", "/oAuthPolicies/" + d.Application.String(), `{"accessTokenTtl":"PT1S"}`},
		{"GET", "/accounts/" + stranger.Account.String() + "/accessTokens?application.href=" + oauthtest.Base.To("applications",
			d.Application), nil},
	} {
		t.Run(request.method+" "+strings.TrimPrefix(request.path, string(oauthtest.Base)), func(t *testing.T) {
			answer := d.Do(t, stranger, request.method, request.path, request.body)
			if request.method == "DELETE" { // answers the same for what is not there, and nothing happens
				want(t, 204, answer)
			} else {
				refused(t, 404, 404, answer)
			}
			if strings.Contains(answer.Body, d.Secret.Reveal()) {
				t.Error("the answer holds a secret")
			}
		})
	}
	t.Run("nothing has changed", func(t *testing.T) {
		want(t, 302, d.Do(t, d.Site, "GET", application+"/authTokens/"+access, nil))
		want(t, 200, d.Do(t, d.Site, "GET", refresh, nil))
		if k := decode(t, d.Do(t, d.Site, "GET", key, nil)); k["status"] != "ENABLED" || k["secret"] != d.Secret.Reveal() {
			t.Errorf("the key is %v", k)
		}
		if p := decode(t, d.Do(t, d.Site, "GET", "/oAuthPolicies/"+d.Application.String(), nil)); p["accessTokenTtl"] != "PT1H" {
			t.Errorf("the policy is %v", p)
		}
	})
	t.Run("a token of the other tenant is none here", func(t *testing.T) {
		path := "/applications/" + stranger.Application.String()
		refused(t, 400, 10017, d.Do(t, stranger, "GET", path+"/authTokens/"+access, nil))
		want(t, 200, d.Do(t, stranger, "POST", path+"/oauth/revoke", url.Values{"token": {access}}))
		want(t, 302, d.Do(t, d.Site, "GET", application+"/authTokens/"+access, nil))
	})
}

// An endpoint that does not exist, or a path that is written in another way than in the routes, is
// not found.
func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	for _, path := range []string{"/applications/" + d.Application.String() + "/authTokens", "/apiKeys", "/accessTokens", "/oAuthPolicies",
		"/accessTokens/x", "/AccessTokens/" + d.Account.String()} {
		refused(t, 404, 404, d.Do(t, d.Site, "GET", path, nil))
	}
	for _, token := range []secure.Secret{"a.b.c", "%2e%2e", "a%20b", "x%00y"} {
		refused(t, 400, 10017, d.Do(t, d.Site, "GET", "/applications/"+d.Application.String()+"/authTokens/"+token.Reveal(), nil))
	}
}
