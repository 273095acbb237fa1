package rest_test

import (
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// register sends a JSON body to a registration endpoint as the gateway does.
func register(t *testing.T, d *oauthtest.Deployment, method, path, body, token string) oauthtest.Answer {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return d.Send(t, oauthtest.Site{}, request)
}

func TestDynamicClientRegistration(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	endpoint, provider := "/oidc/"+d.Application.String()+"/register", "/openIdProviders/"+d.Application.String()
	discovery := func() map[string]any {
		t.Helper()
		return decode(t, want(t, 200, raw(t, d, "GET", "/oidc/"+d.Application.String()+"/.well-known/openid-configuration", "")))
	}
	metadata := `{"client_name":"Assistant","redirect_uris":["https://assistant.example.test/cb"],
		"grant_types":["authorization_code","refresh_token"],"scope":"openid profile","software_version":"7"}`
	want(t, 404, register(t, d, "POST", endpoint, metadata, ""))
	if discovery()["registration_endpoint"] != nil {
		t.Error("the discovery names an endpoint that is off")
	}
	want(t, 200, d.Do(t, d.Site, "POST", provider, `{"clientRegistration":"OPEN"}`))
	if discovery()["registration_endpoint"] != "https://id.example.test"+endpoint {
		t.Errorf("the registration endpoint is %v", discovery()["registration_endpoint"])
	}
	made := decode(t, want(t, 201, register(t, d, "POST", endpoint, metadata, "")))
	clientID, secret, access := made["client_id"].(string), made["client_secret"].(string),
		made["registration_access_token"].(string)
	if made["client_secret_expires_at"] != 0.0 || made["scope"] != "openid profile" || made["client_name"] != "Assistant" ||
		made["token_endpoint_auth_method"] != "client_secret_basic" || made["software_version"] != nil ||
		made["registration_client_uri"] != "https://id.example.test"+endpoint+"/"+clientID {
		t.Errorf("the registration is answered with %v", made)
	}
	client := decode(t, want(t, 200, d.Do(t, d.Site, "GET", "/openIdClients/"+clientID, nil)))
	if client["consent"] != "REQUIRED" {
		t.Errorf("the user of a registered client is not asked: %v", client)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(clientID+":"+secret))
	refusedCode := decode(t, raw(t, d, "POST", "/oidc/"+d.Application.String()+"/token",
		"grant_type=authorization_code&code=x", "Authorization", basic))
	if refusedCode["error"] != "invalid_grant" {
		t.Errorf("the registered client with its secret gets %v", refusedCode)
	}
	again := decode(t, want(t, 201, register(t, d, "POST", endpoint, metadata, "")))
	if again["client_name"] != "Assistant ("+again["client_id"].(string)+")" {
		t.Errorf("a second client of the name is called %v", again["client_name"])
	}

	at := endpoint + "/" + clientID
	if read := decode(t, want(t, 200, register(t, d, "GET", at, "", access))); read["client_secret"] != nil ||
		read["registration_access_token"] != access {
		t.Errorf("the registration is read as %v", read)
	}
	changed := decode(t, want(t, 200, register(t, d, "PUT", at, `{"client_id":"`+clientID+`","client_name":"Helper",
		"redirect_uris":["https://assistant.example.test/other"]}`, access)))
	if changed["client_name"] != "Helper" || changed["scope"] != nil || len(changed["grant_types"].([]any)) != 1 {
		t.Errorf("the replaced metadata are %v", changed)
	}
	for name, body := range map[string]string{
		"another client_id":     `{"client_id":"x","redirect_uris":["https://a.example.test/"]}`,
		"another secret":        `{"client_id":"` + clientID + `","client_secret":"x","redirect_uris":["https://a.example.test/"]}`,
		"another method":        `{"client_id":"` + clientID + `","token_endpoint_auth_method":"none","redirect_uris":["https://a.example.test/"]}`,
		"the name of the other": `{"client_id":"` + clientID + `","client_name":"` + again["client_name"].(string) + `","redirect_uris":["https://a.example.test/"]}`,
	} {
		answer := register(t, d, "PUT", at, body, access)
		if decode(t, want(t, 400, answer))["error"] != "invalid_client_metadata" {
			t.Errorf("%s is answered with %s", name, answer.Body)
		}
	}
	for name, a := range map[string]oauthtest.Answer{
		"no token":                register(t, d, "GET", at, "", ""),
		"the token of the other":  register(t, d, "GET", at, "", again["registration_access_token"].(string)),
		"an unknown client":       register(t, d, "GET", endpoint+"/"+d.Account.String(), "", access),
		"a deletion by no token":  register(t, d, "DELETE", at, "", ""),
		"a client of the manager": register(t, d, "GET", endpoint+"/"+managed(t, d), "", access),
	} {
		if want(t, 401, a); !strings.Contains(a.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s is answered with %v", name, a.Header)
		}
	}
	want(t, 204, register(t, d, "DELETE", at, "", access))
	want(t, 401, register(t, d, "GET", at, "", access))
	refused(t, 404, 404, d.Do(t, d.Site, "GET", "/openIdClients/"+clientID, nil))
}

// managed makes a client by the management API.
func managed(t *testing.T, d *oauthtest.Deployment) string {
	t.Helper()
	return decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/applications/"+d.Application.String()+"/openIdClients",
		`{"name":"Managed"}`)))["clientId"].(string)
}

