package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

const (
	pageOrigin = "https://pages.example.test"
	returnTo   = "https://shop.example.test/callback"
)

// pageAPI is a hosted page of an application: a browser program of another origin that
// keeps the newest token.
type pageAPI struct {
	client
	tenant      id.ID
	application id.ID
	token       string
}

// newPage begins a hosted login of an application with one account.
func newPage(t *testing.T, wrap ...func(*idsite.Peers)) *pageAPI {
	t.Helper()
	c := newClient(t, wrap...)
	tenant, site := c.tenant(t, "K1")
	shop, _ := c.peers.Shop(tenant, "jo@example.test")
	at := id.Ref{Tenant: tenant, ID: shop}
	c.peers.Applications.Change(at, idsitetest.Named("Shop", returnTo))
	c.peers.Applications.SetLabel(at, "calm-otter")
	if status, body := c.update(t, tenant, site, `{"authorizedOriginUris":["`+pageOrigin+`"]}`); status != 200 {
		t.Fatalf("the settings answer %d: %v", status, body)
	}
	p := &pageAPI{client: c, tenant: tenant, application: shop}
	p.begin(t, secure.Claims{"jti": "request"})
	return p
}

// begin begins another hosted login, with further claims of its request.
func (p *pageAPI) begin(t *testing.T, more secure.Claims) {
	t.Helper()
	claims := secure.Claims{"iss": "K1", "sub": base.To("applications", p.application), "cb_uri": returnTo, "iat": 1795242600}
	maps.Copy(claims, more)
	request, err := secure.SignJWT(map[string]any{"typ": "JWT"}, claims, "secret")
	if err != nil {
		t.Fatal(err)
	}
	answer, body := p.send(t, http.MethodGet, "/sso?jwtRequest="+request, "", "")
	_, token, found := strings.Cut(answer.Header.Get("Location"), "?jwt=")
	if !found {
		t.Fatalf("the request leads to %q: %s", answer.Header.Get("Location"), body)
	}
	p.token = token
}

// call asks as the page does, and keeps the token of the answer.
func (p *pageAPI) call(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	answer, text := p.send(t, method, "/session/v1"+path, fiber.MIMEApplicationJSON, body, "Origin", pageOrigin, "Authorization", "Bearer "+p.token)
	if next, renewed := strings.CutPrefix(answer.Header.Get("Authorization"), "Bearer "); renewed {
		p.token = next
	}
	return answer, text
}

func (p *pageAPI) logIn(t *testing.T, login, password string) (*http.Response, string) {
	t.Helper()
	value := base64.StdEncoding.EncodeToString([]byte(login + ":" + password))
	return p.call(t, http.MethodPost, "/applications/"+p.application.String()+"/loginAttempts", `{"type":"basic","value":"`+value+`"}`)
}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

// A page is anonymous: a wrong password and an unknown login are one answer.
func TestAPageDoesNotLearnWhetherAnAccountExists(t *testing.T) {
	p := newPage(t)
	answer, wrong := p.logIn(t, "jo@example.test", "Wrong0000!")
	if answer.StatusCode != 400 || !strings.Contains(wrong, `"code":7100`) {
		t.Errorf("a wrong password answers %d %s", answer.StatusCode, wrong)
	}
	unknownAnswer, unknown := p.logIn(t, "nobody@example.test", "Wrong0000!")
	if unknownAnswer.StatusCode != 400 || requestID.ReplaceAllString(unknown, "") != requestID.ReplaceAllString(wrong, "") {
		t.Errorf("an unknown login answers\n%s\nand a wrong password\n%s", unknown, wrong)
	}
}

