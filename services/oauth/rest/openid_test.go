package rest_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestSigningKeys(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	collection := "/tenants/" + d.Tenant.String() + "/signingKeys"
	listed := decode(t, want(t, 200, d.Do(t, d.Site, "GET", collection+"?orderBy=algorithm", nil)))
	if items := listed["items"].([]any); len(items) != 2 || items[0].(map[string]any)["algorithm"] != "ES256" {
		t.Errorf("the keys of a new tenant are %v", items)
	}
	made := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection, `{"algorithm":"EdDSA"}`)))
	if made["status"] != "NEXT" || made["kid"] == "" || made["activeAt"] != nil ||
		made["jwk"].(map[string]any)["crv"] != "Ed25519" {
		t.Errorf("the new key is %v", made)
	}
	path := made["href"].(string)
	want(t, 200, d.Do(t, d.Site, "GET", path, nil))
	refused(t, 409, 409, d.Do(t, d.Site, "POST", path, `{"status":"ACTIVE"}`))
	refused(t, 400, 2103, d.Do(t, d.Site, "POST", path+"?force=perhaps", `{"status":"ACTIVE"}`))
	if now := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path+"?force=true",
		`{"status":"ACTIVE"}`))); now["status"] != "ACTIVE" {
		t.Errorf("the forced key is %v", now)
	}
	refused(t, 400, 2000, d.Do(t, d.Site, "POST", collection, `{}`))
	refused(t, 400, 2003, d.Do(t, d.Site, "POST", collection, `{"algorithm":"HS256"}`))
	refused(t, 400, 2003, d.Do(t, d.Site, "POST", collection, `{"algorithm":"RS256","status":"ACTIVE"}`))
	other := d.NewSite(t)
	refused(t, 404, 404, d.Do(t, other, "GET", path, nil))
	refused(t, 404, 404, d.Do(t, other, "POST", path, `{"status":"RETIRED"}`))
	refused(t, 404, 404, d.Do(t, other, "GET", collection, nil))
	refused(t, 404, 404, d.Do(t, other, "POST", collection, `{"algorithm":"RS256"}`))
}

func TestOpenIDSettings(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := "/openIdSettings/" + d.Tenant.String()
	if v := decode(t, want(t, 200, d.Do(t, d.Site, "GET", path, nil))); v["signingKeyRotation"] != "P90D" {
		t.Errorf("the settings of a new tenant are %v", v)
	}
	for body, expected := range map[string]any{`{"signingKeyRotation":"P30D"}`: "P30D",
		`{"signingKeyRotation":null}`: nil} {
		want(t, 200, d.Do(t, d.Site, "POST", path, body))
		if v := decode(t, want(t, 200, d.Do(t, d.Site, "GET", path, nil))); v["signingKeyRotation"] != expected {
			t.Errorf("after %s the settings are %v", body, v)
		}
	}
	refused(t, 400, 2006, d.Do(t, d.Site, "POST", path, `{"signingKeyRotation":"soon"}`))
	refused(t, 400, 2009, d.Do(t, d.Site, "POST", path, `{"signingKeyRotation":"PT9M"}`))
	refused(t, 400, 2012, d.Do(t, d.Site, "POST", path, `{"signingKeyRotation":"P11Y"}`))
	refused(t, 404, 404, d.Do(t, d.NewSite(t), "GET", path, nil))
}

