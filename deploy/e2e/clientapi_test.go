package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// clientAPI is the Client API of an application, at one of its addresses, for one
// browser.
type clientAPI struct {
	*testing.T
	*e2e.Client
	at string
}

// clientAPIs are the two addresses of an application's Client API: as a path and as
// a host name.
func clientAPIs(t *testing.T, application e2e.Object) map[string]string {
	t.Helper()
	config := webConfig(t, application)
	host, err := url.Parse(client.Key.HostURL())
	if err != nil {
		t.Fatal(err)
	}
	named := "https://" + config.Text("domainName")
	if host.Port() != "" {
		named += ":" + host.Port()
	}
	return map[string]string{"by path": client.Key.HostURL() + "/client/" + config.Text("dnsLabel"), "by host": named}
}

func openClientAPI(t *testing.T, application e2e.Object) clientAPI {
	t.Helper()
	return clientAPI{t, client.Browser(), clientAPIs(t, application)["by host"]}
}

// want sends a request whose answer must have this status. The JSON of an error has status
// and message and nothing else.
func (c clientAPI) want(status int, r e2e.Request) e2e.Answer {
	c.Helper()
	r.URL = c.at + r.URL
	answer := c.Want(c.T, status, r)
	if status >= 400 && status != http.StatusUnauthorized && !strings.Contains(r.URL, "/oauth/") {
		body, err := answer.Object()
		if err != nil || len(body) != 2 || body["status"] != float64(status) || body.Text("message") == "" {
			c.Errorf("want status and message alone: %s", answer)
		}
	}
	return answer
}

func (c clientAPI) object(status int, r e2e.Request) e2e.Object {
	c.Helper()
	body, err := c.want(status, r).Object()
	if err != nil {
		c.Fatal(err)
	}
	return body
}

// empty makes a call whose answer is 200 without a body.
func (c clientAPI) empty(r e2e.Request) {
	c.Helper()
	if answer := c.want(http.StatusOK, r); len(answer.Body) > 0 || answer.Header.Get("Content-Length") != "0" {
		c.Errorf("want an empty body with its length: %s %v", answer, answer.Header)
	}
}

// oauthRefused makes a call to an OAuth route that is refused with error and message
// alone.
func (c clientAPI) oauthRefused(status int, code string, form any) {
	c.Helper()
	body := c.object(status, post("/oauth/token", form))
	if body.Text("error") != code || body.Text("message") == "" || len(body) != 2 {
		c.Errorf("want error %s and a message alone: %v", code, body)
	}
}

// cookies are those of an answer, by name; each must be safe.
func cookies(t *testing.T, answer e2e.Answer) map[string]*http.Cookie {
	t.Helper()
	found := map[string]*http.Cookie{}
	for _, each := range (&http.Response{Header: answer.Header}).Cookies() {
		if !each.HttpOnly || !each.Secure || each.Path != "/" && !strings.HasPrefix(each.Path, "/client/") {
			t.Errorf("the cookie is %v", each)
		}
		found[each.Name] = each
	}
	return found
}

func (c clientAPI) cleared(answer e2e.Answer) {
	c.Helper()
	set := cookies(c.T, answer)
	for _, name := range []string{"access_token", "refresh_token"} {
		if each := set[name]; each == nil || each.Value != "" || each.MaxAge >= 0 && each.Expires.After(time.Now()) {
			c.Errorf("the cookie %s becomes %v", name, each)
		}
	}
}

func bearer(r e2e.Request, token string) e2e.Request {
	r.Header = http.Header{"Authorization": {"Bearer " + token}}
	return r
}

var accountAttributes = []string{
	"createdAt", "email", "emailVerificationStatus", "fullName", "givenName", "href", "locale", "middleName", "modifiedAt", "passwordModifiedAt", "status", "surname", "username",
}