// After the right password, and not before, the page learns that the address is not verified, and which it is; it
// may have the mail sent again for this account, and for no other.
func TestAPageSendsTheVerificationMailAgainAfterTheRightPassword(t *testing.T) {
	p := newPage(t)
	shop := id.Ref{Tenant: p.tenant, ID: p.application}
	jo, err := p.peers.Applications.LoginAccount(t.Context(), applicationapi.LoginName{
		LoginTarget: applicationapi.LoginTarget{Tenant: shop.Tenant, Application: shop.ID}, Login: "jo@example.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	p.peers.Directories.EnableVerification(t, id.Ref{Tenant: p.tenant, ID: jo.DirectoryID})
	at := id.Ref{Tenant: p.tenant, ID: jo.ID}
	p.peers.Directories.Change(t, at, directoryapi.NewAccount{Status: field.Some(directoryapi.Unverified), Username: field.Some("jojo")})
	again := func(login string) (int, string) {
		answer, body := p.call(t, http.MethodPost, "/applications/"+shop.ID.String()+"/verificationEmails", `{"login":"`+login+`"}`)
		return answer.StatusCode, body
	}
	shown := func() string {
		body, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Split(p.token, ".")[1], "="))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if answer, body := p.logIn(t, "jojo", "Wrong0000!"); answer.StatusCode != 400 || !strings.Contains(body, `"code":7100`) || strings.Contains(shown(), "jo@") {
		t.Errorf("a wrong password is answered %d %s, with the token %s", answer.StatusCode, body, shown())
	}
	if status, body := again("jo@example.test"); status != 403 {
		t.Errorf("a mail before the right password is answered %d %s", status, body)
	}
	if answer, body := p.logIn(t, "jojo", string(idsitetest.Password)); answer.StatusCode != 400 || !strings.Contains(body, `"code":7102`) ||
		!strings.Contains(shown(), `"unverified_email":"jo@example.test"`) {
		t.Errorf("the right password is answered %d %s, with the token %s", answer.StatusCode, body, shown())
	}
	if status, body := again("al@example.test"); status != 403 {
		t.Errorf("a mail to another account is answered %d %s", status, body)
	}
	for i, login := range []string{`\u2003JO@example.test\n`, "jojo"} {
		if status, body := again(login); status != 200 || body != "{}" {
			t.Errorf("mail %d is answered %d %s", i+1, status, body)
		}
	}
	for range directoryapi.MaxAnonymousMails {
		_, _ = again("jojo")
	}
	if status, body := again("jojo"); status != 429 {
		t.Errorf("a mail beyond the limit is answered %d %s", status, body)
	}
	p.peers.Directories.Change(t, at, directoryapi.NewAccount{
		Status: field.Some(directoryapi.Enabled), EmailVerificationStatus: field.Some(directoryapi.Verified),
	})
	if status, body := again("jojo"); status != 404 {
		t.Errorf("a mail to an address that is verified is answered %d %s", status, body)
	}
	if answer, body := p.logIn(t, "jojo", string(idsitetest.Password)); answer.StatusCode != 204 {
		t.Errorf("the login is answered %d %s", answer.StatusCode, body)
	}
}

// Some pages send null for a body that they do not have.
func TestABodyOfAPageMayBeNull(t *testing.T) {
	p := newPage(t)
	for _, body := range []string{"", "null", "true", "{}", " null "} {
		answer, text := p.call(t, http.MethodPost, "/factors/"+p.application.String()+"/challenges", body)
		if answer.StatusCode != 403 || answer.Header.Get("Authorization") == "" {
			t.Errorf("%q answers %d %s", body, answer.StatusCode, text)
		}
	}
}

// mapGoogle maps a directory of a social provider to the application.
func (p *pageAPI) mapGoogle(t *testing.T) id.ID {
	t.Helper()
	return p.peers.MapGoogle(t, id.Ref{Tenant: p.tenant, ID: p.application})
}

// A client may append all parameters to an authorizeUri again, with a question mark, as if
// the address had no query.
func TestAnAuthorizeURIWithTwoQueries(t *testing.T) {
	p := newPage(t)
	google := p.mapGoogle(t)
	_, body := p.client.call(t, http.MethodGet, "/login", "")
	var model struct {
		AccountStores []struct {
			Href         string `json:"href"`
			AuthorizeURI string `json:"authorizeUri"`
		} `json:"accountStores"`
	}
	if err := json.Unmarshal([]byte(body), &model); err != nil || len(model.AccountStores) != 1 ||
		model.AccountStores[0].Href != base.To("directories", google) {
		t.Fatalf("the login model is %s", body)
	}
	_, begin, _ := strings.Cut(model.AccountStores[0].AuthorizeURI, "/authorize?")
	again := url.Values{"response_type": {"service_token"}, "account_store_href": {model.AccountStores[0].Href}, "redirect_uri": {returnTo}}
	answer, body := p.client.call(t, http.MethodGet, "/authorize?"+begin+"?"+again.Encode(), "")
	if to := answer.Header.Get("Location"); answer.StatusCode != 302 || !strings.HasPrefix(to, directorytest.AuthorizeURL()) {
		t.Errorf("the browser is sent to %q: %d %s", to, answer.StatusCode, body)
	}
}

// A page whose request names an organization, in either way, asks for the model of the
// organization and sends its users there, also those of a provider.
func TestAPageCallsTheOrganizationOfItsRequest(t *testing.T) {
	p := newPage(t)
	google := p.mapGoogle(t)
	acme := p.peers.Applications.NewOrganization(p.tenant, p.application, "acme", google)
	other := p.peers.Applications.NewOrganization(p.tenant, p.application, "other", google)
	body := `{"providerData":{"providerId":"google","accessToken":"` + directorytest.UserToken("1", "jo@example.test").Reveal() + `"}}`
	for name, value := range map[string]string{"onk": "acme", "ash": base.To("organizations", acme)} {
		for _, c := range []struct {
			organization id.ID
			model, login int
		}{{other, 403, 403}, {acme, 200, 204}} {
			p.begin(t, secure.Claims{"jti": name + c.organization.String(), name: value})
			at := "/organizations/" + c.organization.String()
			if answer, text := p.call(t, http.MethodGet, at+"?expand=idSiteModel", ""); answer.StatusCode != c.model {
				t.Errorf("%s: the model is %d %s", name, answer.StatusCode, text)
			}
			answer, text := p.call(t, http.MethodPost, at+"/accounts", body)
			if answer.StatusCode != c.login || (answer.Header.Get("Service-SSO-Redirect-Location") != "") != (c.login == 204) {
				t.Errorf("%s: the login at a provider is %d %s", name, answer.StatusCode, text)
			}
		}
	}
}

// What a page may not call is 403, whether the path exists or not, and has the next token
// as every answer.
func TestAPageKeepsItsSessionWhereItMayNotCall(t *testing.T) {
	p := newPage(t)
	for _, each := range []struct{ method, path string }{
		{"DELETE", "/applications/" + p.application.String()}, {"PUT", "/applications/" + p.application.String()}, {"GET", "/nonsense"},
		{"GET", "/applications/" + p.application.String() + "/apiKeys"},
	} {
		answer, text := p.call(t, each.method, each.path, "")
		if answer.StatusCode != 403 || answer.Header.Get("Authorization") == "" {
			t.Errorf("%s %s answers %d %s", each.method, each.path, answer.StatusCode, text)
		}
	}
}

// The end of a session can be read by the pages that could read its answers, and by
// no other.
func TestOnlyCallsOfAPageHavePreflights(t *testing.T) {
	p := newPage(t)
	preflight := func(path, method string) *http.Response {
		answer, _ := p.send(t, "OPTIONS", "/session/v1"+path, "", "", "Origin", "https://any.example", "Access-Control-Request-Method", method)
		return answer
	}
	for _, call := range []string{"GET /applications/1", "GET /organizations/1", "GET /applications/1/saml/sso/idpRedirect",
		"POST /applications/1/loginAttempts", "POST /directories/1/accounts", "POST /applications/1/passwordResetTokens",
		"GET /applications/1/passwordResetTokens/a.b.c", "POST /applications/1/passwordResetTokens/a.b.c",
		"POST /accounts/emailVerificationTokens/a.b.c", "GET /accounts/1/factors", "POST /accounts/1/factors",
		"POST /factors/1/challenges", "POST /challenges/1",
	} {
		method, path, _ := strings.Cut(call, " ")
		if a := preflight(path, method); a.StatusCode != 204 || a.Header.Get("Access-Control-Allow-Origin") != "https://any.example" {
			t.Errorf("the preflight of %s is %d %v", call, a.StatusCode, a.Header)
		}
	}
	for _, call := range []string{"GET /nonsense", "GET /applications", "POST /applications/1", "DELETE /applications/1", "GET /accounts/1",
		"GET /applications/1/loginAttempts", "GET /applications/1/accounts", "GET /challenges/1", "GET /accounts/1/apiKeys",
	} {
		method, path, _ := strings.Cut(call, " ")
		a := preflight(path, method)
		for name := range a.Header {
			if a.StatusCode != 401 || strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("the preflight of %s is %d with %s", call, a.StatusCode, name)
			}
		}
	}
}