func TestOpenIDProvider(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := "/openIdProviders/" + d.Application.String()
	fresh := decode(t, want(t, 200, d.Do(t, d.Site, "GET", path, nil)))
	if fresh["issuer"] != "https://id.example.test/oidc/"+d.Application.String() || fresh["accessTokenTtl"] != "PT1H" ||
		fresh["status"] != "ENABLED" {
		t.Errorf("the provider of a new application is %v", fresh)
	}
	changed := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path,
		`{"signingAlgorithm":"ES256","idTokenTtl":"PT5M",
		"scopes":[{"name":"orders:read","resources":["https://api.example.test"]}],
		"claims":[{"claim":"login","source":"username","scopes":["orders:read"],"in":["ID_TOKEN"]}]}`)))
	if changed["signingAlgorithm"] != "ES256" || changed["idTokenTtl"] != "PT5M" ||
		changed["accessTokenTtl"] != "PT1H" || len(changed["scopes"].([]any)) != 1 {
		t.Errorf("the changed provider is %v", changed)
	}
	for body, code := range map[string]int{
		`{"status":"GONE"}`:                                                            2003,
		`{"signingAlgorithm":"none"}`:                                                  2003,
		`{"signingAlgorithm":null}`:                                                    2000,
		`{"idTokenTtl":"soon"}`:                                                        2006,
		`{"authorizationCodeTtl":"PT11M"}`:                                             2012,
		`{"refreshTokenIdleTtl":"P61D"}`:                                               2012,
		`{"refreshTokenGrace":"PT61S"}`:                                                2012,
		`{"scopes":[{"name":"openid"}]}`:                                               2006,
		`{"scopes":[{"name":"management"}]}`:                                           2006,
		`{"scopes":[{"name":"two words"}]}`:                                            2006,
		`{"scopes":[{"name":"a"},{"name":"a"}]}`:                                       2006,
		`{"scopes":[{"name":"a","resources":["/api"]}]}`:                               2006,
		`{"scopes":[{"name":"a","groups":[{"href":"https://x.test"}]}]}`:               2014,
		`{"claims":[{"claim":"sub","source":"username","in":["ID_TOKEN"]}]}`:           2006,
		`{"claims":[{"claim":"a","source":"password","in":["ID_TOKEN"]}]}`:             2006,
		`{"claims":[{"claim":"a","source":"username","in":["HEADER"]}]}`:               2003,
		`{"claims":[{"claim":"a","source":"username","in":[]}]}`:                       2000,
		`{"claims":[{"claim":"a","source":"email","scopes":["x"],"in":["USERINFO"]}]}`: 2006,
	} {
		refused(t, 400, code, d.Do(t, d.Site, "POST", path, body))
	}
	refused(t, 404, 404, d.Do(t, d.NewSite(t), "GET", path, nil))
	refused(t, 400, 400, d.Do(t, d.Site, "POST", "/openIdProviders/"+d.Console.String(), `{}`))
}

