package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/secure"
)

// fapiParty is a client under the FAPI 2.0 Security Profile: it authenticates by private_key_jwt, pushes its
// authorization requests, and its tokens are bound to a key by DPoP.
type fapiParty struct {
	*certified
	assertionKey, proofKey secure.SigningKey
}

func newFAPIParty(t *testing.T, fixture e2e.Fixture, account e2e.Object) *fapiParty {
	t.Helper()
	p := &fapiParty{}
	keys := []*secure.SigningKey{&p.assertionKey, &p.proofKey}
	for _, key := range keys {
		made, err := secure.NewSigningKey(rand.Text(), secure.ES256)
		if err != nil {
			t.Fatal(err)
		}
		*key = made
	}
	jwk, err := p.assertionKey.JWK()
	if err != nil {
		t.Fatal(err)
	}
	p.certified = &certified{account: account, relyingParty: newRelyingParty(t, fixture, e2e.Object{
		"tokenEndpointAuthMethod": "private_key_jwt", "jwks": e2e.Object{"keys": []json.RawMessage{jwk}},
		"redirectUris": []string{callback, callback + "?dummy=1"}})}
	return p
}

func (p *fapiParty) in(t *testing.T) *fapiParty {
	other := *p
	other.certified = p.certified.in(t)
	return &other
}

// sign signs claims, of which nil ones are left out.
func (p *fapiParty) sign(key secure.SigningKey, header e2e.Object, claims, changes e2e.Object) string {
	p.Helper()
	all := secure.Claims{}
	for _, from := range []e2e.Object{claims, changes} {
		for name, value := range from {
			all[name] = value
			if value == nil {
				delete(all, name)
			}
		}
	}
	text, err := key.Sign(header, all)
	if err != nil {
		p.Fatal(err)
	}
	return text.Reveal()
}

// assertion is a client assertion with changed claims.
func (p *fapiParty) assertion(changes e2e.Object) string {
	id, now := p.client.Text("clientId"), time.Now()
	return p.sign(p.assertionKey, e2e.Object{"typ": "JWT"}, e2e.Object{"iss": id, "sub": id, "aud": p.issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}, changes)
}

// proof is a proof of possession with changed header and claims.
func (p *fapiParty) proof(method, address, access string, header, changes e2e.Object) string {
	p.Helper()
	jwk, err := p.proofKey.JWK()
	if err != nil {
		p.Fatal(err)
	}
	claims := e2e.Object{"jti": rand.Text(), "htm": method, "htu": address, "iat": time.Now().Unix()}
	if access != "" {
		hash := sha256.Sum256([]byte(access))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(hash[:])
	}
	all := e2e.Object{"typ": "dpop+jwt", "jwk": jwk}
	maps.Copy(all, header)
	return p.sign(p.proofKey, all, claims, changes)
}

// send is a call of an endpoint with an assertion; a proof goes with it where one is given.
func (p *fapiParty) send(path, assertion string, form url.Values, proofs ...string) e2e.Request {
	all := merged(url.Values{"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion": {assertion}}, form)
	for name, values := range all {
		if len(values) == 1 && values[0] == "" {
			delete(all, name)
		}
	}
	r := e2e.Post(p.issuer+path, all)
	r.Anonymous, r.Header = true, http.Header{"DPoP": proofs}
	return r
}

// pushed pushes an authorization request with changed parameters.
func (p *fapiParty) pushed(changes url.Values) e2e.Request {
	_, query, _ := strings.Cut(p.request(changes), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		p.Fatal(err)
	}
	return p.send("/par", p.assertion(nil), values)
}

func (p *fapiParty) push(changes url.Values) string {
	p.Helper()
	return client.WantObject(p.T, http.StatusCreated, p.pushed(changes)).Text("request_uri")
}

// byURI is the authorization request of a pushed one.
func (p *fapiParty) byURI(uri string, more url.Values) string {
	return p.issuer + "/authorize?" + merged(url.Values{"client_id": {p.client.Text("clientId")}, "request_uri": {uri}},
		more).Encode()
}

