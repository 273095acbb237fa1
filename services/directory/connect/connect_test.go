package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/providertest"
	"github.com/doorward/doorward/pkg/secure"
)

const callback = "https://shop.apps.localhost/authorize/callback"

// trusting is a guard that reaches test servers.
func trusting(t *testing.T, authorities string) outbound.Guard {
	t.Helper()
	guard, err := outbound.Config{PrivateNetworks: []string{"127.0.0.0/8"}, CA: authorities}.Open()
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// start serves a provider that stands in for all of the social ones.
func start(t *testing.T) (*Client, *providertest.Provider) {
	t.Helper()
	p, authority := providertest.Start(t)
	endpoints := map[string]Endpoints{}
	for id := range publicEndpoints {
		endpoints[id] = Endpoints{
			Authorization: p.URL + "/authorize", Token: p.URL + "/token", Resource: p.URL + "/user",
			TokenInfo: p.URL + "/tokeninfo",
			JWKS:      p.URL + "/jwks", Issuer: p.URL, Introspection: p.URL + "/introspect",
			TokenCheck: p.URL + "/applications/{clientId}/token",
		}
		if id == "facebook" {
			e := endpoints[id]
			e.TokenCheck = p.URL + "/debug_token"
			endpoints[id] = e
		}
	}
	return New(trusting(t, authority), endpoints, time.Now), p
}

func social(id string) Provider {
	return Provider{
		ID: id, ClientID: providertest.ClientID, ClientSecret: providertest.ClientSecret, RedirectURI: callback,
		Scope: []string{"email"},
	}
}

func forge(p *providertest.Provider) Provider {
	f := social("forge")
	f.IDField, f.AccessTokenType = "id", "bearer"
	f.Endpoints = Endpoints{
		Authorization: p.URL + "/authorize", Token: p.URL + "/token", Resource: p.URL + "/user",
		Introspection: p.URL + "/introspect",
	}
	return f
}

func openID(p *providertest.Provider) Provider {
	f := social("corp")
	f.DiscoveryURL, f.IDField, f.Scope = p.URL, "sub", []string{"openid", "email"}
	return f
}

func TestEachProviderStatesItsUser(t *testing.T) {
	t.Parallel()
	c, p := start(t)
	jo := func(id string, members map[string]any) Login {
		members["id"] = id
		return Login{AccessToken: secure.Secret(p.AddUser(id, members)), AccessTokenSecret: "s"}
	}
	nested := forge(p)
	nested.ID, nested.IDField, nested.AccessTokenType = "nested", "items[0].user_id", "oauth_token"
	query := forge(p)
	query.ID, query.AccessTokenType = "query", "access_token"
	for _, test := range []struct {
		provider Provider
		login    Login
		want     directoryapi.ProviderUser
	}{
		{social("google"), jo("g",
			map[string]any{"email": "jo@example.test", "verified_email": true, "given_name": "Jo", "family_name": "Doe"}),
			directoryapi.ProviderUser{
				ExternalID: "g", Email: "jo@example.test", EmailVerified: true, GivenName: "Jo", Surname: "Doe",
			}},
		{social("google"), jo("g2", map[string]any{"email": "jo@example.test", "email_verified": false}),
			directoryapi.ProviderUser{ExternalID: "g2", Email: "jo@example.test"}},
		{social("facebook"), jo("f",
			map[string]any{"email": "jo@example.test", "first_name": "Jo", "middle_name": "M", "last_name": "Doe"}),
			directoryapi.ProviderUser{
				ExternalID: "f", Email: "jo@example.test", EmailVerified: true, GivenName: "Jo", MiddleName: "M", Surname: "Doe",
			}},
		{
			social("facebook"), jo("f2", map[string]any{"name": "Jo Doe"}),
			directoryapi.ProviderUser{ExternalID: "f2", GivenName: "Jo", Surname: "Doe"},
		},
		{social("github"), jo("gh",
			map[string]any{"login": "jo", "name": "Jo Ann Doe", "email": "public@example.test", "emails": []any{
				map[string]any{"email": "old@example.test", "verified": true},
				map[string]any{"email": "jo@example.test", "primary": true, "verified": true}}}),
			directoryapi.ProviderUser{
				ExternalID: "gh", Email: "jo@example.test", EmailVerified: true, GivenName: "Jo Ann", Surname: "Doe",
			}},
		{social("github"), jo("gh2",
			map[string]any{"emails": []any{map[string]any{"email": "jo@example.test", "primary": true, "verified": false}}}),
			directoryapi.ProviderUser{ExternalID: "gh2", Email: "jo@example.test"}},
		{social("github"), jo("gh3", map[string]any{"email": "public@example.test", "name": "Jo"}),
			directoryapi.ProviderUser{ExternalID: "gh3", Email: "public@example.test", EmailVerified: true, GivenName: "Jo"}},
		{social("linkedin"), jo("l", map[string]any{"firstName": "Jo", "lastName": "Doe", "emailAddress": "jo@example.test"}),
			directoryapi.ProviderUser{
				ExternalID: "l", Email: "jo@example.test", EmailVerified: true, GivenName: "Jo", Surname: "Doe",
			}},
		{social("linkedin"), jo("l2",
			map[string]any{"given_name": "Jo", "email": "jo@example.test", "email_verified": false}),
			directoryapi.ProviderUser{ExternalID: "l2", Email: "jo@example.test", GivenName: "Jo"}},
		{social("twitter"), jo("12345678901234567890",
			map[string]any{"id_str": "12345678901234567890", "name": "Jo Doe", "email": "jo@example.test"}),
			directoryapi.ProviderUser{
				ExternalID: "12345678901234567890", Email: "jo@example.test", EmailVerified: true, GivenName: "Jo", Surname: "Doe",
			}},
		{forge(p), jo("o", map[string]any{"email": "jo@example.test", "login": "jo", "first_name": "Jo"}),
			directoryapi.ProviderUser{
				ExternalID: "o", Email: "jo@example.test", EmailUnstated: true, Username: "jo", GivenName: "Jo",
			}},
		{forge(p), jo("o2", map[string]any{"email": "jo@example.test", "email_verified": false}),
			directoryapi.ProviderUser{ExternalID: "o2", Email: "jo@example.test"}},
		{nested, jo("n", map[string]any{
			"items": []any{map[string]any{"user_id": 7}}, "email": "jo@example.test", "email_verified": true,
		}),
			directoryapi.ProviderUser{ExternalID: "7", Email: "jo@example.test", EmailVerified: true}},
		{
			query, jo("q", map[string]any{"email": "jo@example.test"}),
			directoryapi.ProviderUser{ExternalID: "q", Email: "jo@example.test", EmailUnstated: true},
		},
	} {
		got, err := c.User(t.Context(), test.provider, test.login)
		if err != nil {
			t.Errorf("the login at %s failed: %v", test.provider.ID, err)
			continue
		}
		if got.Tokens.AccessToken != test.login.AccessToken || !json.Valid(got.UserInfo) {
			t.Errorf("%s: the tokens or the user object are lost: %s", test.provider.ID, got.UserInfo)
		}
		got.UserInfo, got.Tokens = nil, directoryapi.ProviderTokens{}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", test.want) {
			t.Errorf("%s: %+v, want %+v", test.provider.ID, got, test.want)
		}
	}
}