func TestClientMetadataThatAreRefused(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	want(t, 200, d.Do(t, d.Site, "POST", "/openIdProviders/"+d.Application.String(), `{"clientRegistration":"OPEN"}`))
	endpoint := "/oidc/" + d.Application.String() + "/register"
	for body, code := range map[string]string{
		`[]`: "invalid_client_metadata",
		`{"redirect_uris":"https://a.example.test/"}`:                                              "invalid_client_metadata",
		`{"redirect_uris":["https://a.example.test/"],"client_name":7}`:                            "invalid_client_metadata",
		`{"redirect_uris":["https://a.example.test/"],"grant_types":["client_credentials"]}`:       "invalid_client_metadata",
		`{"redirect_uris":["https://a.example.test/"],"grant_types":["password"]}`:                 "invalid_client_metadata",
		`{"redirect_uris":["https://a.example.test/"],"application_type":"service"}`:               "invalid_client_metadata",
		`{"redirect_uris":["https://a.example.test/"],"token_endpoint_auth_method":"self_signed"}`: "invalid_client_metadata",
		`{"redirect_uris":["https://a.example.test/"],"jwks_uri":"file:///etc/passwd"}`:            "invalid_client_metadata",
		`{}`:                                      "invalid_redirect_uri",
		`{"redirect_uris":["javascript:alert"]}`:  "invalid_redirect_uri",
		`{"redirect_uris":["http://a.test/"]}`:    "invalid_redirect_uri",
		`{"redirect_uris":["https://*.a.test/"]}`: "invalid_redirect_uri",
	} {
		answer := register(t, d, "POST", endpoint, body, "")
		if decode(t, want(t, 400, answer))["error"] != code {
			t.Errorf("%s is answered with %s, want %s", body, answer.Body, code)
		}
	}
	// A program on the user's machine, as assistants are.
	native := decode(t, want(t, 201, register(t, d, "POST", endpoint,
		`{"redirect_uris":["http://127.0.0.1:33418/callback"],"token_endpoint_auth_method":"none"}`, "")))
	if native["application_type"] != "native" || native["client_secret"] != nil {
		t.Errorf("a program without authentication is registered as %v", native)
	}
}

func TestInitialAccessTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	provider := "/openIdProviders/" + d.Application.String()
	want(t, 200, d.Do(t, d.Site, "POST", provider, `{"clientRegistration":"TOKEN"}`))
	endpoint, body := "/oidc/"+d.Application.String()+"/register", `{"redirect_uris":["https://a.example.test/"]}`
	want(t, 401, register(t, d, "POST", endpoint, body, ""))
	want(t, 401, register(t, d, "POST", endpoint, body, "unknown"))
	made := decode(t, want(t, 201, d.Do(t, d.Site, "POST", provider+"/registrationTokens", `{"uses":2}`)))
	token := made["token"].(string)
	want(t, 400, register(t, d, "POST", endpoint, `{}`, token)) // a refused registration uses nothing
	want(t, 201, register(t, d, "POST", endpoint, body, token))
	want(t, 201, register(t, d, "POST", endpoint, body, token))
	want(t, 401, register(t, d, "POST", endpoint, body, token))
	other := decode(t, want(t, 201, d.Do(t, d.Site, "POST", provider+"/registrationTokens", `{}`)))
	listed := decode(t, want(t, 200, d.Do(t, d.Site, "GET", provider+"/registrationTokens", nil)))["items"].([]any)
	if len(listed) != 1 || listed[0].(map[string]any)["token"] != nil || listed[0].(map[string]any)["uses"] != 1.0 {
		t.Errorf("the tokens are %v", listed)
	}
	want(t, 204, d.Do(t, d.NewSite(t), "DELETE", other["href"].(string), nil))
	if left := decode(t, want(t, 200, d.Do(t, d.Site, "GET", provider+"/registrationTokens", nil))); left["size"] != 1.0 {
		t.Errorf("another tenant has deleted a token: %v", left)
	}
	want(t, 204, d.Do(t, d.Site, "DELETE", other["href"].(string), nil))
	want(t, 401, register(t, d, "POST", endpoint, body, other["token"].(string)))
	for body, code := range map[string]int{`{"uses":0}`: 2009, `{"uses":10001}`: 2010, `{"expiresAt":"soon"}`: 2006,
		`{"expiresAt":"2020-01-01T00:00:00Z"}`: 2006, `{"expiresAt":"2099-01-01T00:00:00Z"}`: 2012} {
		refused(t, 400, code, d.Do(t, d.Site, "POST", provider+"/registrationTokens", body))
	}
	refused(t, 404, 404, d.Do(t, d.NewSite(t), "POST", provider+"/registrationTokens", `{}`))
}

func TestASignedIntrospection(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	base := "/oidc/" + d.Application.String()
	client := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/applications/"+d.Application.String()+"/openIdClients",
		`{"name":"Nightly","applicationType":"service"}`)))
	secret := decode(t, want(t, 201, d.Do(t, d.Site, "POST", client["href"].(string)+"/secrets", nil)))["secret"].(string)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(client["clientId"].(string)+":"+secret))
	token := decode(t, want(t, 200, raw(t, d, "POST", base+"/token", "grant_type=client_credentials", "Authorization",
		basic)))["access_token"].(string)
	request := httptest.NewRequestWithContext(t.Context(), "POST", base+"/introspect", strings.NewReader("token="+token))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", basic)
	request.Header.Set("Accept", "application/token-introspection+jwt")
	answer := want(t, 200, d.Send(t, oauthtest.Site{}, request))
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(answer.Body, claims)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := claims["token_introspection"].(map[string]any)
	if answer.Header.Get("Content-Type") != "application/token-introspection+jwt" ||
		parsed.Header["typ"] != "token-introspection+jwt" || claims["aud"] != client["clientId"] ||
		claims["iss"] != "https://id.example.test"+base || found["active"] != true || claims["sub"] != nil {
		t.Errorf("the signed introspection is %v, %v with %v", parsed.Header, claims, answer.Header)
	}
}