// visit opens an address, logs in where the pages ask for it, and returns the response.
func (p *fapiParty) visit(browser *e2e.Client, address string) url.Values {
	p.Helper()
	location := browser.Want(p.T, http.StatusSeeOther, asBrowser(address)).Header.Get("Location")
	if strings.HasPrefix(location, pageOrigin(p.T)+"/#/") {
		page := p.page(browser, location)
		page.logIn(p.account.Text("email"))
		location = browser.Want(p.T, http.StatusSeeOther, asBrowser(page.back)).Header.Get("Location")
	}
	to, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, p.redirect) || to.Query().Get("iss") != p.issuer {
		p.Fatalf("the browser is sent to %s", location)
	}
	return to.Query()
}

func (p *fapiParty) codeForm(code string, changes url.Values) url.Values {
	return merged(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.redirect},
		"code_verifier": {p.verifier}}, changes)
}

func (p *fapiParty) code(browser *e2e.Client) string {
	p.Helper()
	return p.visit(browser, p.byURI(p.push(nil), nil)).Get("code")
}

func (p *fapiParty) redeem(code string, changes url.Values) e2e.Request {
	return p.send("/token", p.assertion(nil), p.codeForm(code, changes), p.proof("POST", p.issuer+"/token", "", nil, nil))
}

// resource is a call of UserInfo.
func (p *fapiParty) resource(token, scheme string, proofs ...string) e2e.Request {
	r := get(p.issuer + "/userinfo")
	r.Anonymous, r.Header = true, http.Header{"Authorization": {scheme + " " + token}, "DPoP": proofs}
	return r
}