// refusal wants an error of the catalogue and returns its reason.
func refusal(t *testing.T, err error, want *apierr.Error) string {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
		return ""
	}
	return apierr.From(err).Reason
}

func TestWhatAProviderRefusesIsRepeated(t *testing.T) {
	t.Parallel()
	c, p := start(t)
	p.AddUser("1", map[string]any{"id": "1", "email": "jo@example.test"})
	for id, want := range map[string]string{
		"facebook": "Facebook error message: 401 Unauthorized: Bad credentials",
		"github":   "Github error message: 401 Unauthorized: Bad credentials",
		"google":   "Google error message: 401 Unauthorized: Bad credentials",
		"twitter":  "Twitter error message: 401 Unauthorized: Bad credentials",
		"linkedin": "Linkedin error message: Bad credentials",
	} {
		_, err := c.User(t.Context(), social(id), Login{AccessToken: "bad-token", AccessTokenSecret: "s"})
		if got := refusal(t, err, apierr.ProviderRefused); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	_, err := c.User(t.Context(), social("linkedin"), Login{Code: "a-bad-code"})
	if got := refusal(t, err, apierr.ProviderRefused); got != "Linkedin error message: The code *** is not valid." {
		t.Error(got)
	}
	_, err = c.User(t.Context(), social("google"), Login{Code: "a-bad-code"})
	got := refusal(t, err, apierr.ProviderRefused)
	if !strings.HasPrefix(got, "Google error message: 400 Bad Request: invalid_grant: The code") ||
		strings.Contains(got, "a-bad-code") {
		t.Error(got)
	}
	wrong := social("google")
	wrong.ClientSecret = "wrong"
	_, err = c.User(t.Context(), wrong, Login{Code: secure.Secret(p.Code("1", callback, ""))})
	if got := refusal(t, err, apierr.ProviderRefused); got != "Google error message: 401 Unauthorized: invalid_client" {
		t.Error(got)
	}
	nameless := forge(p)
	nameless.IDField = "data.id"
	_, err = c.User(t.Context(), nameless,
		Login{AccessToken: secure.Secret(p.AddUser("2", map[string]any{"email": "x@example.test"}))})
	refusal(t, err, apierr.ProviderIncomplete)
}

// Whoever runs another application of a provider has access tokens of its users.
func TestATokenOfAnotherClientIsRefused(t *testing.T) {
	t.Parallel()
	c, p := start(t)
	own := secure.Secret(p.AddUser("1", map[string]any{"id": "1", "sub": "1", "email": "jo@example.test"}))
	foreign := secure.Secret(p.OtherClientToken("1"))
	for _, provider := range []Provider{
		social("google"), social("facebook"), social("github"), social("linkedin"), forge(p), openID(p),
	} {
		if _, err := c.User(t.Context(), provider, Login{AccessToken: own}); err != nil {
			t.Errorf("%s: a token of the directory's client returned %v", provider.ID, err)
		}
		provider.AcceptForeignTokens = true // it can be asked
		_, err := c.User(t.Context(), provider, Login{AccessToken: foreign})
		refusal(t, err, apierr.ProviderOtherClient)
	}
	_, err := c.User(t.Context(), social("twitter"), Login{AccessToken: own, AccessTokenSecret: "s"})
	if err != nil {
		t.Errorf("twitter: a token of the directory's client returned %v", err)
	}
	// The provider refuses a request that another consumer key than that of the token signs.
	_, err = c.User(t.Context(), social("twitter"), Login{AccessToken: foreign, AccessTokenSecret: "s"})
	refusal(t, err, apierr.ProviderRefused)

	for claim, value := range map[string]string{"azp": "another", "client_id": "another", "appid": "another"} {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{claim: value}).SignedString([]byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.User(t.Context(), openID(p), Login{AccessToken: secure.Secret(signed)})
		refusal(t, err, apierr.ProviderOtherClient)
	}
}

// A token is refused where its provider does not say to which client it issued it, unless the
// directory takes that risk.
func TestATokenOfAProviderThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	_, p := start(t)
	c := New(trusting(t, p.Certificate), map[string]Endpoints{
		"google": {Resource: p.URL + "/user"}, "facebook": {Resource: p.URL + "/user"}, "github": {Resource: p.URL + "/user"},
		"linkedin": {Resource: p.URL + "/user"},
	}, time.Now)
	token := secure.Secret(p.AddUser("1", map[string]any{"id": "1", "email": "jo@example.test"}))
	silent := forge(p)
	silent.Introspection = ""
	for _, provider := range []Provider{
		silent, social("google"), social("facebook"), social("github"), social("linkedin"),
	} {
		before := len(p.Asked())
		_, err := c.User(t.Context(), provider, Login{AccessToken: token})
		if got := refusal(t, err, apierr.ProviderOtherClient); !strings.Contains(got, "cannot be asked") ||
			len(p.Asked()) != before {
			t.Errorf("%s: %q, after asking for %v", provider.ID, got, p.Asked()[before:])
		}
		provider.AcceptForeignTokens = true
		if user, err := c.User(t.Context(), provider, Login{AccessToken: token}); err != nil || user.ExternalID != "1" {
			t.Errorf("%s, which accepts foreign tokens: %+v, %v", provider.ID, user, err)
		}
	}
	code := secure.Secret(p.Code("1", callback, ""))
	if user, err := c.User(t.Context(), silent, Login{Code: code}); err != nil || user.ExternalID != "1" {
		t.Errorf("an authorization code: %+v, %v", user, err)
	}
}

