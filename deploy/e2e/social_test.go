package e2e_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/providertest"
)

// provider stands in for all social providers and for one of OpenID Connect.
var (
	provider       *providertest.Provider
	providerClient *http.Client
)

// startProvider serves the stand-in, and returns the settings of a deployment that
// asks it.
func startProvider(dir string) (settings []string, err error) {
	provider = providertest.New()
	server := httptest.NewTLSServer(provider)
	provider.URL, providerClient = server.URL, server.Client()
	providerClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var endpoints []string
	for _, id := range []string{"google", "facebook", "github", "linkedin"} {
		endpoints = append(endpoints, strings.ReplaceAll(`"`+id+`":{"authorizationEndpoint":"@/authorize","tokenEndpoint":"@/token","resourceEndpoint":"@/user",`+
			`"tokeninfoEndpoint":"@/tokeninfo","jwksUri":"@/jwks","issuer":"@"}`, "@", server.URL))
	}
	authority, addresses := filepath.Join(dir, "providers.pem"), filepath.Join(dir, "providers.json")
	return []string{"DOORWARD_OUTBOUND_CA_FILE=" + authority, "DOORWARD_SOCIAL_ENDPOINTS_FILE=" + addresses}, errors.Join(
		os.WriteFile(authority, []byte(providertest.Authority(server)), 0o600),
		os.WriteFile(addresses, []byte("{"+strings.Join(endpoints, ",")+"}"), 0o600))
}

// newSocial maps a directory of a provider to an application.
func newSocial(t *testing.T, application e2e.Object, settings e2e.Object) e2e.Object {
	t.Helper()
	settings["clientId"], settings["clientSecret"] = providertest.ClientID, providertest.ClientSecret
	directory := client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("social"), "provider": settings})
	client.DeleteAtEnd(t, directory.Href())
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": application.Href()}, "accountStore": e2e.Object{"href": directory.Href()},
	})
	return directory
}

func google() e2e.Object {
	return e2e.Object{"providerId": "google", "redirectUri": "https://app.localhost/cb", "scope": []string{"openid"}}
}

func openID() e2e.Object {
	return e2e.Object{"providerId": e2e.Unique("corp"), "discoveryUrl": provider.URL, "scope": []string{"openid", "email"}}
}

// newUser adds a user with a verified email.
func newUser() (id, email, token string) {
	id = e2e.Unique("user")
	email = id + "@example.test"
	return id, email, provider.AddUser(id, map[string]any{"id": id, "sub": id, "email": email, "email_verified": true, "given_name": "Jo", "family_name": "Doe"})
}

func TestAccountsOfProviders(t *testing.T) {
	fixture := client.NewFixture(t)
	newSocial(t, fixture.Application, google())
	_, email, token := newUser()
	body := e2e.Object{"providerData": e2e.Object{"providerId": "google", "accessToken": token}, "customData": e2e.Object{"plan": "gold"}}
	request := e2e.Request{Method: http.MethodPost, URL: fixture.Application.Link(t, "accounts"), Body: body}

	statuses := sendConcurrently(t, 50, request)
	if statuses[http.StatusCreated] != 1 || statuses[http.StatusOK] != 49 {
		t.Errorf("50 parallel first logins are answered %v", statuses)
	}
	answer := client.Want(t, http.StatusOK, request)
	account, err := answer.Object()
	if err != nil {
		t.Fatal(err)
	}
	if answer.Header.Get("Location") != account.Href() || account.Text("email") != email || account.Text("emailVerificationStatus") != "VERIFIED" ||
		account.Text("fullName") != "Jo Doe" || account.Text("status") != "ENABLED" {
		t.Errorf("the account is %v", account)
	}
	if plan := client.Get(t, account.Link(t, "customData")).Text("plan"); plan != "gold" {
		t.Errorf("the custom data has the plan %q", plan)
	}
	data := client.Get(t, account.Link(t, "providerData"))
	if refresh, given := data["refreshToken"]; data.Text("accessToken") != token || data.Object("userInfo").Text("email") != email || refresh != nil || !given {
		t.Errorf("the provider data is %v", data)
	}
	checkExplained(t, fixture.Application, email, "google")
	form := url.Values{"grant_type": {"service_social"}, "providerId": {"google"}, "accessToken": {token}}
	issued := client.Token(t, fixture.Application.Href(), form)
	if _, claims := unpack(t, issued.Text("access_token"), client.Key.Secret); claims.Text("sub") != account.Href() {
		t.Errorf("the token is for %v", claims)
	}
	form.Set("accessToken", "wrong-token")
	oauthRefused(t, 400, 7200, "invalid_client", post(fixture.Application.Href()+"/oauth/token", form))
	client.Update(t, account.Href(), e2e.Object{"status": "DISABLED"})
	client.Refused(t, 400, 7101, request)
}

