package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/secure"
)

// The tests of this file are the modules of the certification plans of the OpenID Foundation for OpenID providers, by
// their names: Config, Basic and Form Post, the logouts, and the FAPI 2.0 Security Profile (certificationfapi_test.go).

// certified is a relying party that checks each response and token as the certification does.
type certified struct {
	*relyingParty
	account e2e.Object
	mode    string // response_mode; empty: the default
	method  string // of the client's authentication
}

func newCertified(t *testing.T, fixture e2e.Fixture, account e2e.Object, mode string, changes e2e.Object) *certified {
	t.Helper()
	p := &certified{relyingParty: newRelyingParty(t, fixture, changes), account: account, mode: mode}
	p.method = p.client.Text("tokenEndpointAuthMethod")
	return p
}

// in is the party in a subtest.
func (p *certified) in(t *testing.T) *certified {
	party := *p.relyingParty
	party.T = t
	other := *p
	other.relyingParty = &party
	return &other
}

func merged(changes, more url.Values) url.Values {
	all := url.Values{}
	for _, values := range []url.Values{changes, more} {
		for name, value := range values {
			all[name] = value
		}
	}
	return all
}

var responseField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)

// respond sends an authorization request, logs the user in where the pages ask for it, and returns the parameters of
// the response and whether they asked.
func (p *certified) respond(browser *e2e.Client, changes url.Values) (values url.Values, asked bool) {
	p.Helper()
	if p.mode != "" {
		changes = merged(changes, url.Values{"response_mode": {p.mode}})
	}
	next := p.request(changes)
	for range 8 {
		answer := browser.Call(p.T, asBrowser(next))
		location := answer.Header.Get("Location")
		switch {
		case answer.Status == http.StatusOK && p.mode == "form_post":
			return p.readForm(answer), asked
		case answer.Status != http.StatusSeeOther && answer.Status != http.StatusFound:
			p.Fatal(answer)
		case strings.HasPrefix(location, p.redirect):
			if p.mode == "form_post" {
				p.Errorf("the response stands in the address: %s", location)
			}
			return p.answer(location), asked
		case strings.HasPrefix(location, pageOrigin(p.T)+"/#/"):
			asked = true
			page := p.page(browser, location)
			page.logIn(p.account.Text("email"))
			location = page.back
		}
		next = location
	}
	p.Fatal("the login has no end")
	return nil, asked
}

// readForm reads the response of a page that posts it to the client.
func (p *certified) readForm(answer e2e.Answer) url.Values {
	p.Helper()
	if !strings.Contains(string(answer.Body), `action="`+html.EscapeString(p.redirect)+`"`) {
		p.Fatal(answer)
	}
	values := url.Values{}
	for _, found := range responseField.FindAllStringSubmatch(string(answer.Body), -1) {
		values.Add(html.UnescapeString(found[1]), html.UnescapeString(found[2]))
	}
	return p.answer(p.redirect + "?" + values.Encode())
}

// redeem is the token request of a code, by the client's method of authentication.
func (p *certified) redeem(code string) e2e.Request {
	r := p.exchange(code, nil)
	if p.method == "client_secret_post" {
		r = p.exchange(code, url.Values{"client_id": {p.client.Text("clientId")}, "client_secret": {p.secret}})
		r.Header = nil
	}
	return r
}

// login is a whole login whose tokens are checked.
func (p *certified) login(browser *e2e.Client, changes url.Values) (tokens, claims, userInfo e2e.Object) {
	p.Helper()
	values, _ := p.respond(browser, changes)
	if len(values.Get("code")) < 22 {
		p.Fatalf("the response is %v", values)
	}
	answer := client.Want(p.T, http.StatusOK, p.redeem(values.Get("code")))
	if answer.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		p.Errorf("the tokens come with %v", answer.Header)
	}
	if err := json.Unmarshal(answer.Body, &tokens); err != nil {
		p.Fatal(err)
	}
	if !strings.EqualFold(tokens.Text("token_type"), "Bearer") || tokens.Number(p.T, "expires_in") <= 0 {
		p.Errorf("the tokens are %v", tokens)
	}
	claims = p.checkIDToken(tokens)
	userInfo = client.WantObject(p.T, http.StatusOK, p.userInfo(tokens.Text("access_token")))
	if userInfo.Text("sub") != claims.Text("sub") {
		p.Errorf("UserInfo is of %s, the ID token of %s", userInfo.Text("sub"), claims.Text("sub"))
	}
	return tokens, claims, userInfo
}