func checkPlainAccount(t *testing.T, account e2e.Object, more ...string) {
	t.Helper()
	var names []string
	for name := range account {
		names = append(names, name)
	}
	want := append(slices.Clone(accountAttributes), more...)
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the account has %v, want %v", names, want)
	}
}

func TestAClientAPI(t *testing.T) {
	fixture := client.NewFixture(t)
	for name, at := range clientAPIs(t, fixture.Application) {
		t.Run(name, func(t *testing.T) {
			api := clientAPI{t, client.Browser(), at}
			email := e2e.Unique("me") + "@example.test"

			asPage := get("/login")
			asPage.Header = http.Header{"Accept": {"text/html"}}
			const loginModel = `{"form":{"fields":[` +
				`{"name":"login","label":"Username or Email","placeholder":"Username or Email","required":true,"type":"text"},` +
				`{"name":"password","label":"Password","placeholder":"Password","required":true,"type":"password"}]},"accountStores":[]}`
			if answer := api.want(http.StatusOK, asPage); string(answer.Body) != loginModel || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
				t.Errorf("the login model is %s", answer)
			}
			const registrationModel = `{"form":{"fields":[` +
				`{"name":"givenName","label":"First Name","placeholder":"First Name","required":false,"type":"text"},` +
				`{"name":"surname","label":"Last Name","placeholder":"Last Name","required":false,"type":"text"},` +
				`{"name":"email","label":"Email","placeholder":"Email","required":true,"type":"email"},` +
				`{"name":"password","label":"Password","placeholder":"Password","required":true,"type":"password"}]},"accountStores":[],` +
				`"passwordPolicy":{"minLength":8,"maxLength":100,"minLowerCase":1,"minUpperCase":1,"minNumeric":1,"minSymbol":0,"minDiacritic":0}}`
			if answer := api.want(http.StatusOK, get("/register")); string(answer.Body) != registrationModel {
				t.Errorf("the registration model is %s", answer)
			}

			made := api.object(http.StatusOK, post("/register", e2e.Object{
				"email": email, "password": e2e.Password, "givenName": "Jo", "surname": "", "username": "", "customData": e2e.Object{"shoe": 43},
			})).Object("account")
			checkPlainAccount(t, made)
			if made.Text("email") != email || made.Text("username") != email || made["surname"] != nil || made.Text("status") != "ENABLED" {
				t.Errorf("the account is %v", made)
			}
			if shoe := client.Get(t, made.Href()+"/customData").Number(t, "shoe"); shoe != 43 {
				t.Errorf("the shoe is %d", shoe)
			}
			api.want(http.StatusConflict, post("/register", url.Values{"email": {email}, "password": {e2e.Password}}))
			for field, body := range map[string]e2e.Object{
				"shoe":     {"email": "a@example.test", "password": e2e.Password, "shoe": 43},
				"status":   {"email": "a@example.test", "password": e2e.Password, "status": "ENABLED"},
				"Email":    {"password": e2e.Password, "email": " "},
				"Password": {"email": "a@example.test"},
				"password": {"email": "a@example.test", "password": "x"},
			} {
				if refused := api.object(http.StatusBadRequest, post("/register", body)); !strings.Contains(strings.ToLower(refused.Text("message")), strings.ToLower(field)) {
					t.Errorf("a registration without a good %s is refused with %v", field, refused)
				}
			}

			if refused := api.object(http.StatusBadRequest, post("/login", e2e.Object{"login": email, "password": "Wrong0000"})); refused.Text("message") != "Invalid username or password." {
				t.Errorf("a wrong password is refused with %v", refused)
			}
			api.want(http.StatusBadRequest, post("/login", e2e.Object{"login": email, "password": ""}))
			loggedIn := api.want(http.StatusOK, post("/login", e2e.Object{"login": email, "password": e2e.Password}))
			set := cookies(t, loggedIn)
			for _, name := range []string{"access_token", "refresh_token"} {
				if each := set[name]; each == nil {
					t.Errorf("no cookie %s in %v", name, loggedIn.Header)
				} else if exp := time.Unix(int64(e2e.Claims(t, each.Value).Number(t, "exp")), 0); !each.Expires.IsZero() && !each.Expires.Equal(exp) || each.MaxAge <= 0 || time.Until(exp)-time.Duration(each.MaxAge)*time.Second > 5*time.Second {
					t.Errorf("the cookie is %v, its token expires at %s", each, exp)
				}
			}
			answer := api.want(http.StatusOK, asPageAt("/me"))
			if answer.Header.Get("Cache-Control") != "no-store, no-cache" || answer.Header.Get("Pragma") != "no-cache" {
				t.Errorf("the account may be stored: %v", answer.Header)
			}
			body, err := answer.Object()
			if err != nil {
				t.Fatal(err)
			}
			checkPlainAccount(t, body.Object("account"))

			api.cleared(api.want(http.StatusOK, post("/logout", nil)))
			refused := api.want(http.StatusUnauthorized, get("/me"))
			if realm := refused.Header.Get("WWW-Authenticate"); realm != fmt.Sprintf("Bearer realm=%q", fixture.Application.Text("name")) || len(refused.Body) > 0 {
				t.Errorf("the refusal is %s with %q", refused, realm)
			}
			for _, each := range set {
				stolen := clientAPI{t, client.Browser(), at}
				stolen.want(http.StatusUnauthorized, bearer(get("/me"), each.Value))
				stolen.oauthRefused(http.StatusBadRequest, "invalid_grant", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {set["refresh_token"].Value}})
			}
			api.empty(post("/logout", nil))
		})
	}
}