// A Bearer token that is none of a session is no credential: the answer says which there are.
func TestABearerTokenThatIsNoSessionIsNoAuthentication(t *testing.T) {
	p := newPage(t)
	for _, token := range []string{"anything", "a.b.c", p.token + "x"} {
		answer, body := p.send(t, http.MethodGet, "/session/v1/applications/"+p.application.String(), "", "",
			"Authorization", "Bearer "+token)
		if answer.StatusCode != 401 || !strings.Contains(body, `"code":401`) ||
			answer.Header.Get("WWW-Authenticate") != `Basic realm="service", SAuthc1` {
			t.Errorf("%s is answered %d %s, %v", token, answer.StatusCode, body, answer.Header)
		}
	}
}

func TestAPageReadsThatItsSessionHasEnded(t *testing.T) {
	p := newPage(t)
	if answer, body := p.logIn(t, "jo@example.test", idsitetest.Password.Reveal()); answer.Header.Get("Service-SSO-Redirect-Location") == "" ||
		answer.Header.Get("Authorization") != "" {
		t.Fatalf("the login answers %d %s", answer.StatusCode, body)
	}
	over := "/session/v1/applications/" + p.application.String()
	for origin, want := range map[string]string{pageOrigin: pageOrigin, "https://evil.example": "", "null": ""} {
		answer, body := p.send(t, http.MethodGet, over, "", "", "Origin", origin, "Authorization", "Bearer "+p.token)
		if answer.StatusCode != 401 || !strings.Contains(body, `"code":12001`) || answer.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("%s gets %d %s, %v", origin, answer.StatusCode, body, answer.Header)
		}
		back, err := url.Parse(answer.Header.Get("Service-SSO-Redirect-Location"))
		if err != nil || back.Query().Get("jwtResponse") == "" {
			t.Errorf("%s is sent to %q", origin, back)
		}
	}
	answer, _ := p.send(t, http.MethodGet, over, "", "", "Origin", pageOrigin, "Authorization", "Bearer "+p.token+"x")
	if answer.StatusCode != 401 || answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a token that nobody signed gets %d %v", answer.StatusCode, answer.Header)
	}
}