func (p *certified) userInfo(token string) e2e.Request {
	r := get(p.issuer + "/userinfo")
	r.Anonymous, r.Header = true, http.Header{"Authorization": {"Bearer " + token}}
	return r
}

// checkIDToken verifies an ID token (OpenID Connect Core, section 3.1.3.7) with the key set, and returns its claims.
func (p *certified) checkIDToken(tokens e2e.Object) e2e.Object {
	p.Helper()
	token := secure.Secret(tokens.Text("id_token"))
	header, err := secure.UnverifiedHeader(token)
	if err != nil {
		p.Fatal(err)
	}
	jwks := get(p.issuer + "/jwks")
	jwks.Anonymous = true
	keys, err := secure.ParseKeySet(client.Want(p.T, http.StatusOK, jwks).Body)
	if err != nil {
		p.Fatal(err)
	}
	at := slices.IndexFunc(keys, func(k secure.VerificationKey) bool { return k.ID() == header["kid"] })
	if at < 0 {
		p.Fatalf("no key of the set is %v", header["kid"])
	}
	algorithm, _ := header["alg"].(string)
	verified, err := keys[at].Verify(token, algorithm)
	if err != nil {
		p.Fatal(err)
	}
	claims := e2e.Object(verified)
	now := float64(time.Now().Unix())
	half := sha256.Sum256([]byte(tokens.Text("access_token")))
	exp, _ := claims["exp"].(float64)
	iat, _ := claims["iat"].(float64)
	if claims.Text("iss") != p.issuer || claims.Text("aud") != p.client.Text("clientId") || exp <= now || iat > now+5 ||
		iat < now-60 || claims.Text("sub") == "" || claims.Text("at_hash") != base64.RawURLEncoding.EncodeToString(half[:16]) {
		p.Errorf("the claims are %v", claims)
	}
	return claims
}

// certificationAccount is an account whose attributes give a value to the claims of all scopes but phone.
func certificationAccount(t *testing.T, fixture e2e.Fixture) e2e.Object {
	t.Helper()
	client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"claims": []e2e.Object{
		{"claim": "address", "source": "customData.address", "scopes": []string{"address"}, "in": []string{"USERINFO"}},
		{"claim": "picture", "source": "customData.picture", "scopes": []string{"profile"}, "in": []string{"USERINFO"}},
	}})
	body := e2e.NewAccount(e2e.Unique("jo") + "@example.test")
	body["customData"] = e2e.Object{"address": e2e.Object{"locality": "Bern", "country": "CH"}, "picture": "https://shop.test/jo.png"}
	return client.Create(t, fixture.Application.Link(t, "accounts"), body)
}