// Whoever runs another application of a provider has access tokens of its users: they lead nowhere
// here, whichever way they are sent.
func TestATokenOfAnotherClientOfAProvider(t *testing.T) {
	fixture := client.NewFixture(t)
	api := openClientAPI(t, fixture.Application)
	id, email, own := newUser()
	foreign := provider.OtherClientToken(id)
	for _, settings := range []e2e.Object{google(), {"providerId": "facebook"}, {"providerId": "github"}, {"providerId": "linkedin"}, openID()} {
		name, directory := settings.Text("providerId"), newSocial(t, fixture.Application, settings)
		t.Run(name, func(t *testing.T) {
			login := func(token string) e2e.Object {
				return e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": token}}
			}
			for _, at := range []string{fixture.Application.Link(t, "accounts"), directory.Link(t, "accounts")} {
				client.Refused(t, 400, 7203, e2e.Request{Method: http.MethodPost, URL: at, Body: login(foreign)})
			}
			form := url.Values{"grant_type": {"service_social"}, "providerId": {name}, "accessToken": {foreign}}
			oauthRefused(t, 400, 7203, "invalid_client", post(fixture.Application.Href()+"/oauth/token", form))
			api.oauthRefused(http.StatusUnauthorized, "invalid_client", form)
			api.want(http.StatusBadRequest, e2e.Request{Method: http.MethodPost, URL: "/login", Body: login(foreign)})
			if accounts := client.All(t, directory.Link(t, "accounts")); len(accounts) != 0 {
				t.Errorf("the directory has %v", accounts)
			}
			account := client.WantObject(t, http.StatusCreated, e2e.Request{
				Method: http.MethodPost, URL: fixture.Application.Link(t, "accounts"), Body: login(own),
			})
			if account.Text("email") != email {
				t.Errorf("a token of the directory's own client leads to %v", account)
			}
		})
	}
}

// checkExplained wants the explanation of a login with a password to name the
// provider at which the account logs in.
func checkExplained(t *testing.T, application e2e.Object, email, providerID string) {
	t.Helper()
	attempt := e2e.Login(application, email, e2e.Password)
	attempt.URL += "?explain=true"
	explained := client.WantObject(t, http.StatusOK, attempt)
	stores, _ := explained["accountStores"].([]any)
	isNamed := slices.ContainsFunc(stores, func(each any) bool {
		store, _ := each.(map[string]any)
		return store["providerId"] == providerID && store["outcome"] == "DECIDES"
	})
	reason := explained.Object("decision").Object("refusalAfterPassword").Text("developerMessage")
	if !isNamed || !strings.Contains(reason, `provider "`+providerID+`"`) {
		t.Errorf("the explanation is %v", explained)
	}
}