// The forms of the Client API show the directories of an organization where the request names it, and a
// hosted page those of all organizations. A user logs in at each of them.
func TestTheDirectoriesOfAnOrganizationAreShownWhereItIsNamed(t *testing.T) {
	p := newPage(t)
	mirror := p.peers.Directories.NewMirror(t, p.tenant, "Google", "google")
	p.peers.Applications.NewOrganization(p.tenant, p.application, "acme", mirror)
	google := base.To("directories", mirror)
	for path, shown := range map[string]bool{
		"/login": false, "/register": false, "/login?organizationNameKey=acme": true, "/register?organizationNameKey=acme": true,
	} {
		answer, body := p.client.call(t, http.MethodGet, path, "")
		if answer.StatusCode != 200 || strings.Contains(body, google) != shown {
			t.Errorf("GET %s answers %d %s", path, answer.StatusCode, body)
		}
	}
	_, model := p.call(t, http.MethodGet, "/applications/"+p.application.String()+"?expand=idSiteModel", "")
	if !strings.Contains(model, google) {
		t.Errorf("the model of the hosted page is %s", model)
	}
	begin := url.Values{"response_type": {"service_token"}, "redirect_uri": {returnTo}, "account_store_href": {google}}
	if answer, body := p.client.call(t, http.MethodGet, "/authorize?"+begin.Encode(), ""); answer.StatusCode != 302 {
		t.Errorf("the login at the provider answers %d %s", answer.StatusCode, body)
	}
}