func asPageAt(path string) e2e.Request {
	request := get(path)
	request.Header = http.Header{"Accept": {"text/html,application/xhtml+xml"}}
	return request
}

func TestTheRoutesOfAClientAPI(t *testing.T) {
	api := openClientAPI(t, client.NewFixture(t).Application)
	for path, offered := range map[string]string{
		"/login": "GET, HEAD, POST, OPTIONS", "/register": "GET, HEAD, POST, OPTIONS", "/oauth/token": "POST, OPTIONS", "/oauth/revoke": "POST, OPTIONS",
		"/forgot": "POST, OPTIONS", "/change": "GET, HEAD, POST, OPTIONS", "/me": "GET, HEAD, OPTIONS", "/factors": "POST, OPTIONS",
		"/challenges": "POST, OPTIONS", "/logout": "POST, OPTIONS",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if strings.Contains(offered, method) {
				continue
			}
			answer := api.Want(t, http.StatusMethodNotAllowed, e2e.Request{Method: method, URL: api.at + path})
			if allow := answer.Header.Get("Allow"); allow != offered {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, allow, offered)
			}
		}
	}
	for _, path := range []string{"/nothing", "/login/more", "/oauth", "/oauth/nothing", "/v1/accounts"} {
		for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
			api.Want(t, http.StatusNotFound, e2e.Request{Method: method, URL: api.at + path})
		}
	}
	unknown := clientAPI{t, client.Browser(), client.Key.HostURL() + "/client/no-such-label"}
	unknown.Want(t, http.StatusNotFound, get(unknown.at+"/login"))
}