// What a provider answers to the question for the client of a token, and what follows.
func TestAnswersOfATokenCheck(t *testing.T) {
	t.Parallel()
	var status int
	var answer string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/user" {
			_, _ = w.Write([]byte(`{"id":"1","email":"jo@example.test"}`))
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	at := Endpoints{
		Resource: server.URL + "/user", TokenInfo: server.URL + "/check", TokenCheck: server.URL + "/check",
		Introspection: server.URL + "/check",
	}
	c := New(trusting(t, providertest.Authority(server)),
		map[string]Endpoints{"google": at, "facebook": at, "github": at, "linkedin": at}, time.Now)
	generic := social("forge")
	generic.Endpoints = at
	own := providertest.ClientID
	for _, test := range []struct {
		provider Provider
		status   int
		answer   string
		want     error
	}{
		{generic, 200, `{"active":true,"client_id":"` + own + `"}`, nil},
		{generic, 200, `{"active":"true","azp":"` + own + `"}`, nil},
		{generic, 200, `{"active":true,"aud":"` + own + `"}`, nil},
		{generic, 200, `{"active":true,"aud":["api","` + own + `"]}`, nil},
		{generic, 200, `{"active":true,"client_id":"other","aud":"` + own + `"}`, apierr.ProviderOtherClient},
		{generic, 200, `{"active":true}`, apierr.ProviderOtherClient},
		{generic, 200, `{"active":true,"aud":["api"]}`, apierr.ProviderOtherClient},
		{generic, 200, `{"active":false,"client_id":"` + own + `"}`, apierr.ProviderOtherClient},
		{generic, 200, `[]`, apierr.ProviderOtherClient},
		{generic, 200, `<html>`, apierr.ProviderOtherClient},
		{generic, 401, `{"error":"invalid_client"}`, apierr.ProviderRefused},
		{generic, 302, ``, apierr.ProviderRefused},
		{generic, 503, ``, apierr.ProviderRefused},
		{social("linkedin"), 200, `{"active":true,"client_id":"` + own + `"}`, nil},
		{social("linkedin"), 200, `{"active":false}`, apierr.ProviderOtherClient},
		{social("github"), 200, `{"app":{"client_id":"` + own + `"}}`, nil},
		{social("github"), 200, `{"app":{"client_id":"other"}}`, apierr.ProviderOtherClient},
		{social("github"), 404, `{"message":"Not Found"}`, apierr.ProviderOtherClient},
		{social("github"), 422, `{}`, apierr.ProviderOtherClient},
		{social("github"), 401, `{}`, apierr.ProviderRefused},
		{social("facebook"), 200, `{"data":{"is_valid":true,"app_id":"` + own + `"}}`, nil},
		{social("facebook"), 200, `{"data":{"is_valid":true,"app_id":"other"}}`, apierr.ProviderOtherClient},
		{social("facebook"), 200, `{"data":{"is_valid":false,"app_id":"` + own + `"}}`, apierr.ProviderOtherClient},
		{social("facebook"), 200, `{}`, apierr.ProviderOtherClient},
		{social("facebook"), 400, `{"error":{"code":190}}`, apierr.ProviderRefused},
		{social("google"), 200, `{"aud":"` + own + `"}`, nil},
		{social("google"), 200, `{}`, apierr.ProviderOtherClient},
		{social("google"), 400, `{"error":"invalid_token"}`, apierr.ProviderRefused},
	} {
		status, answer = test.status, test.answer
		if _, err := c.User(t.Context(), test.provider, Login{AccessToken: "t"}); !errors.Is(err, test.want) {
			t.Errorf("%s, whose check answers %d %s: %v, want %v", test.provider.ID, status, answer, err, test.want)
		}
	}
}

