package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/openapi/openapitest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	oauthrest "github.com/doorward/doorward/services/oauth/rest"
)

type object = map[string]any

func decode(t *testing.T, answer oauthtest.Answer) object {
	t.Helper()
	var body object
	if err := json.Unmarshal([]byte(answer.Body), &body); err != nil {
		t.Fatalf("%d %q: %v", answer.Status, answer.Body, err)
	}
	return body
}

// want checks the status of an answer.
func want(t *testing.T, status int, answer oauthtest.Answer) oauthtest.Answer {
	t.Helper()
	if answer.Status != status {
		t.Fatalf("the status is %d, want %d: %s", answer.Status, status, answer.Body)
	}
	return answer
}

// refused checks that an answer is an error body with all its members.
func refused(t *testing.T, status, code int, answer oauthtest.Answer) object {
	t.Helper()
	body := decode(t, answer)
	if answer.Status != status || body["status"] != float64(status) || body["code"] != float64(code) {
		t.Errorf("the answer is %d %s, want %d/%d", answer.Status, answer.Body, status, code)
	}
	for _, member := range []string{"message", "developerMessage", "moreInfo", "requestId"} {
		if text, ok := body[member].(string); !ok || text == "" {
			t.Errorf("%s is %v", member, body[member])
		}
	}
	return body
}

// noStore checks the headers of the token endpoints.
func noStore(t *testing.T, answer oauthtest.Answer) {
	t.Helper()
	if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("Pragma") != "no-cache" {
		t.Errorf("the headers are %v", answer.Header)
	}
}

func tokens(s oauthtest.Site) string {
	return "/applications/" + s.Application.String() + "/oauth/token"
}

func passwordForm() url.Values {
	return url.Values{"grant_type": {"password"}, "username": {oauthtest.Login}, "password": {oauthtest.Password.Reveal()}}
}

func refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
}

func TestTokenAnswers(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	answer := want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm()))
	noStore(t, answer)
	login := decode(t, answer)
	access, refresh := login["access_token"].(string), login["refresh_token"].(string)
	jti := strings.TrimPrefix(login["service_access_token_href"].(string), string(oauthtest.Base)+"/accessTokens/")
	golden(t, "token-password", d, answer.Body, map[string]string{access: "<access jwt>", refresh: "<refresh jwt>", jti: "<access>"})

	answer = want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), refreshForm(refresh)))
	next := decode(t, answer)
	golden(t, "token-refresh", d, answer.Body, map[string]string{
		next["access_token"].(string): "<access jwt>", refresh: "<refresh jwt>",
		strings.TrimPrefix(next["service_access_token_href"].(string), string(oauthtest.Base)+"/accessTokens/"): "<access>",
	})

	key := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Account.String()+"/apiKeys", nil)))
	for _, form := range []url.Values{
		{"grant_type": {"client_credentials"}, "client_id": {key["id"].(string)}, "client_secret": {key["secret"].(string)}},
		{"grant_type": {"client_credentials"}, "apiKeyId": {key["id"].(string)}, "apiKeySecret": {key["secret"].(string)},
			"scope": {"everything"}},
	} {
		answer = want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), form))
		client := decode(t, answer)
		golden(t, "token-client", d, answer.Body, map[string]string{
			client["access_token"].(string): "<access jwt>",
			strings.TrimPrefix(client["service_access_token_href"].(string), string(oauthtest.Base)+"/accessTokens/"): "<access>",
		})
	}

	t.Run("the resource of a token", func(t *testing.T) {
		answer := want(t, 302, d.Do(t, d.Site, "GET", "/applications/"+d.Application.String()+"/authTokens/"+access+"?expand=account", nil))
		if location := answer.Header.Get("Location"); location != string(oauthtest.Base)+"/accessTokens/"+jti+"?expand=account" ||
			answer.Body != "" {
			t.Errorf("the redirect is %q with %q", location, answer.Body)
		}
		want(t, 302, d.Do(t, d.Site, "GET", "/applications/"+d.Application.String()+"/authTokens/"+strings.ReplaceAll(access, ".", "%2E"), nil))
		refused(t, 400, 10017, d.Do(t, d.Site, "GET", "/applications/"+d.Application.String()+"/authTokens/"+refresh, nil))
		answer = want(t, 200, d.Do(t, d.Site, "GET", "/accessTokens/"+jti, nil))
		resource := decode(t, answer)
		if resource["jwt"] != access {
			t.Errorf("jwt is %v, want %s", resource["jwt"], access)
		}
		expanded := resource["expandedJwt"].(object)
		if signature := expanded["signature"].(string); !strings.HasSuffix(access, "."+signature) {
			t.Errorf("the signature is %s", signature)
		}
		rti := expanded["claims"].(object)["rti"].(string)
		golden(t, "access-token", d, answer.Body, map[string]string{
			access: "<access jwt>", jti: "<access>", rti: "<refresh>", expanded["signature"].(string): "<signature>",
		})

		answer = want(t, 200, d.Do(t, d.Site, "GET", "/refreshTokens/"+rti, nil))
		if decode(t, answer)["jwt"] != refresh {
			t.Errorf("the refresh token is %s", answer.Body)
		}
		golden(t, "refresh-token", d, answer.Body, map[string]string{
			refresh: "<refresh jwt>", rti: "<refresh>", refresh[strings.LastIndexByte(refresh, '.')+1:]: "<signature>",
		})
		want(t, 404, d.Do(t, d.Site, "GET", "/accessTokens/"+rti, nil))
		want(t, 404, d.Do(t, d.Site, "GET", "/refreshTokens/"+jti, nil))
	})
	t.Run("the alias names the link", func(t *testing.T) {
		d.HTTP = rest.New(rest.Config{Service: "oauth", Base: oauthtest.Base, Signer: d.Signer})
		oauthrest.Mount(d.HTTP, d.Service, oauthtest.Base, "acme")
		openapitest.Speaks(d.HTTP, "acme")
		login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
		if login["acme_access_token_href"] == nil || login["service_access_token_href"] != nil {
			t.Errorf("the answer is %v", login)
		}
	})
}