func TestTokensOfAClientAPI(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")
	api := openClientAPI(t, fixture.Application)
	token := func(t *testing.T, form url.Values) (e2e.Answer, e2e.Object) {
		t.Helper()
		answer := clientAPI{t, api.Client, api.at}.want(http.StatusOK, post("/oauth/token", form))
		body, err := answer.Object()
		if err != nil {
			t.Fatal(err)
		}
		if body.Text("token_type") != "Bearer" || body.Number(t, "expires_in") <= 0 || body.Text("access_token") == "" {
			t.Errorf("the token endpoint answered %v", body)
		}
		for _, name := range []string{"access_token", "refresh_token"} {
			if each := cookies(t, answer)[name]; body.Text(name) != "" && (each == nil || each.Value != body.Text(name)) {
				t.Errorf("the cookie %s is %v", name, each)
			}
		}
		return answer, body
	}
	_, pair := token(t, passwordGrant(email, e2e.Password))

	t.Run("are refused with error and message", func(t *testing.T) {
		api := clientAPI{t, api.Client, api.at}
		api.oauthRefused(400, "invalid_grant", passwordGrant(email, "Wrong0000"))
		api.oauthRefused(400, "invalid_request", url.Values{"username": {email}})
		api.oauthRefused(400, "invalid_request", e2e.Object{"grant_type": "password", "username": email, "password": e2e.Password})
		api.oauthRefused(400, "unsupported_grant_type", url.Values{"grant_type": {"magic"}})
		api.oauthRefused(400, "invalid_grant", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {pair.Text("access_token")}})
		api.oauthRefused(401, "invalid_client", url.Values{"grant_type": {"service_token"}, "token": {pair.Text("access_token")}})
		api.oauthRefused(401, "invalid_client", url.Values{"grant_type": {"client_credentials"}, "client_id": {"A"}, "client_secret": {"b"}})
	})
	t.Run("a refresh keeps the refresh token", func(t *testing.T) {
		_, next := token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {pair.Text("refresh_token")}})
		if next.Text("refresh_token") != pair.Text("refresh_token") || next.Text("access_token") == pair.Text("access_token") {
			t.Errorf("the pair becomes %v", next)
		}
	})
	t.Run("keys of users are exchanged, in the form and the header", func(t *testing.T) {
		key := client.Create(t, account.Link(t, "apiKeys"), nil)
		form := url.Values{"grant_type": {"client_credentials"}}
		basic := e2e.Request{Method: http.MethodPost, URL: api.at + "/oauth/token", Body: form}
		body, err := client.With(key.Text("id"), key.Text("secret")).Want(t, http.StatusOK, basic).Object()
		if err != nil || body["refresh_token"] != nil || body.Text("access_token") == "" {
			t.Errorf("the exchange of the key answered %v, %v", body, err)
		}
		form.Set("client_id", key.Text("id"))
		form.Set("client_secret", key.Text("secret"))
		fresh := clientAPI{t, client.Browser(), api.at}
		if body := fresh.object(http.StatusOK, post("/oauth/token", form)); body["refresh_token"] != nil {
			t.Errorf("the exchange of the key in the form answered %v", body)
		}
	})
	t.Run("show an account, never a refresh token in their place", func(t *testing.T) {
		stranger := clientAPI{t, client.Browser(), api.at}
		if me := stranger.object(http.StatusOK, bearer(get("/me"), pair.Text("access_token"))).Object("account"); me.Href() != account.Href() {
			t.Errorf("the account is %v", me)
		}
		stranger.want(http.StatusUnauthorized, bearer(get("/me"), pair.Text("refresh_token")))
		stranger.want(http.StatusUnauthorized, bearer(get("/me"), pair.Text("access_token")+"x"))
		stranger.want(http.StatusUnauthorized, get("/me"))
		other := openClientAPI(t, client.NewFixture(t).Application)
		other.want(http.StatusUnauthorized, bearer(get("/me"), pair.Text("access_token")))
	})
	t.Run("an access token that is missing or bad is renewed by the cookie", func(t *testing.T) {
		with := func(cookie string) e2e.Request {
			request := get("/me")
			request.Header = http.Header{"Cookie": {cookie}}
			return request
		}
		stranger := clientAPI{t, &e2e.Client{Key: client.Key, HTTP: client.HTTP}, api.at}
		for _, cookie := range []string{"refresh_token=" + pair.Text("refresh_token"), "access_token=bad; refresh_token=" + pair.Text("refresh_token")} {
			request := with(cookie)
			request.Anonymous = true
			set := cookies(t, stranger.want(http.StatusOK, request))
			if set["access_token"] == nil || set["refresh_token"] == nil || set["refresh_token"].Value != pair.Text("refresh_token") {
				t.Errorf("the cookies become %v", set)
			}
		}
		bad := with("access_token=bad; refresh_token=bad")
		bad.Anonymous = true
		stranger.cleared(stranger.want(http.StatusUnauthorized, bad))
	})
	t.Run("the web config says what is shown", func(t *testing.T) {
		group := client.Create(t, fixture.Directory.Link(t, "groups"), e2e.Object{"name": "readers"})
		client.Create(t, "/groupMemberships", e2e.Object{"account": e2e.Object{"href": account.Href()}, "group": e2e.Object{"href": group.Href()}})
		key := client.Create(t, account.Link(t, "apiKeys"), nil)
		all := []string{"apiKeys", "applications", "customData", "directory", "groupMemberships", "groups", "providerData", "tenant"}
		expand := e2e.Object{}
		for _, name := range all {
			expand[name] = true
		}
		client.Update(t, fixture.Application.Link(t, "webConfig"), e2e.Object{"me": e2e.Object{"expand": expand}})
		var me e2e.Object
		awaitTrue(t, "the web config to be known", func() bool {
			me = clientAPI{t, api.Client, api.at}.object(http.StatusOK, bearer(get("/me"), pair.Text("access_token"))).Object("account")
			return me["groups"] != nil
		})
		checkPlainAccount(t, me, all...)
		if items := me.Object("groups").Items(t); len(items) != 1 || me.Object("groups").Number(t, "size") != 1 || items[0].Text("name") != "readers" || items[0]["accounts"] != nil {
			t.Errorf("the groups are %v", me["groups"])
		}
		if text, _ := json.Marshal(me["apiKeys"]); strings.Contains(string(text), "secret") || !strings.Contains(string(text), key.Text("id")) {
			t.Errorf("the keys are %s", text)
		}
		if data := me.Object("providerData"); data.Text("href") != account.Href()+"/providerData" || data.Text("createdAt") == "" {
			t.Errorf("the provider data are %v", data)
		}
		if _, invented := me.Object("tenant")["description"]; invented || me.Object("tenant").Text("key") == "" || me.Object("directory").Text("name") != fixture.Directory.Text("name") {
			t.Errorf("the account is %v", me)
		}
	})
	t.Run("are revoked", func(t *testing.T) {
		api := clientAPI{t, api.Client, api.at}
		revoke := post("/oauth/revoke", url.Values{"token": {pair.Text("refresh_token")}, "token_type_hint": {"refresh_token"}})
		api.cleared(api.want(http.StatusOK, revoke))
		api.want(http.StatusUnauthorized, bearer(get("/me"), pair.Text("access_token")))
		api.oauthRefused(400, "invalid_grant", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {pair.Text("refresh_token")}})
	})
	t.Run("of an assertion of the hosted login", func(t *testing.T) {
		application := authorize(t, fixture.Application, callback)
		form := url.Values{"grant_type": {"service_token"}, "token": {signIn(t, client.Browser(), application, email)}}
		if _, body := token(t, form); body.Text("refresh_token") == "" {
			t.Errorf("the exchange of the assertion answered %v", body)
		}
		clientAPI{t, api.Client, api.at}.oauthRefused(401, "invalid_client", form)
	})
}