func TestUsersOfAHostedDomain(t *testing.T) {
	t.Parallel()
	c, p := start(t)
	hosted := social("google")
	hosted.HD = "corp.test"
	inside := p.AddUser("1", map[string]any{"id": "1", "email": "jo@corp.test", "hd": "corp.test"})
	outside := p.AddUser("2", map[string]any{"id": "2", "email": "jo@corp.test"})
	if _, err := c.User(t.Context(), hosted, Login{AccessToken: secure.Secret(inside)}); err != nil {
		t.Error(err)
	}
	_, err := c.User(t.Context(), hosted, Login{AccessToken: secure.Secret(outside)})
	refusal(t, err, apierr.ProviderRefused)
}

func TestALoginThatABrowserBegins(t *testing.T) {
	t.Parallel()
	c, p := start(t)
	p.AddUser("1", map[string]any{"id": "1", "sub": "1", "email": "jo@example.test", "email_verified": true})
	offline := social("google")
	offline.HD, offline.Display, offline.AccessType, offline.Scope = "*", "popup", "offline", []string{"openid", "email"}
	for _, test := range []struct {
		provider    Provider
		pkce, nonce bool
	}{{offline, true, true}, {social("facebook"), true, false}, {social("github"), true, false},
		{social("linkedin"), false, false}, {forge(p), false, false},
		{openID(p), true, true}} {
		begun, err := c.Begin(t.Context(), test.provider, AuthorizationRequest{RedirectURI: callback, State: "state-1"})
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(begun.URL)
		if err != nil {
			t.Fatal(err)
		}
		query := at.Query()
		if query.Get("client_id") != providertest.ClientID || query.Get("response_type") != "code" ||
			query.Get("redirect_uri") != callback ||
			query.Get("state") != "state-1" || query.Get("scope") != strings.Join(test.provider.Scope, " ") {
			t.Errorf("%s begins at %s", test.provider.ID, begun.URL)
		}
		if (query.Get("code_challenge_method") == "S256") != test.pkce || (begun.Verifier != "") != test.pkce ||
			(begun.Nonce != "") != test.nonce {
			t.Errorf("%s begins at %s with %+v", test.provider.ID, begun.URL, begun)
		}
		if test.provider.ID == "google" &&
			(query.Get("hd") != "*" || query.Get("display") != "popup" || query.Get("access_type") != "offline") {
			t.Errorf("google begins at %s", begun.URL)
		}
		login := func(with ...func(*Login)) error {
			code := follow(t, c, begun.URL+"&user=1")
			in := Login{Code: secure.Secret(code), RedirectURI: callback, Verifier: begun.Verifier, Nonce: begun.Nonce}
			for _, change := range with {
				change(&in)
			}
			got, err := c.User(t.Context(), test.provider, in)
			if err == nil && (got.ExternalID != "1" || got.Tokens.RefreshToken == "") {
				t.Errorf("the user of %s is %+v", test.provider.ID, got)
			}
			return err
		}
		if err := login(); err != nil {
			t.Errorf("the login at %s failed: %v", test.provider.ID, err)
		}
		if test.pkce {
			refusal(t, login(func(in *Login) { in.Verifier = "another" }), apierr.ProviderRefused)
		}
		if test.nonce {
			refusal(t, login(func(in *Login) { in.Nonce = "another" }), apierr.ProviderRefused)
		}
		refusal(t, login(func(in *Login) { in.RedirectURI = "https://elsewhere.test" }), apierr.ProviderRefused)
	}
	for scope, want := range map[string]string{"": "scope=openid+profile+email", "email": "scope=openid+email"} {
		bare := openID(p)
		bare.Scope = strings.Fields(scope)
		begun, err := c.Begin(t.Context(), bare, AuthorizationRequest{RedirectURI: callback, State: "s"})
		if err != nil || !strings.Contains(begun.URL, want) || begun.Nonce == "" || !strings.Contains(begun.URL, "nonce=") {
			t.Errorf("OpenID Connect with the scope %q: %s, %v", scope, begun.URL, err)
		}
		begun, err = c.Begin(t.Context(), bare,
			AuthorizationRequest{RedirectURI: callback, State: "s", Scope: []string{"calendar"}})
		if err != nil || !strings.Contains(begun.URL, "scope=openid+calendar") {
			t.Errorf("OpenID Connect with another scope: %s, %v", begun.URL, err)
		}
	}
	begun, err := c.Begin(t.Context(), forge(p),
		AuthorizationRequest{RedirectURI: callback, State: "s", Scope: []string{"a", "b"}})
	if err != nil || !strings.Contains(begun.URL, "scope=a+b") {
		t.Errorf("another scope: %s, %v", begun.URL, err)
	}
}