func TestCertificationConfig(t *testing.T) {
	fixture := client.NewFixture(t)
	issuer := client.Key.HostURL() + "/oidc/" + fixture.Application.ID()
	for _, address := range []string{issuer + "/.well-known/openid-configuration",
		client.Key.HostURL() + "/.well-known/oauth-authorization-server/oidc/" + fixture.Application.ID()} {
		r := get(address)
		r.Anonymous = true
		answer := client.Want(t, http.StatusOK, r)
		document, err := answer.Object()
		if err != nil || document.Text("issuer") != issuer || answer.Header.Get("ETag") == "" ||
			!strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
			t.Fatalf("%s, %v, %v", answer, answer.Header, err)
		}
		for name, value := range document {
			text, isText := value.(string)
			if isEndpoint := strings.HasSuffix(name, "_endpoint") || name == "jwks_uri"; isEndpoint &&
				(!isText || !strings.HasPrefix(text, issuer+"/")) {
				t.Errorf("%s is %v", name, value)
			}
			if _, isFlag := value.(bool); strings.HasSuffix(name, "parameter_supported") && !isFlag {
				t.Errorf("%s is %v", name, value)
			}
		}
		for name, wanted := range map[string]string{
			"response_types_supported": "code", "subject_types_supported": "public", "scopes_supported": "openid",
			"id_token_signing_alg_values_supported": "RS256", "claims_supported": "sub",
			"grant_types_supported": "authorization_code", "code_challenge_methods_supported": "S256",
			"response_modes_supported": "form_post", "token_endpoint_auth_methods_supported": "client_secret_basic",
		} {
			if values, _ := document[name].([]any); !slices.Contains(values, any(wanted)) {
				t.Errorf("%s is %v, without %s", name, values, wanted)
			}
		}
		for _, name := range []string{"authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri",
			"end_session_endpoint", "backchannel_logout_supported", "backchannel_logout_session_supported",
			"frontchannel_logout_supported", "frontchannel_logout_session_supported"} {
			if document[name] == nil || document[name] == false {
				t.Errorf("%s is %v", name, document[name])
			}
		}
		keys := get(document.Text("jwks_uri"))
		keys.Anonymous = true
		seen := map[string]bool{}
		for _, key := range client.WantObject(t, http.StatusOK, keys).Objects("keys") {
			if key.Text("kid") == "" || seen[key.Text("kid")] || key["d"] != nil || key["p"] != nil || key.Text("use") != "sig" {
				t.Errorf("the key %v is private, unnamed or there twice", key)
			}
			seen[key.Text("kid")] = true
		}
		if len(seen) == 0 {
			t.Error("the key set is empty")
		}
	}
}

func TestCertificationBasic(t *testing.T)    { certifyBasic(t, "") }
func TestCertificationFormPost(t *testing.T) { certifyBasic(t, "form_post") }