// A link of an account at a provider leads to an account of the default store where
// both have verified their email, and nowhere else.
func TestAccountsOfProvidersAreLinkedByVerifiedEmails(t *testing.T) {
	fixture := client.NewFixture(t)
	newSocial(t, fixture.Application, google())
	client.Update(t, fixture.Application.Link(t, "accountLinkingPolicy"), e2e.Object{"status": "ENABLED", "matchingProperty": "email"})
	local := func(email, status string) e2e.Object {
		return client.Create(t, fixture.Application.Link(t, "accounts"), e2e.Object{
			"email": email, "password": e2e.Password, "givenName": "Jo", "surname": "Doe", "emailVerificationStatus": status,
		})
	}
	for _, c := range []struct {
		what           string
		atProvider     bool
		local          string
		leadsToTheHome bool
	}{
		{"both verified", true, "VERIFIED", true}, {"made before with an unverified address", true, "UNVERIFIED", false},
		{"not verified at the provider", false, "VERIFIED", false},
	} {
		id := e2e.Unique("user")
		email := id + "@example.test"
		home := local(email, c.local)
		token := provider.AddUser(id, map[string]any{"id": id, "email": email, "email_verified": c.atProvider})
		answer := client.Call(t, e2e.Request{Method: http.MethodPost, URL: fixture.Application.Link(t, "accounts"),
			Body: e2e.Object{"providerData": e2e.Object{"providerId": "google", "accessToken": token}}})
		account, err := answer.Object()
		if err != nil || (account.Href() == home.Href()) != c.leadsToTheHome {
			t.Errorf("%s: %s, %v", c.what, answer, err)
		}
	}
}

func TestALoginAtAProviderByTheClientAPI(t *testing.T) {
	fixture := client.NewFixture(t)
	const back = "https://app.localhost/back?x=1"
	client.Update(t, fixture.Application.Href(), e2e.Object{"authorizedCallbackUris": []string{back}})
	for name, directory := range map[string]e2e.Object{"google": newSocial(t, fixture.Application, google()), "discovery": newSocial(t, fixture.Application, openID())} {
		t.Run(name, func(t *testing.T) {
			api := openClientAPI(t, fixture.Application)
			id, email, _ := newUser()
			begun := func(more string) *url.URL {
				t.Helper()
				at := "/authorize?response_type=service_token&account_store_href=" + url.QueryEscape(directory.Href()) + more
				return location(t, api.want(http.StatusFound, e2e.Request{Method: http.MethodGet, URL: at}))
			}
			at := begun("&state=a%20b")
			query := at.Query()
			if !strings.HasPrefix(at.String(), provider.URL+"/authorize?") || query.Get("redirect_uri") != api.at+"/authorize/callback" ||
				query.Get("code_challenge_method") != "S256" || query.Get("nonce") == "" {
				t.Fatalf("the login begins at %s", at)
			}
			returned := func(user string) string {
				t.Helper()
				query.Set("user", user)
				at.RawQuery = query.Encode()
				answer, err := providerClient.Get(at.String())
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				return strings.TrimPrefix(answer.Header.Get("Location"), api.at)
			}
			comeBack := returned(id)
			other := clientAPI{t, client.Browser(), api.at}
			other.want(http.StatusBadRequest, e2e.Request{Method: http.MethodGet, URL: comeBack})
			ended := location(t, api.want(http.StatusFound, e2e.Request{Method: http.MethodGet, URL: comeBack}))
			if !strings.HasPrefix(ended.String(), back+"&state=a+b&jwtResponse=") {
				t.Fatalf("the browser goes to %s", ended)
			}
			api.want(http.StatusBadRequest, e2e.Request{Method: http.MethodGet, URL: comeBack})
			assertion := ended.Query().Get("jwtResponse")
			_, claims := unpack(t, assertion, client.Key.Secret)
			if claims.Text("iss") != fixture.Application.Href() || claims["isNewSub"] != true || claims.Text("status") != "AUTHENTICATED" || claims.Text("state") != "a b" {
				t.Errorf("the claims are %v", claims)
			}
			api.object(http.StatusOK, post("/oauth/token", url.Values{"grant_type": {"service_token"}, "token": {assertion}}))
			if got := client.Get(t, claims.Text("sub")).Text("email"); got != email {
				t.Errorf("the account has the email %s, want %s", got, email)
			}
			api.oauthRefused(http.StatusUnauthorized, "invalid_client", url.Values{"grant_type": {"service_token"}, "token": {assertion}})

			at = begun("&state=s")
			query = at.Query()
			refused := location(t, api.want(http.StatusFound, e2e.Request{Method: http.MethodGet, URL: returned("")}))
			if refused.Query().Get("error") != "access_denied" || !strings.Contains(refused.Query().Get("error_description"), "access_denied") || refused.Query().Get("state") != "s" {
				t.Errorf("a refusal leads to %s", refused)
			}
		})
	}
	t.Run("what is refused", func(t *testing.T) {
		api := openClientAPI(t, fixture.Application)
		directory := newSocial(t, fixture.Application, openID())
		named := "account_store_href=" + url.QueryEscape(directory.Href())
		for _, query := range []string{
			"", named, "response_type=service_token", "response_type=service_token&" + named + "&redirect_uri=https%3A%2F%2Fapp.localhost%2Felsewhere",
		} {
			api.want(http.StatusBadRequest, e2e.Request{Method: http.MethodGet, URL: "/authorize?" + query})
		}
		for query, code := range map[string]string{
			"response_type=code&" + named: "unsupported_response_type",
			"response_type=service_token&account_store_href=" + url.QueryEscape(fixture.Directory.Href()): "invalid_request",
			"response_type=service_token&account_store_href=x":                                            "invalid_request",
			"response_type=service_token&" + named + "&organization_name_key=nobody":                      "invalid_request",
		} {
			to := location(t, api.want(http.StatusFound, e2e.Request{Method: http.MethodGet, URL: "/authorize?" + query + "&state=s"}))
			if to.Query().Get("error") != code || to.Query().Get("state") != "s" || to.Host != "app.localhost" {
				t.Errorf("%s leads to %s", query, to)
			}
		}
		api.want(http.StatusBadRequest, e2e.Request{Method: http.MethodGet, URL: "/authorize/callback?state=x&code=y"})
		posted := api.want(http.StatusSeeOther, post("/authorize/callback", url.Values{"state": {"x"}, "code": {"y"}, "user": {"{}"}}))
		if got := posted.Header.Get("Location"); got != api.at+"/authorize/callback?code=y&state=x" {
			t.Errorf("a form leads to %s", got)
		}
	})
}