// follow asks a login page as a browser does, and returns the code that it is sent
// back with.
func follow(t *testing.T, c *Client, address string) string {
	t.Helper()
	answer, _, err := c.call(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("the provider sends the browser to %v, %v", back, err)
	}
	return back.Query().Get("code")
}

func TestIDTokensAreVerified(t *testing.T) {
	t.Parallel()
	p, authority := providertest.Start(t)
	c := New(trusting(t, authority), nil, time.Now)
	p.AddUser("1", map[string]any{
		"sub": "1", "email": "jo@example.test", "email_verified": true, "preferred_username": "jo",
	})
	for name, test := range map[string]struct {
		change func(jwt.MapClaims)
		want   *apierr.Error
	}{
		"good": {nil, nil},
		"another issuer": {
			func(c jwt.MapClaims) { c["iss"] = "https://elsewhere.test" }, apierr.ProviderRefused,
		},
		"expired": {
			func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() }, apierr.ProviderRefused,
		},
		"issued now, by a clock ahead": {func(c jwt.MapClaims) { c["iat"] = time.Now().Add(clockSkew / 2).Unix() }, nil},
		"issued tomorrow": {func(c jwt.MapClaims) {
			c["iat"] = time.Now().Add(24 * time.Hour).Unix()
			c["exp"] = time.Now().Add(25 * time.Hour).Unix()
		}, apierr.ProviderRefused},
		"of another client": {func(c jwt.MapClaims) { c["aud"] = "another" }, apierr.ProviderOtherClient},
		"of two clients": {
			func(c jwt.MapClaims) { c["aud"] = []string{providertest.ClientID, "another"} }, apierr.ProviderOtherClient,
		},
		"for another party": {func(c jwt.MapClaims) { c["azp"] = "another" }, apierr.ProviderOtherClient},
		"of another user":   {func(c jwt.MapClaims) { c["sub"] = "2" }, apierr.ProviderRefused},
		"of no user":        {func(c jwt.MapClaims) { delete(c, "sub") }, apierr.ProviderRefused},
		"of another access token": {
			func(c jwt.MapClaims) { c["at_hash"] = "MTIzNDU2Nzg5MDEyMzQ1Ng" }, apierr.ProviderRefused,
		},
		"without a nonce": {func(c jwt.MapClaims) { delete(c, "nonce") }, apierr.ProviderRefused},
	} {
		p.Change = test.change
		user, err := c.User(t.Context(), openID(p),
			Login{Code: secure.Secret(p.Code("1", callback, "n-1")), RedirectURI: callback, Nonce: "n-1"})
		if test.want != nil {
			refusal(t, err, test.want)
		} else if err != nil || user.ExternalID != "1" || !user.EmailVerified || user.Username != "jo" ||
			strings.Contains(string(user.UserInfo), "nonce") {
			t.Errorf("%s: the user is %+v, %v", name, user, err)
		}
	}
	if n := strings.Count(strings.Join(p.Asked(), " "), "openid-configuration"); n != 1 {
		t.Errorf("the discovery document was fetched %d times", n)
	}
	if n := strings.Count(strings.Join(p.Asked(), " "), "jwks"); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestDiscoveryDocuments(t *testing.T) {
	t.Parallel()
	var document string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(document)) }))
	t.Cleanup(server.Close)
	for name, test := range map[string]struct{ document, says string }{
		"of another issuer": {`{"issuer":"https://elsewhere.test","authorization_endpoint":"https://a.test","token_endpoint":"https://a.test"}`, "issuer"},
		"without endpoints": {`{"issuer":"` + server.URL + `"}`, "lacks the authorization"},
		"with plain HTTP": {`{"issuer":"` + server.URL +
			`","authorization_endpoint":"http://a.test","token_endpoint":"https://a.test"}`, "without https"},
		"that is no object":  {`<html>`, "makes no sense"},
		"that is not there ": {"", "makes no sense"},
	} {
		document = test.document
		c := New(trusting(t, providertest.Authority(server)), nil, time.Now)
		_, err := c.Begin(t.Context(), Provider{ID: "corp", DiscoveryURL: server.URL + "/.well-known/openid-configuration"},
			AuthorizationRequest{})
		if got := refusal(t, err, apierr.ProviderRefused); !strings.Contains(got, test.says) {
			t.Errorf("%s: the refusal says %q, want %q", name, got, test.says)
		}
	}
}