// certifyBasic is the plan Basic OP with a response_mode.
func certifyBasic(t *testing.T, mode string) {
	fixture := newHosted(t)
	account := certificationAccount(t, fixture)
	// The plan sends no PKCE but in its own module.
	party := newCertified(t, fixture, account, mode, e2e.Object{"requirePkce": false})
	second := newCertified(t, fixture, account, mode, e2e.Object{"requirePkce": false,
		"tokenEndpointAuthMethod": "client_secret_post"})
	signedIn := client.Browser()
	tokens, claims, _ := party.login(signedIn, nil)
	if claims["name"] != nil || claims["email"] != nil {
		t.Errorf("the ID token has claims of scopes: %v", claims)
	}
	silent := url.Values{"prompt": {"none"}}
	same := func(p *certified, changes url.Values) {
		p.Helper()
		if _, again, _ := p.login(signedIn, changes); again.Text("sub") != claims.Text("sub") || again["auth_time"] != claims["auth_time"] {
			p.Errorf("the claims are %v, before %v", again, claims)
		}
	}
	hasScope := func(scopes string, has map[string]func(any) bool) func(*certified) {
		return func(p *certified) {
			_, claims, info := p.login(signedIn, url.Values{"scope": {scopes}})
			for name, is := range has {
				if !is(info[name]) || claims[name] != nil {
					p.Errorf("the claim %s is %v in UserInfo and %v in the ID token", name, info[name], claims[name])
				}
			}
		}
	}
	text := func(v any) bool { text, _ := v.(string); return text != "" }
	number := func(v any) bool { number, _ := v.(float64); return number > 1e9 }
	flag := func(v any) bool { _, is := v.(bool); return is }
	object := func(v any) bool { _, is := v.(map[string]any); return is }
	accepted := func(changes url.Values) func(*certified) {
		return func(p *certified) { p.login(signedIn, changes) }
	}
	page := func(changes url.Values) func(*certified) {
		return func(p *certified) {
			answer := signedIn.Want(p.T, http.StatusBadRequest, asBrowser(p.request(changes)))
			if answer.Header.Get("Location") != "" || !strings.Contains(string(answer.Body), "<h1>") {
				p.Error(answer)
			}
		}
	}
	plain := url.Values{"code_challenge": {""}, "code_challenge_method": {""}}
	for module, check := range map[string]func(*certified){
		"server": func(p *certified) {
			p.verifier = "" // without PKCE
			p.login(client.Browser(), plain)
		},
		"server-client-secret-post":               func(p *certified) { second.in(p.T).login(client.Browser(), nil) },
		"userinfo-get":                            accepted(nil),
		"ensure-request-with-valid-pkce-succeeds": accepted(nil),
		"response-type-missing": func(p *certified) {
			values, _ := p.respond(signedIn, url.Values{"response_type": {""}})
			if values.Get("error") != "invalid_request" || values.Get("code") != "" {
				p.Errorf("the response is %v", values)
			}
		},
		"userinfo-post-header": func(p *certified) {
			r := p.userInfo(tokens.Text("access_token"))
			r.Method = http.MethodPost
			client.Want(p.T, http.StatusOK, r)
		},
		"userinfo-post-body": func(p *certified) {
			r := e2e.Post(p.issuer+"/userinfo", url.Values{"access_token": {tokens.Text("access_token")}})
			r.Anonymous = true
			client.Want(p.T, http.StatusOK, r)
		},
		"ensure-request-without-nonce-succeeds-for-code-flow": func(p *certified) {
			if _, claims, _ := p.login(signedIn, url.Values{"nonce": {""}}); claims["nonce"] != nil {
				p.Errorf("the claims are %v", claims)
			}
		},
		"scope-profile": hasScope("openid profile", map[string]func(any) bool{"name": text, "given_name": text,
			"family_name": text, "preferred_username": text, "updated_at": number, "picture": text}),
		"scope-email":   hasScope("openid email", map[string]func(any) bool{"email": text, "email_verified": flag}),
		"scope-address": hasScope("openid address", map[string]func(any) bool{"address": object}),
		"scope-phone":   hasScope("openid phone", nil),
		"scope-all": hasScope("openid profile email address phone", map[string]func(any) bool{"name": text,
			"email": text, "address": object}),
		"alternate-happy-flow": accepted(url.Values{"scope": {"email profile openid"}}),
		"display-page":         accepted(url.Values{"display": {"page"}}),
		"display-popup":        accepted(url.Values{"display": {"popup"}}),
		"prompt-login": func(p *certified) {
			browser := client.Browser()
			p.respond(browser, nil)
			if _, asked := p.respond(browser, url.Values{"prompt": {"login"}}); !asked {
				p.Error("the user is not asked again")
			}
		},
		"prompt-none-not-logged-in": func(p *certified) {
			if values, asked := p.respond(client.Browser(), silent); values.Get("error") != "login_required" || asked {
				p.Errorf("the response is %v", values)
			}
		},
		"max-age-1": func(p *certified) {
			browser := client.Browser()
			if values, asked := p.respond(browser, url.Values{"max_age": {"1"}}); !asked || values.Get("code") == "" {
				p.Errorf("the response is %v, asked: %t", values, asked)
			}
			// An age of nothing is over at once.
			if _, again := p.respond(browser, url.Values{"max_age": {"0"}}); !again {
				p.Error("the user is not asked again")
			}
		},
		"ensure-request-with-unknown-parameter-succeeds": accepted(url.Values{"extra": {"foobar"}}),
		"login-hint":     accepted(url.Values{"login_hint": {account.Text("email")}}),
		"ui-locales":     accepted(url.Values{"ui_locales": {"se"}}),
		"claims-locales": accepted(url.Values{"claims_locales": {"se"}}),
		"ensure-request-with-acr-values-succeeds": func(p *certified) {
			if _, claims, _ := p.login(client.Browser(), url.Values{"acr_values": {"urn:doorward:acr:password x"}}); claims.Text("acr") != "urn:doorward:acr:password" {
				p.Errorf("the claims are %v", claims)
			}
		},
		"codereuse": func(p *certified) {
			values, _ := p.respond(signedIn, nil)
			first := client.WantObject(p.T, http.StatusOK, p.redeem(values.Get("code")))
			refusedGrant(p.T, p.redeem(values.Get("code")), "invalid_grant")
			client.Want(p.T, http.StatusUnauthorized, p.userInfo(first.Text("access_token")))
		},
		"ensure-registered-redirect-uri": page(url.Values{"redirect_uri": {callback + "/other"}}),
		"ensure-post-request-succeeds": func(p *certified) {
			address, query, _ := strings.Cut(p.request(url.Values{"response_mode": {p.mode}}), "?")
			values, err := url.ParseQuery(query)
			if err != nil {
				p.Fatal(err)
			}
			post := e2e.Post(address, values)
			post.Header = http.Header{"Accept": {"text/html"}, "Origin": {"https://shop.localhost"}}
			client.Browser().Want(p.T, http.StatusSeeOther, post)
		},
		"unsigned-request-object": func(p *certified) {
			values, _ := p.respond(signedIn, url.Values{"request": {"eyJhbGciOiJub25lIn0.e30."}})
			if values.Get("error") != "request_not_supported" {
				p.Errorf("the response is %v", values)
			}
		},
		"request-uri-unsigned": func(p *certified) {
			values, _ := p.respond(signedIn, url.Values{"request_uri": {"https://shop.localhost/request.jwt"}})
			if values.Get("error") != "request_uri_not_supported" {
				p.Errorf("the response is %v", values)
			}
		},
		"claims-essential": func(p *certified) {
			_, _, info := p.login(signedIn, url.Values{"scope": {"openid"}, "claims": {`{"userinfo":{"name":{"essential":true}}}`}})
			if info.Text("name") == "" {
				p.Errorf("UserInfo is %v", info)
			}
		},
		"prompt-none-logged-in": func(p *certified) { same(p, silent) },
		"max-age-10000":         func(p *certified) { same(p, url.Values{"max_age": {"10000"}}) },
		"id-token-hint": func(p *certified) {
			same(p, merged(silent, url.Values{"id_token_hint": {tokens.Text("id_token")}}))
		},
		"refresh-token": func(p *certified) {
			tokens, claims, _ := p.login(signedIn, url.Values{"scope": {"openid offline_access"}})
			grant := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Text("refresh_token")}}
			other := second.in(p.T)
			foreign := e2e.Post(other.issuer+"/token", merged(grant, url.Values{"client_id": {other.client.Text("clientId")},
				"client_secret": {other.secret}}))
			foreign.Anonymous = true
			refusedGrant(p.T, foreign, "invalid_grant")
			again := client.WantObject(p.T, http.StatusOK, p.call("/token", grant))
			renewed := p.checkIDToken(again)
			for _, name := range []string{"iss", "sub", "aud", "auth_time"} {
				if renewed[name] != claims[name] {
					p.Errorf("the claim %s is %v, before %v", name, renewed[name], claims[name])
				}
			}
		},
	} {
		t.Run(module, func(t *testing.T) { check(party.in(t)) })
	}
}

// refusedGrant checks the error of a token request.
func refusedGrant(t *testing.T, r e2e.Request, code string) {
	t.Helper()
	answer := client.Call(t, r)
	var body e2e.Object
	if err := json.Unmarshal(answer.Body, &body); err != nil || answer.Status/100 != 4 || body.Text("error") != code {
		t.Errorf("%s, want %s", answer, code)
	}
}