func TestPasswordsOfAClientAPI(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email, api := account.Text("email"), openClientAPI(t, fixture.Application)
	pair := api.object(http.StatusOK, post("/oauth/token", passwordGrant(email, e2e.Password)))

	api.empty(post("/forgot", e2e.Object{"login": e2e.Unique("nobody") + "@example.test"}))
	api.empty(post("/forgot", url.Values{"email": {email}}))
	api.want(http.StatusMethodNotAllowed, get("/forgot"))
	token, err := client.AwaitMail(t, email).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	api.want(http.StatusBadRequest, get("/change"))
	api.want(http.StatusNotFound, get("/change?sptoken=x"+token))
	api.empty(get("/change?sptoken=" + token))
	api.want(http.StatusBadRequest, post("/change", e2e.Object{"sptoken": token}))
	api.want(http.StatusBadRequest, post("/change", e2e.Object{"password": newPassword}))
	api.want(http.StatusBadRequest, post("/change", e2e.Object{"sptoken": token, "password": "x"}))
	api.want(http.StatusNotFound, post("/change", e2e.Object{"sptoken": "x" + token, "password": newPassword}))
	store := e2e.Object{"href": respelled(address, fixture.Directory.Href())}
	api.empty(post("/change?sptoken="+token, e2e.Object{"password": newPassword, "accountStore": store}))
	api.want(http.StatusNotFound, get("/change?sptoken="+token))
	api.want(http.StatusNotFound, post("/change", e2e.Object{"sptoken": token, "password": newPassword + "2"}))
	awaitTrue(t, "the tokens of before to end", func() bool {
		request := bearer(get(api.at+"/me"), pair.Text("access_token"))
		request.Anonymous = true
		return client.Call(t, request).Status == http.StatusUnauthorized
	})
	api.want(http.StatusOK, post("/login", e2e.Object{"login": email, "password": newPassword}))
}