func TestOpenIDClients(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	collection := "/applications/" + d.Application.String() + "/openIdClients"
	made := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection,
		`{"name":"Shop","redirectUris":["https://shop.example.test/cb"]}`)))
	path := made["href"].(string)
	if made["applicationType"] != "web" || made["tokenEndpointAuthMethod"] != "client_secret_basic" ||
		made["requirePkce"] != true || made["scopes"] != nil {
		t.Errorf("the new client is %v", made)
	}
	if !strings.HasSuffix(path, "/openIdClients/"+made["clientId"].(string)) {
		t.Errorf("the client %s is at %s", made["clientId"], path)
	}
	service := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection,
		`{"name":"Nightly","applicationType":"service"}`)))
	if fmt.Sprint(service["grantTypes"]) != "[client_credentials]" || fmt.Sprint(service["responseTypes"]) != "[]" {
		t.Errorf("the new service is %v", service)
	}
	want(t, 201, d.Do(t, d.Site, "POST", collection,
		`{"name":"Television","applicationType":"native","grantTypes":["urn:ietf:params:oauth:grant-type:device_code"]}`))
	want(t, 201, d.Do(t, d.Site, "POST", collection,
		`{"name":"Phone","applicationType":"native","redirectUris":["com.example.app:/cb","http://127.0.0.1/cb"]}`))
	refused(t, 409, 2001, d.Do(t, d.Site, "POST", collection, `{"name":"SHOP"}`))
	// the whole resource goes back
	want(t, 200, d.Do(t, d.Site, "POST", path, want(t, 200, d.Do(t, d.Site, "GET", path, nil)).Body))
	for _, filter := range []string{"name=sho*", "clientId=" + made["clientId"].(string), "status=DISABLED"} {
		page := decode(t, want(t, 200, d.Do(t, d.Site, "GET", collection+"?"+filter, nil)))
		if found := page["size"].(float64); (found == 1) == (filter == "status=DISABLED") {
			t.Errorf("%s finds %v", filter, found)
		}
	}
	many := `"https://shop.example.test/` + strings.Join(make([]string, 51), `x","https://shop.example.test/`) + `"`
	for body, code := range map[string]int{
		`{"name":""}`:                                      2000,
		`{"applicationType":"mainframe"}`:                  2003,
		`{"grantTypes":["password"]}`:                      2003,
		`{"responseTypes":["token"]}`:                      2003,
		`{"tokenEndpointAuthMethod":"tls_client_auth"}`:    2003,
		`{"tokenEndpointAuthMethod":"none"}`:               2006,
		`{"tokenEndpointAuthMethod":"private_key_jwt"}`:    2006,
		`{"accessTokenTtl":"P11Y"}`:                        2012,
		`{"redirectUris":[` + many + `]}`:                  2010,
		`{"redirectUris":["http://shop.example.test/cb"]}`: 2006,
		`{"redirectUris":["com.example.app:/cb"]}`:         2006,
		`{"redirectUris":["https://*.example.test/cb"]}`:   2006,
		`{"redirectUris":["https://u@example.test/cb"]}`:   2006,
		`{"redirectUris":["https://example.test/cb#x"]}`:   2006,
		`{"redirectUris":["javascript:alert(1)"]}`:         2006,
		`{"jwksUri":"http://example.test/jwks"}`:           2006,
		`{"jwks":{"keys":[{"kty":"oct","k":"AAAA"}]}}`:     2006,
		`{"grantTypes":["client_credentials"]}`:            2006,
		`{"tokenExchange":"DELEGATION"}`:                   2006,
		`{"requirePkce":null}`:                             2000,
		`{"subjectType":"secret"}`:                         2003,
		`{"defaultMaxAge":-1}`:                             2009,
		`{"clientSecret":"mine"}`:                          2015,
	} {
		refused(t, 400, code, d.Do(t, d.Site, "POST", path, body))
	}
	want(t, 200, d.Do(t, d.Site, "POST", path, `{"jwksUri":"https://shop.example.test/jwks"}`))
	for _, body := range []string{`{"name":"x","applicationType":"browser","grantTypes":["client_credentials"],"responseTypes":[]}`,
		`{"name":"x","applicationType":"browser","requirePkce":false}`} {
		refused(t, 400, 2006, d.Do(t, d.Site, "POST", collection, body))
	}
	t.Run("secrets", func(t *testing.T) {
		secrets := path + "/secrets"
		first := decode(t, want(t, 201, d.Do(t, d.Site, "POST", secrets, nil)))
		want(t, 201, d.Do(t, d.Site, "POST", secrets, nil))
		refused(t, 409, 2001, d.Do(t, d.Site, "POST", secrets, nil))
		listed := want(t, 200, d.Do(t, d.Site, "GET", secrets, nil))
		if decode(t, listed)["size"] != float64(2) || strings.Contains(listed.Body, first["secret"].(string)) ||
			len(first["secret"].(string)) != 43 {
			t.Errorf("the secrets are %s", listed.Body)
		}
		want(t, 204, d.Do(t, d.Site, "DELETE", first["href"].(string), nil))
		want(t, 204, d.Do(t, d.Site, "DELETE", first["href"].(string), nil))
		want(t, 201, d.Do(t, d.Site, "POST", secrets, nil))
	})
	other := d.NewSite(t)
	for _, method := range []string{"GET", "POST"} {
		refused(t, 404, 404, d.Do(t, other, method, path, map[string]any{"POST": `{"name":"x"}`}[method]))
		refused(t, 404, 404, d.Do(t, other, method, path+"/secrets", nil))
		refused(t, 404, 404, d.Do(t, other, method, collection, map[string]any{"POST": `{"name":"x"}`}[method]))
	}
	want(t, 204, d.Do(t, other, "DELETE", path, nil))
	want(t, 200, d.Do(t, d.Site, "GET", path, nil))
	want(t, 204, d.Do(t, d.Site, "DELETE", path, nil))
	refused(t, 404, 404, d.Do(t, d.Site, "GET", path, nil))
	refused(t, 400, 400, d.Do(t, d.Site, "POST", "/applications/"+d.Console.String()+"/openIdClients", `{"name":"x"}`))
}

// raw sends a request as the gateway forwards one without an API key: without a tenant.
func raw(t *testing.T, d *oauthtest.Deployment, method, path, form string, headers ...string) oauthtest.Answer {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form))
	if form != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return d.Send(t, oauthtest.Site{}, request)
}