// assertionForm returns the form that exchanges an assertion for the site's account, signed with the
// site's key, with some claims changed.
func assertionForm(t *testing.T, s oauthtest.Site, changed object) url.Values {
	t.Helper()
	return signedForm(t, s, map[string]any{"typ": "JWT", "kid": s.Key}, changed)
}

// hostedForm returns the form that exchanges an assertion of the service (single use).
func hostedForm(t *testing.T, s oauthtest.Site) url.Values {
	t.Helper()
	return signedForm(t, s, map[string]any{"typ": "JWT", "kid": s.Key, "stt": "assertion"}, nil)
}

func signedForm(t *testing.T, s oauthtest.Site, header map[string]any, changed object) url.Values {
	t.Helper()
	claims := secure.Claims{
		"iss": oauthtest.Base.To("applications", s.Application), "sub": oauthtest.Base.To("accounts", s.Account), "aud": s.Key,
		"status": "AUTHENTICATED",
		"iat":    clocktest.Start.Unix(), "exp": clocktest.Start.Unix() + 60, "jti": secure.Token(20).Reveal(),
	}
	maps.Copy(claims, changed)
	token, err := secure.SignJWT(header, claims, s.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return url.Values{"grant_type": {"service_token"}, "token": {token}}
}

// requireFactor sets whether logins to the site's application need a second
// factor.
func requireFactor(t *testing.T, d *oauthtest.Deployment, required bool) {
	t.Helper()
	config := "/applicationWebConfigs/" + d.WebConfigOf(d.Tenant, d.Application).String()
	want(t, 200, d.Do(t, d.Site, "POST", config, fmt.Sprintf(`{"mfa":{"required":%t}}`, required)))
}

// The failures of docs/interface/errors.md#oauth-failures.
func TestGrantFailures(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := tokens(d.Site)
	login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path, passwordForm())))
	key := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Account.String()+"/apiKeys", nil)))
	clientForm := func(key, secret any) url.Values {
		return url.Values{"grant_type": {"client_credentials"}, "client_id": {key.(string)}, "client_secret": {secret.(string)}}
	}
	other := d.NewDirectory(d.Tenant)
	form := func(pairs ...string) url.Values {
		values := passwordForm()
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return values
	}
	status := func(resource id.ID, status string) func() {
		return func() { d.SetStatus(d.Tenant, resource, status) }
	}
	keyStatus := func(status string) func() {
		return func() {
			want(t, 200, d.Do(t, d.Site, "POST", "/apiKeys/"+key["id"].(string), `{"status":"`+status+`"}`))
		}
	}
	foreign := d.NewSite(t)
	foreignLogin := decode(t, want(t, 200, d.Do(t, foreign, "POST", tokens(foreign), passwordForm())))
	foreignKey := decode(t, want(t, 201, d.Do(t, foreign, "POST", "/accounts/"+foreign.Account.String()+"/apiKeys", nil)))

	now := d.Clock.Now().Unix()
	d.MapSocial(d.Tenant, d.Application, "google")
	endUser := d.Site
	endUser.Key, endUser.Secret = key["id"].(string), secure.Secret(key["secret"].(string))
	spent := hostedForm(t, d.Site)
	want(t, 200, d.Do(t, d.Site, "POST", path, spent))
	enrolled := d.NewAccount(d.Tenant, d.Directory, "ann@example.test", oauthtest.Password)
	challenge := d.Challenge(d.Tenant, enrolled)
	code := d.Code(d.Tenant, enrolled)
	factorForm := func(code string) url.Values {
		return url.Values{"grant_type": {"service_factor_challenge"}, "challenge": {challenge}, "code": {code}}
	}

	for _, c := range []struct {
		name     string
		form     url.Values
		do, undo func()
		status   int
		code     int
		error    any
	}{
		{"nothing", url.Values{}, nil, nil, 400, 2000, "invalid_request"},
		{"no grant type", url.Values{"username": {"jo"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no user name", url.Values{"grant_type": {"password"}, "password": {"x"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no password", url.Values{"grant_type": {"password"}, "username": {"x"}, "password": {""}}, nil, nil, 400, 2000, "invalid_request"},
		{"no refresh token", url.Values{"grant_type": {"refresh_token"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no client", url.Values{"grant_type": {"client_credentials"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no client secret", url.Values{"grant_type": {"client_credentials"}, "client_id": {"x"}}, nil, nil, 400, 2000, "invalid_request"},
		{"a field twice", url.Values{"grant_type": {"password", "password"}}, nil, nil, 400, 2102, "invalid_request"},
		{"an unknown grant type", url.Values{"grant_type": {"unknown"}}, nil, nil, 400, 2003, "invalid_request"},
		{"a grant type in other letters", url.Values{"grant_type": {"PASSWORD"}}, nil, nil, 400, 2003, "invalid_request"},
		{"no assertion", url.Values{"grant_type": {"service_token"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no provider", url.Values{"grant_type": {"service_social"}, "code": {"x"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no proof of a provider", url.Values{"grant_type": {"service_social"}, "providerId": {"google"}}, nil, nil, 400, 2000,
			"invalid_request"},
		{"no code", url.Values{"grant_type": {"service_factor_challenge"}, "state": {"x"}}, nil, nil, 400, 2000, "invalid_request"},
		{"no second step", url.Values{"grant_type": {"service_factor_challenge"}, "code": {"x"}}, nil, nil, 400, 2000, "invalid_request"},
		{"two account stores", form("accountStore", "x", "nameKey", "y"), nil, nil, 400, 2002, "invalid_request"},

		{"what is no assertion", url.Values{"grant_type": {"service_token"}, "token": {"x"}}, nil, nil, 400, 10017, "invalid_client"},
		{"an assertion by a key of an end user", assertionForm(t, endUser, nil), nil, nil, 400, 10017, "invalid_client"},
		{"an assertion of another application", assertionForm(t, d.Site, object{"iss": "https://elsewhere.example"}), nil, nil, 400, 10014,
			"invalid_client"},
		{"an assertion from the future", assertionForm(t, d.Site, object{"iat": now + 61}), nil, nil, 400, 10012, "invalid_client"},
		{"an assertion that has expired", assertionForm(t, d.Site, object{"exp": now}), nil, nil, 400, 10011, "invalid_client"},
		{"an assertion of a logout", assertionForm(t, d.Site, object{"status": "LOGOUT"}), nil, nil, 400, 12002, "invalid_client"},
		{"an assertion for a disabled account", assertionForm(t, d.Site, nil), status(d.Account, directoryapi.Disabled),
			status(d.Account, directoryapi.Enabled), 400, 10010, "invalid_client"},
		{"an assertion for who is not reached", assertionForm(t, d.Site, nil), func() { d.Map(d.Tenant, d.Application) },
			func() { d.Map(d.Tenant, d.Application, d.Directory) }, 400, 10016, "invalid_client"},
		{"an assertion for a disabled store", assertionForm(t, d.Site, nil), status(d.Directory, directoryapi.Disabled),
			status(d.Directory, directoryapi.Enabled), 400, 10018, "invalid_client"},
		{"an assertion for a disabled application", assertionForm(t, d.Site, nil), status(d.Application, directoryapi.Disabled),
			status(d.Application, directoryapi.Enabled), 400, 10015, "invalid_client"},
		{"an assertion that was exchanged", spent, nil, nil, 400, 11005, "invalid_client"},

		{"a provider that is not mapped", url.Values{"grant_type": {"service_social"}, "providerId": {"github"}, "accessToken": {"x"}}, nil,
			nil, 400, 5201, "invalid_request"},
		{"a provider that cannot be asked", url.Values{"grant_type": {"service_social"}, "providerId": {"google"}, "code": {"x"}}, nil, nil,
			400, 7200, "invalid_client"},

		{"a state of nobody", url.Values{"grant_type": {"service_factor_challenge"}, "state": {"x"}, "code": {"1"}}, nil, nil, 400, 2014,
			"invalid_grant"},
		{"a wrong code", factorForm("000000"), nil, nil, 400, 13104, "invalid_grant"},
		{"an expired code", factorForm(code), func() { d.EndChallenges(apierr.CodeExpired) }, func() { d.EndChallenges(nil) }, 400, 13108,
			"invalid_grant"},
		{"a challenge that was answered", factorForm(code), func() { d.EndChallenges(apierr.ChallengeFinished) }, func() { d.EndChallenges(nil) },
			400, 13112, "invalid_grant"},
		{"too many wrong codes", factorForm(code), func() { d.EndChallenges(apierr.ChallengeFailures) }, func() { d.EndChallenges(nil) }, 400,
			13113, "invalid_grant"},
		{"a second factor that is demanded", form(), func() { requireFactor(t, d, true) }, func() { requireFactor(t, d, false) }, 400, 400,
			"access_denied"},

		{"a wrong password", form("password", "Wrong1234"), nil, nil, 400, 7100, "invalid_grant"},
		{"an unknown login", form("username", "nobody"), nil, nil, 400, 7104, "invalid_grant"},
		{"a disabled account", form(), status(d.Account, directoryapi.Disabled), status(d.Account, directoryapi.Enabled), 400, 7101,
			"invalid_grant"},
		{"an unverified account", form(), status(d.Account, directoryapi.Unverified), status(d.Account, directoryapi.Enabled), 400, 7102,
			"invalid_grant"},
		{"a disabled directory", form(), status(d.Directory, directoryapi.Disabled), status(d.Directory, directoryapi.Enabled), 400, 7106,
			"invalid_grant"},
		{"a disabled application", form(), status(d.Application, directoryapi.Disabled), status(d.Application, directoryapi.Enabled), 400,
			7104, "invalid_grant"},
		{"an application without stores", form(), func() { d.Map(d.Tenant, d.Application) },
			func() { d.Map(d.Tenant, d.Application, d.Directory) }, 400, 5105, "invalid_request"},
		{"a store that is not mapped", form("accountStore", oauthtest.Base.To("directories", other)), nil, nil, 400, 5114, "invalid_request"},
		{"a store that is not there", form("accountStore", oauthtest.Base.To("directories", d.Account)), nil, nil, 400, 2014, "invalid_request"},
		{"a store of another tenant", form("accountStore", oauthtest.Base.To("directories", foreign.Directory)), nil, nil, 400, 2014,
			"invalid_request"},
		{"a name key", form("nameKey", "acme"), nil, nil, 400, 2014, "invalid_request"},
		{"a name key by its other name", form("organizationNameKey", "acme"), nil, nil, 400, 2014, "invalid_request"},

		{"no refresh token at all", refreshForm("abc"), nil, nil, 400, 10017, "invalid_grant"},
		{"an access token", refreshForm(login["access_token"].(string)), nil, nil, 400, 10017, "invalid_grant"},
		{"a refresh token of another tenant", refreshForm(foreignLogin["refresh_token"].(string)), nil, nil, 400, 10017, "invalid_grant"},
		{"a refresh for a disabled account", refreshForm(login["refresh_token"].(string)), status(d.Account, directoryapi.Disabled),
			status(d.Account, directoryapi.Enabled), 400, 10010, "invalid_grant"},
		{"a refresh for a disabled application", refreshForm(login["refresh_token"].(string)), status(d.Application, directoryapi.Disabled),
			status(d.Application, directoryapi.Enabled), 400, 10015, "invalid_grant"},

		{"an unknown client", clientForm("NOBODY", "x"), nil, nil, 400, 10019, "invalid_client"},
		{"a client that is SQL", clientForm("' OR ''='", "x"), nil, nil, 400, 10019, "invalid_client"},
		{"a client's wrong secret", clientForm(key["id"], "x"), nil, nil, 400, 10019, "invalid_client"},
		{"a client of another tenant", clientForm(foreignKey["id"], foreignKey["secret"]), nil, nil, 400, 10019, "invalid_client"},
		{"an administrator, who is not reached", clientForm(d.Key, d.Secret.Reveal()), nil, nil, 400, 10019, "invalid_client"},
		{"a disabled client key", clientForm(key["id"], key["secret"]), keyStatus("disabled"), keyStatus("ENABLED"), 400, 10019,
			"invalid_client"},
		{"a client whose account is disabled", clientForm(key["id"], key["secret"]), status(d.Account, directoryapi.Disabled),
			status(d.Account, directoryapi.Enabled), 400, 10019, "invalid_client"},
		{"a client whose directory is disabled", clientForm(key["id"], key["secret"]), status(d.Directory, directoryapi.Disabled),
			status(d.Directory, directoryapi.Enabled), 400, 10019, "invalid_client"},

		{"a peer that is away", form(), func() { d.Fail(apierr.Unavailable) }, func() { d.Fail(nil) }, 503, 503, nil},
		{"a peer that is away from a client", clientForm(key["id"], key["secret"]), func() { d.Fail(apierr.Unavailable) },
			func() { d.Fail(nil) }, 503, 503, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.do != nil {
				c.do()
				defer c.undo()
			}
			answer := d.Do(t, d.Site, "POST", path, c.form)
			noStore(t, answer)
			if body := refused(t, c.status, c.code, answer); body["error"] != c.error {
				t.Errorf("error is %v, want %v", body["error"], c.error)
			}
		})
	}
	t.Run("a refresh token that was revoked", func(t *testing.T) {
		want(t, 200, d.Do(t, d.Site, "POST", strings.Replace(path, "token", "revoke", 1), url.Values{"token": {login["refresh_token"].(string)}}))
		if body := refused(t, 400, 10013, d.Do(t, d.Site, "POST", path,
			refreshForm(login["refresh_token"].(string)))); body["error"] != "invalid_grant" {
			t.Errorf("error is %v", body["error"])
		}
	})
	t.Run("a refresh token that has expired", func(t *testing.T) {
		login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", path, passwordForm())))
		d.Clock.Move(60 * 24 * time.Hour)
		if body := refused(t, 400, 10011, d.Do(t, d.Site, "POST", path,
			refreshForm(login["refresh_token"].(string)))); body["error"] != "invalid_grant" {
			t.Errorf("error is %v", body["error"])
		}
	})
	t.Run("the demand for a second factor", func(t *testing.T) {
		requireFactor(t, d, true)
		shown := func(name string, answer oauthtest.Answer) {
			t.Helper()
			names, body := map[string]string{}, decode(t, answer)
			if state, ok := body["state"].(string); ok {
				names[state] = "<state>"
			}
			factors, _ := body["factors"].([]any)
			for _, factor := range factors {
				names[factor.(object)["state"].(string)] = "<state>"
			}
			noStore(t, answer)
			golden(t, name, d, answer.Body, names)
		}
		shown("error-enroll", d.Do(t, d.Site, "POST", path, form()))
		d.Enroll(d.Tenant, d.Account, mfaapi.SMS, "xxx-xxx-0959")
		shown("error-challenge", d.Do(t, d.Site, "POST", path, form()))
		d.Enroll(d.Tenant, d.Account, mfaapi.Authenticator, "Shop")
		shown("error-select", d.Do(t, d.Site, "POST", path, form()))
		requireFactor(t, d, false)
	})
	t.Run("the body of a refusal", func(t *testing.T) {
		golden(t, "error-assertion", d, d.Do(t, d.Site, "POST", path, spent).Body, nil)
		challenge = d.Challenge(d.Tenant, enrolled)
		golden(t, "error-code", d, d.Do(t, d.Site, "POST", path, factorForm("000000")).Body, nil)
		golden(t, "error-password", d, d.Do(t, d.Site, "POST", path, form("password", "Wrong1234")).Body, nil)
		golden(t, "error-client", d, d.Do(t, d.Site, "POST", path, clientForm("NOBODY", "x")).Body, nil)
	})
}

func TestContentTypeOfTheTokenEndpoints(t *testing.T) {
	d := oauthtest.Open(t)
	login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
	for _, endpoint := range []string{tokens(d.Site), strings.Replace(tokens(d.Site), "token", "revoke", 1)} {
		body := passwordForm()
		if strings.HasSuffix(endpoint, "revoke") {
			body = url.Values{"token": {login["access_token"].(string)}}
		}
		for kind, code := range map[string]int{
			"":                    2006,
			"application/json":    2006,
			"multipart/form-data": 2006,
			"text/plain":          2006,
			"application/x-www-form-urlencoded; charset=utf-16":     2005,
			"application/x-www-form-urlencoded; charset=ISO-8859-1": 0,
			"application/x-www-form-urlencoded; charset=us-ascii":   0,
			"application/x-www-form-urlencoded":                     0,
			"application/x-www-form-urlencoded;charset=UTF-8":       0,
			"Application/X-WWW-Form-URLEncoded; charset=utf-8":      0,
		} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1"+endpoint, strings.NewReader(body.Encode()))
			if kind != "" {
				request.Header.Set(fiber.HeaderContentType, kind)
			}
			answer := d.Send(t, d.Site, request)
			noStore(t, answer)
			if code == 0 {
				want(t, 200, answer)
				continue
			}
			if body := refused(t, 400, code, answer); body["error"] != "invalid_request" {
				t.Errorf("%s: error is %v", kind, body["error"])
			}
		}
		refused(t, 413, 413, d.Do(t, d.Site, "POST", endpoint, url.Values{"x": {strings.Repeat("x", 65<<10)}}))
	}
	t.Run("the fields may be in the query where the body is empty, and only there", func(t *testing.T) {
		login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
		query := "?" + refreshForm(login["refresh_token"].(string)).Encode()
		answer := want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site)+query, nil))
		noStore(t, answer)
		want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site)+query, url.Values{}))
		refused(t, 400, 2000, d.Do(t, d.Site, "POST", tokens(d.Site)+query, url.Values{"scope": {"x"}}))
		refused(t, 400, 2102, d.Do(t, d.Site, "POST", tokens(d.Site)+query+"&grant_type=password", nil))
	})
	t.Run("a field in the query does not reach the log", func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
		defer slog.SetDefault(before)
		d.Fail(fmt.Errorf("ask a peer: %w", apierr.Unavailable))
		defer d.Fail(nil)
		refused(t, 503, 503, d.Do(t, d.Site, "POST", tokens(d.Site)+"?"+passwordForm().Encode(), nil))
		if text := log.String(); text == "" || strings.Contains(text, "username") || strings.Contains(text, url.QueryEscape(oauthtest.Login)) {
			t.Errorf("the log is %s", text)
		}
	})
}