func TestDocumentsAreKeptForTheirLifetime(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": time.Hour, "max-age=600": 10 * time.Minute, "public, max-age=\"120\"": 2 * time.Minute, "max-age=1": time.Minute,
		"no-store":        time.Minute,
		"max-age=9999999": 24 * time.Hour, "max-age=x": time.Hour, "no-cache, max-age=600": time.Minute,
	} {
		if got := lifetime(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	p, authority := providertest.Start(t)
	now := time.Now()
	c := New(trusting(t, authority), nil, func() time.Time { return now })
	fetch := func(fresh bool) int {
		if _, err := c.document(t.Context(), p.URL+wellKnown, fresh); err != nil {
			t.Fatal(err)
		}
		return len(p.Asked())
	}
	for _, step := range []struct {
		wait  time.Duration
		fresh bool
		want  int
	}{{0, false, 1}, {4 * time.Minute, false, 1}, {2 * time.Minute, false, 2}, {0, true, 2}, {2 * time.Minute, true, 3}} {
		now = now.Add(step.wait)
		if got := fetch(step.fresh); got != step.want {
			t.Errorf("after %+v it was fetched %d times", step, got)
		}
	}
}

// Invalid answers of a provider are bounded in size, and are an error with a code.
func TestProvidersThatMisbehave(t *testing.T) {
	t.Parallel()
	private := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the call followed a redirection")
	}))
	t.Cleanup(private.Close)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"huge": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, "more than 1048576 bytes",
		},
		"no JSON": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "a JSON object",
		},
		"a list":            {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }, "a JSON object"},
		"empty":             {func(http.ResponseWriter, *http.Request) {}, "a JSON object"},
		"an error":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "503 Service Unavailable"},
		"an unknown status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) }, "599"},
		"a redirection": {func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, private.URL, http.StatusFound)
		}, "302 Found"},
		"a broken answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be reached"},
		"half of the answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("{"))
		}, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(test.answer)
			t.Cleanup(server.Close)
			c := New(trusting(t, providertest.Authority(server)), nil, time.Now)
			p := social("forge")
			p.Endpoints, p.AcceptForeignTokens = Endpoints{Token: server.URL, Resource: server.URL}, true
			_, err := c.User(t.Context(), p, Login{AccessToken: "t"})
			if got := refusal(t, err, apierr.ProviderRefused); !strings.Contains(got, test.says) {
				t.Errorf("the user object: %q", got)
			}
			_, err = c.User(t.Context(), p, Login{Code: "c"})
			refusal(t, err, apierr.ProviderRefused)
		})
	}
	t.Run("redirects calls that twitter signs", func(t *testing.T) {
		answer := "oauth_token=request&oauth_token_secret=secret&oauth_callback_confirmed=true"
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/access_token" {
				_, _ = w.Write([]byte(answer))
				return
			}
			http.Redirect(w, r, private.URL, http.StatusTemporaryRedirect)
		}))
		t.Cleanup(server.Close)
		c := New(trusting(t, providertest.Authority(server)), map[string]Endpoints{"twitter": {
			Authorization: server.URL, Token: server.URL + "/access_token", RequestToken: server.URL + "/request_token",
			Resource: server.URL + "/me",
		}}, time.Now)
		_, err := c.Begin(t.Context(), social("twitter"), AuthorizationRequest{RedirectURI: callback, State: "s"})
		refusal(t, err, apierr.ProviderRefused)
		_, err = c.User(t.Context(), social("twitter"), Login{AccessToken: "a", AccessTokenSecret: "s", Code: "v"})
		refusal(t, err, apierr.ProviderRefused)
	})
	t.Run("lies about its content type", func(t *testing.T) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-16")
			_, _ = w.Write([]byte(` {"access_token":"t","token_type":"bearer","id":"1"}`))
		}))
		t.Cleanup(server.Close)
		p := social("forge")
		p.Endpoints = Endpoints{Token: server.URL, Resource: server.URL}
		if _, err := New(trusting(t, providertest.Authority(server)), nil, time.Now).
			User(t.Context(), p, Login{Code: "c"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("answers 200 with an error", func(t *testing.T) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"error":"bad_verification_code","error_description":"The code\n has expired."}`))
		}))
		t.Cleanup(server.Close)
		p := social("forge")
		p.Endpoints = Endpoints{Token: server.URL}
		_, err := New(trusting(t, providertest.Authority(server)), nil, time.Now).User(t.Context(), p, Login{Code: "c"})
		if got := refusal(t, err,
			apierr.ProviderRefused); got != "Forge error message: bad_verification_code: The code  has expired." {
			t.Error(got)
		}
	})
	t.Run("is not trusted, or not public, or down", func(t *testing.T) {
		p, authority := providertest.Start(t)
		for says, guard := range map[string]outbound.Guard{"cannot be reached": trusting(t, ""), "is not public": {}} {
			_, err := New(guard, nil, time.Now).User(t.Context(), forge(p), Login{AccessToken: "t"})
			if got := refusal(t, err, apierr.ProviderRefused); !strings.Contains(got, says) && says != "cannot be reached" {
				t.Errorf("%q, want %q", got, says)
			}
		}
		down := forge(p)
		down.Resource, down.Introspection, down.AcceptForeignTokens = "https://127.0.0.1:1", "", true
		_, err := New(trusting(t, authority), nil, time.Now).User(t.Context(), down, Login{AccessToken: "t"})
		if got := refusal(t, err, apierr.ProviderRefused); !strings.Contains(got, "cannot be reached") {
			t.Error(got)
		}
	})
}

// 200 logins wait for a provider that never answers: those of another provider do
// not notice, and most of the 200 fail soon.
func TestADeadProviderHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	dead := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(dead.Close)
	p, authority := providertest.Start(t)
	token := secure.Secret(p.AddUser("1", map[string]any{"id": "1"}))
	c := New(trusting(t, authority+providertest.Authority(dead)), nil, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	hanging := forge(p)
	hanging.ID, hanging.Resource, hanging.Introspection, hanging.AcceptForeignTokens = "dead", dead.URL, "", true
	var all sync.WaitGroup
	failed := make(chan error, 200)
	for range 200 {
		all.Go(func() {
			_, err := c.User(ctx, hanging, Login{AccessToken: "t"})
			failed <- err
		})
	}
	for range 200 - maxCalls {
		if got := refusal(t, <-failed, apierr.ProviderRefused); !strings.Contains(got, "too many logins wait") {
			t.Error(got)
		}
		began := time.Now()
		if _, err := c.User(t.Context(), forge(p), Login{AccessToken: token}); err != nil ||
			time.Since(began) > 5*time.Second {
			t.Errorf("the login of another provider took %s: %v", time.Since(began), err)
		}
	}
	cancel()
	close(release)
	all.Wait()
	if l, ok := c.http.Transport.(*limitedTransport); !ok || len(l.hosts) != 0 {
		t.Errorf("hosts that are not called any more are kept: %v", l.hosts)
	}
}

// Of 200 logins at a provider that hangs, 32 wait for its answer and 32 for a second;
// the rest fails at once.
func TestTheQueueOfAProviderIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limitedTransport{hosts: map[string]*host{}}
		began := time.Now()
		var failedAt []time.Duration
		var mu sync.Mutex
		entered := make(chan func(), 200)
		for range 200 {
			go func() {
				leave, err := l.acquire(t.Context(), "dead.test")
				if err == nil {
					entered <- leave
					return
				}
				mu.Lock()
				defer mu.Unlock()
				failedAt = append(failedAt, time.Since(began))
			}()
		}
		synctest.Wait()
		if len(entered) != maxCalls || len(failedAt) != 200-maxCalls-maxQueued {
			t.Errorf("%d calls wait for an answer, %d have failed at once", len(entered), len(failedAt))
		}
		if _, err := l.acquire(t.Context(), "other.test"); err != nil {
			t.Errorf("another provider is refused: %v", err)
		}
		<-time.After(queueTimeout) // by the clock of the test
		synctest.Wait()
		if len(failedAt) != 200-maxCalls || slices.Max(failedAt) != queueTimeout {
			t.Errorf("%d have failed after %s", len(failedAt), slices.Max(failedAt))
		}
		(<-entered)()
		if _, err := l.acquire(t.Context(), "dead.test"); err != nil {
			t.Errorf("a login after one that has ended is refused: %v", err)
		}
	})
}

func TestEndpointsOfADeployment(t *testing.T) {
	t.Parallel()
	all, err := ParseEndpoints(
		`{"google":{"tokenEndpoint":"https://p.test/token","issuer":"https://p.test"},"twitter":{"tokenEndpoint":"https://p.test/oauth/access_token"}}`)
	if err != nil || all["google"].Token != "https://p.test/token" ||
		all["google"].Resource != publicEndpoints["google"].Resource ||
		all["twitter"].RequestToken != "https://p.test/oauth/request_token" || all["github"] != publicEndpoints["github"] {
		t.Errorf("the endpoints are %+v, %v", all, err)
	}
	// The members that are the same for all providers are enough.
	var same []string
	for id := range publicEndpoints {
		same = append(same, strings.ReplaceAll(`"`+id+
			`":{"authorizationEndpoint":"@/auth","tokenEndpoint":"@/token","resourceEndpoint":"@/me",`+
			`"tokeninfoEndpoint":"@/info","jwksUri":"@/jwks","issuer":"@"}`, "@", "https://p.test"))
	}
	all, err = ParseEndpoints("{" + strings.Join(same, ",") + "}")
	for id, endpoints := range all {
		for name, address := range endpoints.byName() {
			if address != "" && !strings.HasPrefix(address, "https://p.test") {
				t.Errorf("the %s of %s is still %s", name, id, address)
			}
		}
	}
	if err != nil || all["twitter"].RequestToken != "https://p.test/request_token" ||
		all["facebook"].TokenCheck != "https://p.test/debug_token" ||
		all["github"].TokenCheck != "https://p.test/applications/{clientId}/token" ||
		all["linkedin"].Introspection != "https://p.test/introspectToken" {
		t.Errorf("the endpoints are %+v, %v", all, err)
	}
	all, err = ParseEndpoints(`{"google":{"tokenCheckEndpoint":"https://p.test/check"},"github":{"resourceEndpoint":"https://p.test/user","tokenCheckEndpoint":""},
		"linkedin":{"introspectionEndpoint":"https://p.test/introspect"}}`)
	if err != nil || all["google"].TokenInfo != "https://p.test/check" || all["github"].TokenCheck != "" ||
		all["linkedin"].Introspection != "https://p.test/introspect" {
		t.Errorf("endpoints of token checks: %+v, %v", all, err)
	}
	for text, says := range map[string]string{
		`[]`: "must be a JSON object", `{`: "must be a JSON object", `{"myspace":{}}`: `"myspace" is no social provider`,
		`{"google":{"tokenEndpont":"https://p.test"}}`: "tokenEndpont",
		`{"google":{"tokenEndpoint":"http://p.test"}}`: "absolute https URL",
		`{"google":{"tokenEndpoint":1}}`:               "google", `{"google":{"jwksUri":"//p.test"}}`: "jwksUri",
	} {
		if _, err := ParseEndpoints(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the endpoints %s are refused with %v, want one that says %s", text, err, says)
		}
	}
	if all, err := ParseEndpoints(""); err != nil || len(all) != 5 {
		t.Errorf("no text: %v, %v", all, err)
	}
	for id, endpoints := range publicEndpoints {
		for name, address := range endpoints.byName() {
			if address != "" && !strings.HasPrefix(address, "https://") {
				t.Errorf("%s of %s is %s", name, id, address)
			}
		}
	}
}