// A session of the hosted pages sets one password, whatever reset tokens its browser has.
func TestASessionSetsOnePassword(t *testing.T) {
	p := newPage(t)
	shop := id.Ref{Tenant: p.tenant, ID: p.application}
	stores, err := p.peers.Applications.LoginDirectories(t.Context(), applicationapi.LoginTarget{Tenant: shop.Tenant, Application: shop.ID})
	if err != nil {
		t.Fatal(err)
	}
	customers := stores.Directories[0]
	p.peers.Directories.NewAccount(p.tenant, customers, directoryapi.NewAccount{Email: field.Some("al@example.test")})
	path := func(email string) string {
		reset, err := p.peers.Directories.RequestReset(t.Context(), directoryapi.RequestReset{Tenant: p.tenant, Login: email,
			Application: shop.ID, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: customers}}})
		if err != nil {
			t.Fatal(err)
		}
		return "/applications/" + shop.ID.String() + "/passwordResetTokens/" + reset.Token.Reveal()
	}
	jo, al := path("jo@example.test"), path("al@example.test")
	for _, each := range []struct {
		at, password string
		status       int
	}{{jo + "x", "Different1!", 404}, {jo, "x", 400}, {jo, "Different1!", 200}, {jo, "Different2!", 404}} {
		if answer, body := p.call(t, http.MethodPost, each.at, `{"password":"`+each.password+`"}`); answer.StatusCode != each.status {
			t.Errorf("%s is answered %d %s, want %d", each.password, answer.StatusCode, body, each.status)
		}
	}
	answer, body := p.call(t, http.MethodPost, al, `{"password":"Different1!"}`)
	if answer.StatusCode != 401 || !strings.Contains(body, `"code":12001`) || answer.Header.Get("Authorization") != "" {
		t.Errorf("the password of another account is answered %d %s", answer.StatusCode, body)
	}
	if answer, body := p.logIn(t, "jo@example.test", "Different1!"); answer.StatusCode != 204 {
		t.Errorf("the login with the new password is answered %d %s", answer.StatusCode, body)
	}
	p.begin(t, secure.Claims{"jti": "another request"})
	if answer, body := p.call(t, http.MethodPost, al, `{"password":"Different1!"}`); answer.StatusCode != 200 {
		t.Errorf("another session is answered %d %s", answer.StatusCode, body)
	}
}

// A page is anonymous until the second step: it does not choose the secret of the factor.
func TestAPageGivesNoSecretForANewFactor(t *testing.T) {
	p := newPage(t)
	p.begin(t, secure.Claims{"jti": "another", "require_mfa": "google-authenticator"})
	if answer, body := p.logIn(t, "jo@example.test", idsitetest.Password.Reveal()); answer.StatusCode != 200 {
		t.Fatalf("the login answers %d %s", answer.StatusCode, body)
	}
	jo, err := p.peers.Applications.LoginAccount(t.Context(), applicationapi.LoginName{
		LoginTarget: applicationapi.LoginTarget{Tenant: p.tenant, Application: p.application}, Login: "jo@example.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	enroll := func(more string) (*http.Response, string) {
		t.Helper()
		return p.call(t, http.MethodPost, "/accounts/"+jo.ID.String()+"/factors", `{"type":"google-authenticator"`+more+`}`)
	}
	for _, more := range []string{`,"secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"`, `,"verificationStatus":"VERIFIED"`} {
		if answer, body := enroll(more); answer.StatusCode != 400 || !strings.Contains(body, `"code":2015`) {
			t.Errorf("with %s it is answered %d %s", more, answer.StatusCode, body)
		}
	}
	factors, err := p.peers.MFA.FactorsOf(t.Context(), id.Ref{Tenant: p.tenant, ID: jo.ID})
	if err != nil || len(factors.Items) > 0 {
		t.Errorf("the account has the factors %+v, %v", factors, err)
	}
	if answer, body := enroll(""); answer.StatusCode != 201 {
		t.Errorf("without a secret it is answered %d %s", answer.StatusCode, body)
	}
}