func TestRevocationAnswers(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
	access := login["access_token"].(string)
	path := strings.Replace(tokens(d.Site), "token", "revoke", 1)
	for range 2 {
		answer := want(t, 200, d.Do(t, d.Site, "POST", path, url.Values{"token": {access}, "token_type_hint": {"access_token"}}))
		noStore(t, answer)
		if answer.Body != "" {
			t.Errorf("the body is %q", answer.Body)
		}
	}
	gone := refused(t, 404, 10013, d.Do(t, d.Site, "GET", "/applications/"+d.Application.String()+"/authTokens/"+access, nil))
	if gone["developerMessage"] != "Token does not exist. This can occur if the token has been manually deleted, "+
		"or if the token has expired and removed by Doorward." {
		t.Errorf("clients compare another literal than %q", gone["developerMessage"])
	}
	if body := refused(t, 400, 2000, d.Do(t, d.Site, "POST", path,
		url.Values{"token_type_hint": {"access_token"}})); body["error"] != "invalid_request" {
		t.Errorf("error is %v", body["error"])
	}
	// {"alg":"HS256"}.{} with a wrong signature
	if body := refused(t, 400, 10024, d.Do(t, d.Site, "POST", path,
		url.Values{"token": {"eyJhbGciOiJIUzI1NiJ9.e30.AAAA"}})); body["error"] != "unsupported_token_type" {
		t.Errorf("error is %v", body["error"])
	}
}