func TestTwitterByOAuth1(t *testing.T) {
	t.Parallel()
	var authorization []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = append(authorization, r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/oauth/request_token":
			_, _ = w.Write([]byte("oauth_token=request&oauth_token_secret=request-secret&oauth_callback_confirmed=true"))
		case "/oauth/access_token":
			_, _ = w.Write([]byte("oauth_token=access&oauth_token_secret=access-secret"))
		case "/me":
			_, _ = w.Write([]byte(`{"id":1,"id_str":"1","email":"jo@example.test"}`))
		}
	}))
	t.Cleanup(server.Close)
	c := New(trusting(t, providertest.Authority(server)), map[string]Endpoints{"twitter": {
		Authorization: server.URL + "/oauth/authenticate", Token: server.URL + "/oauth/access_token",
		RequestToken: server.URL + "/oauth/request_token",
		Resource:     server.URL + "/me",
	}}, time.Now)
	begun, err := c.Begin(t.Context(), social("twitter"), AuthorizationRequest{RedirectURI: callback, State: "state-1"})
	if err != nil || begun.URL != server.URL+"/oauth/authenticate?oauth_token=request" ||
		begun.RequestSecret != "request-secret" ||
		!strings.Contains(authorization[0], url.QueryEscape(callback+"?state=state-1")) {
		t.Fatalf("the login begins with %+v, %v, %v", begun, err, authorization)
	}
	user, err := c.User(t.Context(), social("twitter"),
		Login{AccessToken: "request", AccessTokenSecret: begun.RequestSecret, Code: "verifier"})
	if err != nil || user.ExternalID != "1" || user.Tokens.AccessToken != "access" ||
		user.Tokens.AccessTokenSecret != "access-secret" {
		t.Errorf("the user is %+v, %v", user, err)
	}
	if !slices.ContainsFunc(authorization,
		func(h string) bool { return strings.Contains(h, `oauth_verifier="verifier"`) }) ||
		!strings.Contains(authorization[2], `oauth_token="access"`) ||
		!strings.Contains(authorization[2], "oauth_signature=") {
		t.Errorf("the calls are signed with %v", authorization)
	}
}