func TestVerificationByAClientAPI(t *testing.T) {
	fixture := client.NewVerificationFixture(t)
	api, email := openClientAPI(t, fixture.Application), e2e.Unique("new")+"@example.test"
	made := api.object(http.StatusOK, post("/register", e2e.Object{"email": email, "password": e2e.Password})).Object("account")
	if made.Text("status") != "UNVERIFIED" {
		t.Errorf("the account is %v", made)
	}
	first, err := client.AwaitMail(t, email).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	api.want(http.StatusBadRequest, post("/login", e2e.Object{"login": email, "password": e2e.Password}))
	api.want(http.StatusBadRequest, post("/verify", e2e.Object{}))
	api.want(http.StatusBadRequest, post("/verify", e2e.Object{"login": email, "email": "other@example.test"}))
	api.empty(post("/verify", e2e.Object{"login": e2e.Unique("nobody") + "@example.test"}))
	plain := e2e.Request{Method: http.MethodPost, URL: "/verify", Body: []byte(`{"login":"` + email + `"}`), Header: http.Header{"Content-Type": {"text/plain"}}}
	api.empty(plain)
	awaitTrue(t, "another mail", func() bool { return len(mailsTo(t, email)) == 2 })
	token, err := client.AwaitMail(t, email).Sptoken()
	if err != nil || token != first {
		t.Errorf("the second mail has the token %q, %v; want that of the first, %q", token, err, first)
	}
	api.want(http.StatusBadRequest, get("/verify"))
	api.want(http.StatusNotFound, get("/verify?sptoken=x"+token))
	api.empty(get("/verify?sptoken=" + token))
	api.want(http.StatusNotFound, get("/verify?sptoken="+token))
	api.want(http.StatusOK, post("/login", e2e.Object{"login": email, "password": e2e.Password}))
}