func location(t *testing.T, answer e2e.Answer) *url.URL {
	t.Helper()
	to, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// The whole way in a browser: hosted page, the provider's page, and back.
func TestALoginAtAProviderInABrowser(t *testing.T) {
	fixture := newShop(t)
	directory := newSocial(t, fixture.Application, openID())
	id, email, _ := newUser()
	b := openBrowser(t)
	atProvider := func() {
		t.Helper()
		b.awaitHeading("Sign in")
		b.follow("Continue with " + directory.Text("name"))
		b.awaitTrue("document.querySelector('h1')?.textContent === 'Who are you?'")
	}
	fixture.openLogin(b, nil)
	atProvider()
	b.follow("Refuse")
	b.awaitTrue("document.querySelector('.providers .alert')?.textContent === 'That did not work. Please try again.'")
	atProvider()
	b.follow("Log in as " + id)
	fixture.awaitCallback(b, "AUTHENTICATED", "")
	accounts := client.All(t, directory.Link(t, "accounts"))
	if len(accounts) != 1 || accounts[0].Text("email") != email {
		t.Errorf("the directory has %v", accounts)
	}
	t.Run("the browser has a session then", func(t *testing.T) {
		fixture.openLogin(b, nil)
		fixture.awaitCallback(b, "AUTHENTICATED", accounts[0].Href())
	})
	t.Run("a second factor comes after the provider", func(t *testing.T) {
		fresh := openBrowser(t)
		fixture.openLogin(fresh, e2e.Object{"require_mfa": []string{"google-authenticator"}})
		fresh.awaitHeading("Sign in")
		fresh.follow("Continue with " + directory.Text("name"))
		fresh.awaitTrue("document.querySelector('h1')?.textContent === 'Who are you?'")
		fresh.follow("Log in as " + id)
		fresh.awaitTrue("location.hash.startsWith('#/mfa/setup')")
	})
}