func TestTokenCollections(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	second := d.Site
	second.Application = d.NewApplication(d.Tenant, d.Directory)
	want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm()))
	d.Clock.Move(time.Second)
	last := decode(t, want(t, 200, d.Do(t, second, "POST", tokens(second), passwordForm())))
	path := "/accounts/" + d.Account.String() + "/accessTokens"
	first, other := oauthtest.Base.To("applications", d.Application), oauthtest.Base.To("applications", second.Application)

	sizes := func(query string) (size float64, applications []string) {
		t.Helper()
		page := decode(t, want(t, 200, d.Do(t, d.Site, "GET", path+query, nil)))
		for _, item := range page["items"].([]any) {
			applications = append(applications, item.(object)["application"].(object)["href"].(string))
		}
		if page["href"] != string(oauthtest.Base)+path {
			t.Errorf("href is %v", page["href"])
		}
		return page["size"].(float64), applications
	}
	for query, want := range map[string][]string{
		"":                           {first, other},
		"?orderBy=createdAt+desc":    {other, first},
		"?application.href=" + first: {first},
		"?application.href=" + first + "&application.href=" + first: {first},
		"?application.href=" + other + "&limit=1":                   {other},
		"?offset=1": {other},
		"?offset=9": nil,
	} {
		if _, got := sizes(query); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q returns %v, want %v", query, got, want)
		}
	}
	if size, _ := sizes("?limit=1"); size != 2 {
		t.Errorf("the size is %v", size)
	}
	foreign := d.NewSite(t)
	for query, refusal := range map[string]*apierr.Error{
		"?application.href=" + oauthtest.Base.To("applications", foreign.Application): apierr.NotFound,
		"?application.href=" + oauthtest.Base.To("applications", d.Account):           apierr.NotFound,
		"?application.href=" + oauthtest.Base.To("directories", d.Directory):          apierr.ParameterInvalid,
		"?application.href=" + first + "*":                                            apierr.ParameterInvalid,
		"?application.href=*":                                                         apierr.ParameterInvalid,
		"?application.href=https://evil.example/v1/applications/x":                    apierr.ParameterInvalid,
		"?application.href=":                                                          apierr.ParameterEmpty,
		"?application.href":                                                           apierr.ParameterEmpty,
		"?application.href=" + first + "&application.href=" + other:                   apierr.ParameterRepeated,
		"?jwt=x":                     apierr.QueryUnsupported,
		"?createdAt=2026":            apierr.QueryUnsupported,
		"?orderBy=jwt":               apierr.OrderUnsupported,
		"?orderBy=application.href":  apierr.OrderUnsupported,
		"?limit=0":                   apierr.ParameterInvalid,
		"?offset=-1":                 apierr.ParameterInvalid,
		"?orderBy=createdAt+sideway": apierr.OrderMalformed,
	} {
		t.Run(query, func(t *testing.T) { refused(t, refusal.Status, refusal.Code, d.Do(t, d.Site, "GET", path+query, nil)) })
	}
	unknown := want(t, 404, d.Do(t, d.Site, "GET", path+"?application.href="+oauthtest.Base.To("applications", foreign.Application), nil))
	if got := decode(t, unknown)["developerMessage"]; got != "The requested resource does not exist." {
		t.Errorf("the developerMessage of an unknown application is %v", got)
	}
	t.Run("refresh tokens likewise", func(t *testing.T) {
		page := decode(t, want(t, 200, d.Do(t, d.Site, "GET", strings.Replace(path, "access", "refresh", 1)+"?application.href="+other, nil)))
		items := page["items"].([]any)
		if len(items) != 1 || items[0].(object)["jwt"] != last["refresh_token"] {
			t.Errorf("the page is %v", page)
		}
		answer := want(t, 200, d.Do(t, d.Site, "GET", strings.Replace(path, "access", "refresh", 1)+"?limit=1", nil))
		item := decode(t, answer)["items"].([]any)[0].(object)
		golden(t, "refresh-tokens", d, answer.Body, map[string]string{
			item["jwt"].(string): "<refresh jwt>", item["href"].(string)[len(string(oauthtest.Base)+"/refreshTokens/"):]: "<refresh>",
			item["expandedJwt"].(object)["signature"].(string): "<signature>",
		})
	})
	t.Run("what has expired is gone", func(t *testing.T) {
		href := last["service_access_token_href"].(string)
		want(t, 200, d.Do(t, d.Site, "GET", href, nil))
		d.Clock.Move(time.Hour)
		if size, _ := sizes(""); size != 0 {
			t.Errorf("%v tokens are left", size)
		}
		refused(t, 404, 404, d.Do(t, d.Site, "GET", href, nil))
		want(t, 204, d.Do(t, d.Site, "DELETE", href, nil))
	})
}