// FuzzAnswers: whatever a provider answers, a login succeeds with an id or is
// refused with an error of the interface.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{`{"id":"1","email":"jo@example.test"}`, `{"access_token":"t","id_token":"a.b.c","id":1}`,
		`access_token=t&id=1`, `[]`, ``,
		`{"error":"x","error_description":"\u0000"}`, `{"id":{"id":1},"items":[{"user_id":1e999}]}`,
		`oauth_token=a&oauth_token_secret=b`} {
		f.Add(seed, 200, "application/json")
	}
	var status int
	var body, kind string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	f.Cleanup(server.Close)
	guard, err := outbound.Config{PrivateNetworks: []string{"127.0.0.0/8"}, CA: providertest.Authority(server)}.Open()
	if err != nil {
		f.Fatal(err)
	}
	same := Endpoints{Authorization: server.URL, Token: server.URL, Resource: server.URL, TokenInfo: server.URL,
		JWKS: server.URL, Issuer: server.URL,
		TokenCheck: server.URL, Introspection: server.URL}
	endpoints := map[string]Endpoints{}
	for id := range publicEndpoints {
		endpoints[id] = same
	}
	f.Fuzz(func(t *testing.T, text string, code int, contentType string) {
		body, status, kind = text, 200+(code%400+400)%400, contentType
		c := New(guard, endpoints, time.Now)
		for _, id := range []string{"google", "facebook", "github", "linkedin", "twitter", "forge"} {
			p := social(id)
			if id == "forge" {
				p.Endpoints, p.IDField = same, "items[0].user_id"
			}
			for _, login := range []Login{{AccessToken: "t", AccessTokenSecret: "s"}, {Code: "c"}} {
				user, err := c.User(t.Context(), p, login)
				if refused := apierr.From(err); err != nil && refused.Status != 400 || err == nil && user.ExternalID == "" {
					t.Fatalf("%s answers %q: %+v, %v", id, text, user, err)
				}
			}
		}
	})
}