// TestCertificationFAPI2 is the plan FAPI 2.0 Security Profile with private_key_jwt, DPoP and OpenID.
func TestCertificationFAPI2(t *testing.T) {
	fixture := newHosted(t)
	client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"profile": "FAPI2"})
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	party := newFAPIParty(t, fixture, account)
	second := newFAPIParty(t, fixture, account)
	if party.client["fapi"] != true {
		t.Errorf("the client is %v", party.client)
	}
	browser := client.Browser()

	t.Run("discovery", func(t *testing.T) {
		r := get(party.issuer + "/.well-known/openid-configuration")
		r.Anonymous = true
		document := client.WantObject(t, http.StatusOK, r)
		for _, name := range []string{"id_token_signing_alg_values_supported", "dpop_signing_alg_values_supported",
			"token_endpoint_auth_signing_alg_values_supported"} {
			values, _ := document[name].([]any)
			for _, value := range values {
				if value != "PS256" && value != "ES256" && value != "EdDSA" {
					t.Errorf("%s has %v", name, value)
				}
			}
			if len(values) == 0 {
				t.Errorf("%s is missing", name)
			}
		}
		if methods, _ := document["token_endpoint_auth_methods_supported"].([]any); len(methods) != 1 || methods[0] != "private_key_jwt" ||
			document["require_pushed_authorization_requests"] != true ||
			document["authorization_response_iss_parameter_supported"] != true ||
			document.Text("pushed_authorization_request_endpoint") != party.issuer+"/par" {
			t.Errorf("the document is %v", document)
		}
	})

	var access, refresh string
	t.Run("happy-flow", func(t *testing.T) {
		for _, p := range []*fapiParty{party.in(t), second.in(t)} {
			answer := client.WantObject(t, http.StatusOK, p.redeem(p.code(client.Browser()), nil))
			if answer.Text("token_type") != "DPoP" {
				t.Errorf("the tokens are %v", answer)
			}
			access, refresh = answer.Text("access_token"), answer.Text("refresh_token")
			p.checkIDToken(answer)
			client.Want(t, http.StatusOK, p.resource(access, "DPoP", p.proof("GET", p.issuer+"/userinfo", access, nil, nil)))
		}
		p := party.in(t)
		p.redirect = callback + "?dummy=1"
		if values := p.visit(browser, p.byURI(p.push(nil), nil)); values.Get("dummy") != "1" || values.Get("code") == "" {
			t.Errorf("the response is %v", values)
		}
	})

	t.Run("authorization requests", func(t *testing.T) {
		p := party.in(t)
		without := p.visit(browser, p.byURI(p.push(url.Values{"state": {""}, "nonce": {""}}), nil))
		tokens := client.WantObject(t, http.StatusOK, p.redeem(without.Get("code"), nil))
		if claims := e2e.Claims(t, tokens.Text("id_token")); without.Has("state") || claims["nonce"] != nil {
			t.Errorf("the response is %v, the claims %v", without, claims)
		}
		for _, length := range []int{64, 384} {
			nonce := strings.Repeat("n", length)
			code := p.visit(browser, p.byURI(p.push(url.Values{"nonce": {nonce}, "state": {nonce}}), nil))
			tokens := client.WantObject(t, http.StatusOK, p.redeem(code.Get("code"), nil))
			if claims := e2e.Claims(t, tokens.Text("id_token")); claims.Text("nonce") != nonce || code.Get("state") != nonce {
				t.Errorf("a nonce of %d characters comes back as %q", length, claims.Text("nonce"))
			}
		}
		ignored := p.visit(browser, p.byURI(p.push(nil), url.Values{"state": {"other"}, "scope": {"email"}}))
		if ignored.Get("state") != "a b~?ü&=#" {
			t.Errorf("a parameter beside the pushed ones has an effect: %v", ignored)
		}
		if got := p.visit(browser, p.request(nil)); got.Get("error") != "invalid_request" {
			t.Errorf("a request that was not pushed is answered with %v", got)
		}
	})
	refused := func(p *fapiParty, what, code string, r e2e.Request) {
		p.Helper()
		p.Run(what, func(t *testing.T) { refusedGrant(t, r, code) })
	}
	t.Run("par", func(t *testing.T) {
		p := party.in(t)
		for what, c := range map[string]struct {
			code    string
			changes url.Values
		}{
			"redirect_uri missing":      {"invalid_request", url.Values{"redirect_uri": {""}}},
			"redirect_uri unregistered": {"invalid_request", url.Values{"redirect_uri": {callback + "/other"}}},
			"code id_token":             {"unsupported_response_type", url.Values{"response_type": {"code id_token"}}},
			"token":                     {"unsupported_response_type", url.Values{"response_type": {"token"}}},
			"no PKCE":                   {"invalid_request", url.Values{"code_challenge": {""}, "code_challenge_method": {""}}},
			"plain PKCE":                {"invalid_request", url.Values{"code_challenge_method": {"plain"}}},
			"request_uri inside":        {"invalid_request", url.Values{"request_uri": {"urn:ietf:params:oauth:request_uri:x"}}},
		} {
			refused(p, what, c.code, p.pushed(c.changes))
		}
		wrongMethod := get(p.issuer + "/par")
		wrongMethod.Anonymous = true
		if answer := client.Call(t, wrongMethod); answer.Status/100 != 4 {
			t.Error(answer)
		}
		foreign := browser.Call(t, asBrowser(p.byURI(second.in(t).push(nil), nil)))
		if foreign.Status != http.StatusBadRequest || foreign.Header.Get("Location") != "" {
			t.Errorf("the pushed request of another client: %s", foreign)
		}
		uri, fresh := p.push(nil), client.Browser()
		fresh.Want(t, http.StatusSeeOther, asBrowser(p.byURI(uri, nil)))
		if p.visit(fresh, p.byURI(uri, nil)).Get("code") == "" {
			t.Error("a visit has used the pushed request up")
		}
		again := fresh.Call(t, asBrowser(p.byURI(uri, nil)))
		if strings.Contains(again.Header.Get("Location"), "code=") {
			t.Errorf("a pushed request is used twice: %s", again.Header.Get("Location"))
		}
	})
	t.Run("client-assertion", func(t *testing.T) {
		p := party.in(t)
		now := time.Now()
		_, query, _ := strings.Cut(p.request(nil), "?")
		parameters, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		for what, changes := range map[string]e2e.Object{
			"expired": {"exp": now.Add(-5 * time.Minute).Unix()}, "wrong aud": {"aud": "https://other.test"},
			"no sub": {"sub": nil}, "aud in an array": {"aud": []string{p.issuer}}, "aud of the token endpoint": {"aud": p.issuer + "/token"},
			"aud of PAR": {"aud": p.issuer + "/par"}, "nbf a minute ahead": {"nbf": now.Add(90 * time.Second).Unix()},
		} {
			refused(p, what, "invalid_client", p.send("/par", p.assertion(changes), parameters))
		}
		refused(p, "absent", "invalid_client", p.send("/par", "", merged(parameters, url.Values{"client_assertion_type": {""}})))
		refused(p, "another client's client_id", "invalid_client", p.send("/par", p.assertion(nil),
			merged(parameters, url.Values{"client_id": {second.client.Text("clientId")}})))
		client.Want(t, http.StatusCreated, p.send("/par", p.assertion(e2e.Object{"nbf": now.Add(8 * time.Second).Unix()}), parameters))
		used := p.assertion(nil)
		client.Want(t, http.StatusCreated, p.send("/par", used, parameters))
		refused(p, "used twice", "invalid_client", p.send("/par", used, parameters))
	})
	t.Run("code", func(t *testing.T) {
		p := party.in(t)
		refused(p, "missing verifier", "invalid_grant", p.redeem(p.code(browser), url.Values{"code_verifier": {""}}))
		refused(p, "wrong verifier", "invalid_grant", p.redeem(p.code(browser), url.Values{"code_verifier": {strings.Repeat("x", 43)}}))
		refused(p, "another client", "invalid_grant", second.in(t).redeem(p.code(browser), nil))
		code := p.code(browser)
		refused(p, "no proof", "invalid_dpop_proof", p.send("/token", p.assertion(nil), p.codeForm(code, nil)))
		tokens := client.WantObject(t, http.StatusOK, p.redeem(p.code(browser), nil))
		access, refresh = tokens.Text("access_token"), tokens.Text("refresh_token")
		bound := client.WantObject(t, http.StatusCreated, func() e2e.Request {
			r := p.pushed(nil)
			r.Header = http.Header{"DPoP": {p.proof("POST", p.issuer+"/par", "", nil, nil)}}
			return r
		}()).Text("request_uri")
		thief := *p
		key, err := secure.NewSigningKey("thief", secure.ES256)
		if err != nil {
			t.Fatal(err)
		}
		thief.proofKey = key
		refused(p, "the key of another", "invalid_dpop_proof", thief.redeem(p.visit(browser, p.byURI(bound, nil)).Get("code"), nil))
		if refresh != "" {
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
			refused(p, "refresh without proof", "invalid_dpop_proof", p.send("/token", p.assertion(nil), form))
			client.Want(t, http.StatusOK, p.send("/token", p.assertion(nil), form, p.proof("POST", p.issuer+"/token", "", nil, nil)))
		}
	})
	t.Run("dpop", func(t *testing.T) {
		p := party.in(t)
		address := p.issuer + "/userinfo"
		proof := func(header, changes e2e.Object) string { return p.proof("GET", address, access, header, changes) }
		upper := strings.Replace(address, "https://localhost", "HTTPS://LOCALHOST", 1)
		now := time.Now().Unix()
		for what, changes := range map[string]e2e.Object{
			"iat 10 s ago": {"iat": now - 10}, "iat in 10 s": {"iat": now + 10}, "nbf and exp": {"nbf": now + 100, "exp": now - 100},
			"query and fragment": {"htu": address + "?a=b#c"}, "letter case": {"htu": upper}, "more claims": {"x": "y"},
		} {
			if answer := client.Call(t, p.resource(access, "DPoP", proof(nil, changes))); answer.Status != http.StatusOK {
				t.Errorf("a proof with %s: %s", what, answer)
			}
		}
		client.Want(t, http.StatusOK, p.resource(access, "dpop", proof(nil, nil)))
		used := proof(nil, nil)
		client.Want(t, http.StatusOK, p.resource(access, "DPoP", used))
		private, err := p.proofKey.JWK()
		if err != nil {
			t.Fatal(err)
		}
		private = json.RawMessage(strings.Replace(string(private), "{", `{"d":"`+base64.RawURLEncoding.EncodeToString(make([]byte, 32))+`",`, 1))
		unsigned := func(alg string) string {
			parts := strings.Split(proof(nil, nil), ".")
			header, err := base64.RawURLEncoding.DecodeString(parts[0])
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(header), `"alg":"ES256"`, `"alg":"`+alg+`"`, 1)
			return base64.RawURLEncoding.EncodeToString([]byte(changed)) + "." + parts[1] + "." + parts[2]
		}
		good := proof(nil, nil)
		for what, r := range map[string]e2e.Request{
			"no proof":        p.resource(access, "DPoP"),
			"Bearer":          p.resource(access, "Bearer", proof(nil, nil)),
			"Bearer alone":    p.resource(access, "Bearer"),
			"two proofs":      p.resource(access, "DPoP", proof(nil, nil), proof(nil, nil)),
			"malformed":       p.resource(access, "DPoP", "a.b.c"),
			"no typ":          p.resource(access, "DPoP", proof(e2e.Object{"typ": "JWT"}, nil)),
			"no jwk":          p.resource(access, "DPoP", proof(e2e.Object{"jwk": nil}, nil)),
			"private jwk":     p.resource(access, "DPoP", proof(e2e.Object{"jwk": private}, nil)),
			"no jti":          p.resource(access, "DPoP", proof(nil, e2e.Object{"jti": nil})),
			"no htm":          p.resource(access, "DPoP", proof(nil, e2e.Object{"htm": nil})),
			"no htu":          p.resource(access, "DPoP", proof(nil, e2e.Object{"htu": nil})),
			"no iat":          p.resource(access, "DPoP", proof(nil, e2e.Object{"iat": nil})),
			"no ath":          p.resource(access, "DPoP", proof(nil, e2e.Object{"ath": nil})),
			"wrong htm":       p.resource(access, "DPoP", proof(nil, e2e.Object{"htm": "POST"})),
			"wrong htu":       p.resource(access, "DPoP", proof(nil, e2e.Object{"htu": p.issuer + "/token"})),
			"wrong ath":       p.resource(access, "DPoP", proof(nil, e2e.Object{"ath": "x"})),
			"wrong signature": p.resource(access, "DPoP", good[:len(good)-6]+"AAAAAA"),
			"none":            p.resource(access, "DPoP", unsigned("none")),
			"RS256":           p.resource(access, "DPoP", unsigned("RS256")),
			"an hour ago":     p.resource(access, "DPoP", proof(nil, e2e.Object{"iat": now - 3600})),
			"in an hour":      p.resource(access, "DPoP", proof(nil, e2e.Object{"iat": now + 3600})),
			"used":            p.resource(access, "DPoP", used),
		} {
			if answer := client.Call(t, r); answer.Status != http.StatusUnauthorized && answer.Status != http.StatusBadRequest {
				t.Errorf("a call with %s: %s", what, answer)
			}
		}
	})
	t.Run("user-rejects-authentication", func(t *testing.T) {
		p, fresh := party.in(t), client.Browser()
		location := fresh.Want(t, http.StatusSeeOther, asBrowser(p.byURI(p.push(nil), nil))).Header.Get("Location")
		page := p.page(fresh, location)
		page.call(http.StatusNoContent, http.MethodPost, fixture.Application.Link(t, "loginAttempts")+"/cancel", nil)
		back := fresh.Want(t, http.StatusSeeOther, asBrowser(page.back)).Header.Get("Location")
		if got := p.answer(back); got.Get("error") != "access_denied" {
			t.Errorf("the response is %v", got)
		}
	})
	t.Run("client-credentials", func(t *testing.T) {
		service := newFAPIService(t, fixture)
		form := url.Values{"grant_type": {"client_credentials"}}
		proof := func() string { return service.proof("POST", service.issuer+"/token", "", nil, nil) }
		issued := client.WantObject(t, http.StatusOK, service.send("/token", service.assertion(nil), form, proof()))
		if issued.Text("token_type") != "DPoP" || issued["refresh_token"] != nil || issued["id_token"] != nil {
			t.Errorf("the tokens are %v", issued)
		}
		refused(service, "no proof", "invalid_dpop_proof", service.send("/token", service.assertion(nil), form))
		refused(service, "aud in an array", "invalid_client", service.send("/token", service.assertion(e2e.Object{
			"aud": []string{service.issuer}}), form, proof()))
	})
	t.Run("tls", func(t *testing.T) {
		for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
			config := client.TLS()
			config.MinVersion, config.MaxVersion = version, version
			if conn, err := tls.Dial("tcp", client.Address(), config); err == nil {
				_ = conn.Close()
				t.Errorf("%s is accepted", tls.VersionName(version))
			}
		}
		conn, err := tls.Dial("tcp", client.Address(), client.TLS())
		if err != nil {
			t.Fatal(err)
		}
		if version := conn.ConnectionState().Version; version != tls.VersionTLS13 {
			t.Errorf("%s is preferred", tls.VersionName(version))
		}
		_ = conn.Close()
	})
}

// newFAPIService is a client of an application of type service under the profile.
func newFAPIService(t *testing.T, fixture e2e.Fixture) *fapiParty {
	t.Helper()
	made := newFAPIParty(t, fixture, nil)
	jwk, err := made.assertionKey.JWK()
	if err != nil {
		t.Fatal(err)
	}
	made.relyingParty = newRelyingParty(t, fixture, e2e.Object{"applicationType": "service",
		"tokenEndpointAuthMethod": "private_key_jwt", "jwks": e2e.Object{"keys": []json.RawMessage{jwk}}})
	return made
}