func TestTheOriginsOfAClientAPI(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	const page, stranger = "https://*.shop.example", "https://evil.example"
	client.Update(t, fixture.Application.Href(), e2e.Object{"authorizedOriginUris": []string{page}})
	api := openClientAPI(t, fixture.Application)
	from := func(origin string, request e2e.Request) e2e.Request {
		request.Header = http.Header{"Origin": {origin}}
		return request
	}
	login := post("/login", e2e.Object{"login": account.Text("email"), "password": e2e.Password})
	for _, origin := range []string{api.at, "https://www.shop.example"} {
		awaitTrue(t, "the origin to be let in", func() bool {
			return client.Call(t, from(origin, get(api.at+"/login"))).Header.Get("Access-Control-Allow-Origin") == origin
		})
		preflight := api.Call(t, e2e.Request{Method: http.MethodOptions, URL: api.at + "/login", Header: http.Header{
			"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type"},
		}})
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true", "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
			"Access-Control-Allow-Headers": "Content-Type, Accept, Authorization, X-Requested-With, X-Service-Agent", "Access-Control-Max-Age": "1800",
		} {
			if got := preflight.Header.Get(name); got != want {
				t.Errorf("the preflight of %s has %s %q", origin, name, got)
			}
		}
		answer := api.want(http.StatusOK, from(origin, login))
		sameSite := http.SameSiteLaxMode
		if origin != api.at { // the page of another site
			sameSite = http.SameSiteNoneMode
		}
		if set := cookies(t, answer); set["access_token"] == nil || set["access_token"].SameSite != sameSite || answer.Header.Get("Access-Control-Allow-Credentials") != "true" {
			t.Errorf("the page of %s gets %v", origin, answer.Header)
		}
	}
	preflight := api.Call(t, e2e.Request{Method: http.MethodOptions, URL: api.at + "/login", Header: http.Header{
		"Origin": {stranger}, "Access-Control-Request-Method": {"POST"},
	}})
	if preflight.Status != http.StatusForbidden || preflight.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of a stranger is %s %v", preflight, preflight.Header)
	}
	answer := api.want(http.StatusOK, from(stranger, login))
	if answer.Header.Get("Access-Control-Allow-Origin") != "" || len(answer.Header["Set-Cookie"]) > 0 {
		t.Errorf("a stranger's page gets %v", answer.Header)
	}
}

func TestARouteThatIsTurnedOffIs404WithinASecond(t *testing.T) {
	fixture := client.NewFixture(t)
	api, config := openClientAPI(t, fixture.Application), fixture.Application.Link(t, "webConfig")
	for _, each := range []struct{ member, method, path string }{
		{"login", "GET", "/login"}, {"register", "GET", "/register"}, {"me", "GET", "/me"}, {"oauth2", "POST", "/oauth/token"},
		{"forgotPassword", "POST", "/forgot"}, {"changePassword", "GET", "/change"}, {"verifyEmail", "POST", "/verify"},
	} {
		for _, on := range []bool{true, false, true} {
			client.Update(t, config, e2e.Object{each.member: e2e.Object{"enabled": on}})
			began := time.Now()
			awaitTrue(t, each.path+" to follow", func() bool {
				return (api.Call(t, e2e.Request{Method: each.method, URL: api.at + each.path}).Status != http.StatusNotFound) == on
			})
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s followed after %s", each.path, took)
			}
		}
	}
	client.Update(t, config, e2e.Object{"status": "DISABLED"})
	awaitTrue(t, "all to be off", func() bool { return api.Call(t, get(api.at+"/login")).Status == http.StatusNotFound })
}