func TestOpenIDEndpoints(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	base := "/oidc/" + d.Application.String()
	issuer := "https://id.example.test" + base
	document := want(t, 200, raw(t, d, "GET", base+"/.well-known/openid-configuration", ""))
	metadata := want(t, 200, raw(t, d, "GET", "/.well-known/oauth-authorization-server"+base, "", "Origin",
		"https://any.test"))
	if document.Body != metadata.Body || decode(t, document)["issuer"] != issuer || decode(t,
		document)["token_endpoint"] != issuer+"/token" {
		t.Errorf("the documents are %s and %s", document.Body, metadata.Body)
	}
	if document.Header.Get("Cache-Control") != "public, max-age=300" ||
		metadata.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("the headers are %v", metadata.Header)
	}
	keys := want(t, 200, raw(t, d, "GET", base+"/jwks", ""))
	if len(decode(t, keys)["keys"].([]any)) != 2 {
		t.Errorf("the keys are %s", keys.Body)
	}
	again := httptest.NewRequestWithContext(t.Context(), "GET", base+"/jwks", nil) // the description has no 304
	again.Header.Set("If-None-Match", keys.Header.Get("ETag"))
	again.Header.Set(caller.Header, d.Signer.Sign(caller.Caller{RequestID: "a-request"}))
	unchanged, err := d.HTTP.Test(again)
	if err != nil {
		t.Fatal(err)
	}
	if err := unchanged.Body.Close(); err != nil || unchanged.StatusCode != 304 {
		t.Errorf("the keys that a client knows are answered %d, %v", unchanged.StatusCode, err)
	}
	want(t, 404, raw(t, d, "GET", "/oidc/"+d.Account.String()+"/jwks", ""))
	want(t, 404, raw(t, d, "GET", "/oidc/x/.well-known/openid-configuration", ""))

	client := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/applications/"+d.Application.String()+"/openIdClients",
		`{"name":"Nightly","applicationType":"service"}`)))
	secret := decode(t, want(t, 201, d.Do(t, d.Site, "POST", client["href"].(string)+"/secrets", nil)))["secret"].(string)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(client["clientId"].(string)+":"+secret))
	issued := want(t, 200, raw(t, d, "POST", base+"/token", "grant_type=client_credentials", "Authorization", basic))
	token := decode(t, issued)["access_token"].(string)
	if issued.Header.Get("Cache-Control") != "no-store" || decode(t, issued)["token_type"] != "Bearer" {
		t.Errorf("the answer is %v, %s", issued.Header, issued.Body)
	}
	active := func() any {
		t.Helper()
		return decode(t, want(t, 200, raw(t, d, "POST", base+"/introspect", "token="+token, "Authorization",
			basic)))["active"]
	}
	if active() != true {
		t.Error("a new token is not active")
	}
	used := decode(t, want(t, 200, d.Do(t, d.Site, "GET", client["href"].(string)+"/secrets", nil)))
	if used["items"].([]any)[0].(map[string]any)["lastUsedAt"] == nil {
		t.Errorf("the secret was used: %v", used)
	}
	failed := func(what string, status int, code string, a oauthtest.Answer) {
		t.Helper()
		body := decode(t, want(t, status, a))
		if body["error"] != code || body["error_description"] == "" || !strings.HasPrefix(body["error_uri"].(string),
			"https://id.example.test/errors/") ||
			a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s is answered with %v, %s", what, a.Header, a.Body)
		}
	}
	wrong := raw(t, d, "POST", base+"/token", "grant_type=client_credentials", "Authorization", "Basic eDp5")
	failed("a wrong client", 401, "invalid_client", wrong)
	if !strings.HasPrefix(wrong.Header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("WWW-Authenticate is %q", wrong.Header.Get("WWW-Authenticate"))
	}
	failed("a grant that is not there", 400, "unsupported_grant_type", raw(t, d, "POST", base+"/token", "grant_type=x",
		"Authorization", basic))
	failed("a field twice", 400, "invalid_request", raw(t, d, "POST", base+"/token", "grant_type=x&grant_type=x",
		"Authorization", basic))
	failed("no form", 400, "invalid_request", raw(t, d, "POST", base+"/token?grant_type=client_credentials", "",
		"Authorization", basic))
	failed("two credentials", 400, "invalid_request", raw(t, d, "POST", base+"/token", "x=y", "Authorization", basic,
		"Authorization", basic))
	failed("no token", 401, "invalid_token", raw(t, d, "GET", base+"/userinfo", ""))
	failed("a token without an account", 403, "insufficient_scope", raw(t, d, "GET", base+"/userinfo", "",
		"Authorization", "bearer "+token))
	if wrong := raw(t, d, "GET", base+"/userinfo", "", "Authorization",
		"Bearer x"); !strings.Contains(wrong.Header.Get("WWW-Authenticate"), `Bearer error="invalid_token"`) {
		t.Errorf("WWW-Authenticate is %q", wrong.Header.Get("WWW-Authenticate"))
	}
	want(t, 200, raw(t, d, "POST", base+"/revoke", "token="+token, "Authorization", basic))
	want(t, 200, raw(t, d, "POST", base+"/revoke", "token="+token, "Authorization", basic))
	if active() != false {
		t.Error("a revoked token is active")
	}
	t.Run("the gateway learns whose call it is, for the limits of clients", func(t *testing.T) {
		public := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/applications/"+d.Application.String()+"/openIdClients",
			`{"name":"Public","applicationType":"browser","redirectUris":["https://page.example.test/cb"]}`)))
		owner, err := id.Parse(client["clientId"].(string))
		if err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			answer oauthtest.Answer
			found  bool
		}{
			"a client":                       {issued, true},
			"a client with a wrong grant":    {raw(t, d, "POST", base+"/token", "grant_type=x", "Authorization", basic), true},
			"a token without its scope":      {raw(t, d, "GET", base+"/userinfo", "", "Authorization", "bearer "+decode(t, issued)["access_token"].(string)), false},
			"a wrong secret":                 {wrong, false},
			"a client without a secret":      {raw(t, d, "POST", base+"/token", "grant_type=x&client_id="+public["clientId"].(string)), false},
			"a client that names a bad text": {raw(t, d, "POST", base+"/token", "grant_type=x&client_id="+public["clientId"].(string), "Authorization", "Bearer x"), false},
		} {
			found, ok := caller.ParseClient([]byte(test.answer.Header.Get(caller.ClientHeader)))
			if ok != test.found || ok && found != (id.Ref{Tenant: d.Tenant, ID: owner}) {
				t.Errorf("%s is named as %v, %v", name, found, ok)
			}
		}
	})
	t.Run("CORS", func(t *testing.T) {
		want(t, 201, d.Do(t, d.Site, "POST", "/applications/"+d.Application.String()+"/openIdClients",
			`{"name":"Page","applicationType":"browser","redirectUris":["https://page.example.test/cb"]}`))
		for origin, allowed := range map[string]string{"https://page.example.test": "https://page.example.test",
			"https://evil.test": "", "null": ""} {
			preflight := want(t, 204, raw(t, d, "OPTIONS", base+"/token", "", "Origin", origin,
				"Access-Control-Request-Method", "POST"))
			if got := preflight.Header.Get("Access-Control-Allow-Origin"); got != allowed ||
				preflight.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s is allowed %q", origin, got)
			}
		}
	})
}