func TestDeletedTokensAreGone(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
	access := login["service_access_token_href"].(string)
	rti := decode(t, d.Do(t, d.Site, "GET", access, nil))["expandedJwt"].(object)["claims"].(object)["rti"].(string)
	for _, href := range []string{access, oauthtest.Base.Path("refreshTokens", rti)} {
		if answer := want(t, 204, d.Do(t, d.Site, "DELETE", href, nil)); answer.Body != "" {
			t.Errorf("the body is %q", answer.Body)
		}
		refused(t, 404, 404, d.Do(t, d.Site, "GET", href, nil))
		want(t, 204, d.Do(t, d.Site, "DELETE", href, nil))
	}
}

// The failures of docs/interface/errors.md#failed-validation, over HTTP and without a redirect. Their
// order is tested in ../token_test.go.
func TestValidationFailures(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	other := d.NewApplication(d.Tenant, d.Directory)
	login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), passwordForm())))
	access := login["access_token"].(string)
	set := func(resource id.ID, status string) func() {
		return func() { d.SetStatus(d.Tenant, resource, status) }
	}
	for _, c := range []struct {
		name         string
		application  id.ID
		token        string
		do, undo     func()
		status, code int
	}{
		{"no JWT", d.Application, "abc", nil, nil, 400, 10017},
		{"a bad signature", d.Application, access[:len(access)-4] + "AAAA", nil, nil, 400, 10017},
		{"another application", other, access, nil, nil, 400, 10014},
		{"from the future", d.Application, access, func() { d.Clock.Move(-time.Minute - time.Second) },
			func() { d.Clock.Move(time.Minute + time.Second) }, 400, 10012},
		{"expired", d.Application, access, func() { d.Clock.Move(time.Hour) }, func() { d.Clock.Move(-time.Hour) }, 400, 10011},
		{"a disabled account", d.Application, access, set(d.Account, directoryapi.Disabled), set(d.Account, directoryapi.Enabled), 400, 10010},
		{"a disabled application", d.Application, access, set(d.Application, directoryapi.Disabled), set(d.Application, directoryapi.Enabled),
			400, 10015},
		{"a disabled store", d.Application, access, set(d.Directory, directoryapi.Disabled), set(d.Directory, directoryapi.Enabled), 400, 10018},
		{"an account that is not reached", d.Application, access, func() { d.Map(d.Tenant, d.Application) },
			func() { d.Map(d.Tenant, d.Application, d.Directory) }, 400, 10016},
		{"an application that never was", d.Account, access, nil, nil, 404, 404},
		{"deleted", d.Application, access, func() {
			want(t, 204, d.Do(t, d.Site, "DELETE", login["service_access_token_href"].(string),
				nil))
		}, func() {}, 404, 10013},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.do != nil {
				c.do()
				defer c.undo()
			}
			answer := d.Do(t, d.Site, "GET", "/applications/"+c.application.String()+"/authTokens/"+c.token, nil)
			refused(t, c.status, c.code, answer)
			if answer.Header.Get("Location") != "" {
				t.Errorf("it leads to %s", answer.Header.Get("Location"))
			}
		})
	}
}