func TestSecondFactorsByAClientAPI(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	api, login := openClientAPI(t, fixture.Application), passwordGrant(account.Text("email"), e2e.Password)
	passwordAlone := api.object(http.StatusOK, post("/oauth/token", login)).Text("access_token")
	client.Update(t, fixture.Application.Link(t, "webConfig"), e2e.Object{"mfa": e2e.Object{"required": true}})
	demand := func(action string) (body e2e.Object) {
		t.Helper()
		awaitTrue(t, action+" to be demanded", func() bool {
			answer := api.Call(t, post(api.at+"/oauth/token", login))
			var err error
			body, err = answer.Object()
			return err == nil && answer.Status == http.StatusBadRequest && body.Text("action") == action
		})
		if body.Text("error") != "access_denied" || body.Text("error_description") == "" || body["status"] != nil || body["message"] != nil {
			t.Errorf("the demand is %v", body)
		}
		return body
	}
	grant := func(state, code string) url.Values {
		return url.Values{"grant_type": {"service_factor_challenge"}, "state": {state}, "code": {code}}
	}
	api.want(http.StatusBadRequest, post("/factors", e2e.Object{"type": "sms", "phone": e2e.Object{"number": "+12675550100"}}))
	api.want(http.StatusBadRequest, post("/challenges", e2e.Object{}))

	enroll := demand("factor_enroll")
	number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
	enrolled := api.object(http.StatusOK, post("/factors?challenge=true", e2e.Object{"type": "sms", "phone": e2e.Object{"number": respelled(phoneNumber, number)}, "state": enroll.Text("state")}))
	code := awaitTextCode(t, number, "")
	api.oauthRefused(400, "invalid_grant", grant(enrolled.Text("state"), wrongCode(code)))
	if pair := api.object(http.StatusOK, post("/oauth/token", grant(enrolled.Text("state"), respelled(oneTimeCode, code)))); pair.Text("refresh_token") == "" {
		t.Errorf("the login with a second factor answered %v", pair)
	}

	challenge := demand("factor_challenge")
	if factor := challenge.Object("factor"); factor.Text("type") != "sms" || !strings.HasSuffix(factor.Text("hint"), number[len(number)-4:]) {
		t.Errorf("the factor is %v", factor)
	}
	api.want(http.StatusForbidden, post("/factors", e2e.Object{"type": "google-authenticator", "state": challenge.Text("state")}))
	second := awaitTextCode(t, number, code)
	again := api.object(http.StatusOK, post("/challenges", e2e.Object{"state": challenge.Text("state"), "type": "sms"}))
	third := awaitTextCode(t, number, second)
	if again.Text("status") != "CREATED" {
		t.Errorf("the challenge is %v", again)
	}
	if failed := api.object(http.StatusOK, post("/challenges", e2e.Object{"state": again.Text("state"), "code": wrongCode(third)})); failed.Text("status") != "FAILED" {
		t.Errorf("a wrong code is %v", failed)
	}
	pair := api.object(http.StatusOK, post("/oauth/token", grant(again.Text("state"), third)))

	newAuthenticator := e2e.Object{"type": "google-authenticator", "issuer": "Shop"}
	api.want(http.StatusForbidden, bearer(post("/factors", newAuthenticator), passwordAlone))
	phone := client.Get(t, account.Link(t, "factors")).Items(t)[0].Href()
	opened := api.object(http.StatusOK, bearer(post("/challenges", e2e.Object{"factor": phone}), passwordAlone))
	newAuthenticator["state"] = opened.Text("state")
	api.want(http.StatusForbidden, post("/factors", newAuthenticator))
	delete(newAuthenticator, "state")
	fourth := awaitTextCode(t, number, third)
	passed := api.object(http.StatusOK, post("/challenges", e2e.Object{"state": opened.Text("state"), "code": respelled(oneTimeCode, fourth)}))
	another := api.object(http.StatusOK, post("/factors", e2e.Object{"type": "google-authenticator", "state": passed.Text("state")}))
	if another.Text("secret") == "" {
		t.Errorf("after a challenge that was passed: %v", another)
	}

	authenticator := api.object(http.StatusOK, bearer(post("/factors", newAuthenticator), pair.Text("access_token")))
	if authenticator.Text("keyUri") == "" || authenticator.Text("base64QRImage") == "" || authenticator.Text("state") == "" {
		t.Fatalf("the authenticator is %v", authenticator)
	}
	early := totpCode(t, authenticator.Text("keyUri"), time.Now().Add(-30*time.Second))
	if body := api.object(http.StatusBadRequest, post("/oauth/token", grant(authenticator.Text("state"), early))); body.Text("error") == "" || body["access_token"] != nil {
		t.Errorf("a state of a user who is logged in leads to %v", body)
	}
	right := api.object(http.StatusOK, post("/challenges", e2e.Object{"state": authenticator.Text("state"), "code": totpCode(t, authenticator.Text("keyUri"), time.Now())}))
	if right.Text("status") != "SUCCESS" {
		t.Errorf("the right code is %v", right)
	}
	if factors, _ := demand("factor_select")["factors"].([]any); len(factors) != 2 {
		t.Errorf("the factors are %v", factors)
	}
}