func TestClientsHaveCustomData(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	client := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/applications/"+d.Application.String()+"/openIdClients",
		`{"name":"Shop","redirectUris":["https://shop.test/cb"],"customData":{"team":"web","n":1.50}}`)))
	path := "/openIdClients/" + client["clientId"].(string)
	if got := decode(t, d.Do(t, d.Site, "GET", path+"/customData", nil)); got["team"] != "web" {
		t.Errorf("the customData is %v", got)
	}
	d.Clock.Move(time.Minute)
	changed := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path, `{"customData":{"seats":3}}`)))
	if changed["modifiedAt"] != client["modifiedAt"] {
		t.Error("a change of customData alone changes the client")
	}
	want(t, 204, d.Do(t, d.Site, "DELETE", path+"/customData/n", nil))
	merged := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path+"/customData", `{"team":"shop"}`)))
	if merged["team"] != "shop" || merged["seats"] != 3.0 || merged["n"] != nil {
		t.Errorf("the merged customData is %v", merged)
	}
	stranger := d.NewSite(t)
	refused(t, 404, 404, d.Do(t, stranger, "GET", path+"/customData", nil))
	refused(t, 404, 404, d.Do(t, stranger, "POST", path+"/customData", `{"a":1}`))
	want(t, 204, d.Do(t, d.Site, "DELETE", path, nil))
	refused(t, 404, 404, d.Do(t, d.Site, "GET", path+"/customData", nil))
	kept, err := pg.Value[int](t.Context(), d.DB, `SELECT count(*) FROM custom_data`)
	if err != nil || kept != 0 {
		t.Errorf("%d documents outlive their client, %v", kept, err)
	}
}