// The alias of a deployment replaces "service" in the grant types of Doorward, both words are
// accepted, and the grant types of RFC 6749 have no alias.
func TestTheAliasNamesGrants(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	ring, err := secure.ParseKeyring(d.Master)
	if err != nil {
		t.Fatal(err)
	}
	svc := oauth.New(d.Store, d.Peers(), ring, d.Clock.Now,
		oauth.Config{Base: oauthtest.Base, Alias: "acme", Suffix: oauthtest.Suffix})
	d.HTTP = rest.New(rest.Config{Service: "oauth", Base: oauthtest.Base, Signer: d.Signer})
	oauthrest.Mount(d.HTTP, svc, oauthtest.Base, "acme")
	openapitest.Speaks(d.HTTP, "acme")
	for _, grant := range []string{"acme_token", "service_token", "id_site_token"} {
		form := assertionForm(t, d.Site, nil)
		form.Set("grant_type", grant)
		if login := decode(t, want(t, 200, d.Do(t, d.Site, "POST", tokens(d.Site), form))); login["acme_access_token_href"] == nil {
			t.Errorf("%s returns %v", grant, login)
		}
	}
	body := refused(t, 400, 2003, d.Do(t, d.Site, "POST", tokens(d.Site), url.Values{"grant_type": {"unknown"}}))
	if text := body["developerMessage"].(string); !strings.Contains(text, "acme_token") || strings.Contains(text, "service_") ||
		!strings.Contains(text, "id_site_token") {
		t.Errorf("the message is %s", text)
	}
	for grant, code := range map[string]int{"acme_social": 2000, "acme_factor_challenge": 2000, "other_token": 2003, "acme": 2003,
		"acme_": 2003, "acme_password": 2003} {
		refused(t, 400, code, d.Do(t, d.Site, "POST", tokens(d.Site), url.Values{"grant_type": {grant}}))
	}
}
