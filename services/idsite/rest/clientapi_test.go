package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
)

const origin = "https://shop.example.test"

// newClientAPI is a service with an application and an account of its tenant.
func newClientAPI(t testing.TB, wrap ...func(*idsite.Peers)) (client, directoryapi.Account) {
	t.Helper()
	c := newClient(t, wrap...)
	tenant, _ := c.tenant(t, "K1")
	shop, user := c.peers.Shop(tenant, "jo@example.test")
	at, in := id.Ref{Tenant: tenant, ID: shop}, idsitetest.Named(`The "Shop"`)
	in.AuthorizedOriginURIs = field.Some([]string{origin})
	c.peers.Applications.SetLabel(at, "calm-otter")
	c.peers.Applications.Change(at, in)
	return c, user
}

// call asks the Client API as a browser does, in JSON.
func (c client) call(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	return c.send(t, method, "/client/calm-otter"+path, fiber.MIMEApplicationJSON, body, header...)
}

// Who begins a login writes the Host, and who is sent to the address that is made of it may
// be another.
func TestTheAddressOfAClientAPIIsNotWhatTheHostSays(t *testing.T) {
	c, user := newClientAPI(t)
	c.peers.Directories.Mirror(t, id.Ref{Tenant: user.TenantID, ID: user.DirectoryID}, "google")
	for host, want := range map[string]string{
		"": base.Host() + "/client/calm-otter", "calm-otter.apps.localhost:8443@evil.example": "https://calm-otter.apps.localhost:8443",
		"calm-otter.apps.localhost:9": "https://calm-otter.apps.localhost:8443",
	} {
		_, body := c.call(t, "GET", "/login", "", idsiterest.HostHeader, host)
		if !strings.Contains(body, `"authorizeUri":"`+want+`/authorize?`) {
			t.Errorf("with the host %q the page reads %s", host, body)
		}
	}
}

const signIn = `{"login":"jo@example.test","password":"` + string(idsitetest.Password) + `"}`

// A page of another site gets its cookies back only where its origin is allowed.
func TestTheCookiesOfTheClientAPI(t *testing.T) {
	c, _ := newClientAPI(t)
	for from, want := range map[string]http.SameSite{
		"": http.SameSiteLaxMode, base.Host(): http.SameSiteLaxMode, origin: http.SameSiteNoneMode, "https://evil.example": 0,
	} {
		var header []string
		if from != "" {
			header = []string{"Origin", from}
		}
		answer, body := c.call(t, "POST", "/login", signIn, header...)
		if answer.StatusCode != 200 {
			t.Fatalf("%d: %s", answer.StatusCode, body)
		}
		if cookies := answer.Cookies(); (len(cookies) == 2) != (want != 0) {
			t.Errorf("from %q the cookies are %v", from, cookies)
		}
		for _, cookie := range answer.Cookies() {
			if !cookie.HttpOnly || !cookie.Secure || cookie.Path != "/client/calm-otter" || cookie.SameSite != want ||
				cookie.Partitioned != (want == http.SameSiteNoneMode) || cookie.MaxAge < 1 {
				t.Errorf("from %q the cookie is %v", from, cookie)
			}
		}
		if answer.Header.Get("Access-Control-Allow-Origin") != strings.TrimPrefix(from, "https://evil.example") {
			t.Errorf("from %q the header is %v", from, answer.Header)
		}
	}
	answer, _ := c.call(t, "POST", "/logout", "", "Cookie", "access_token=x", "Origin", origin)
	for _, cookie := range answer.Cookies() {
		if !cookie.Partitioned || cookie.SameSite != http.SameSiteNoneMode || cookie.Path != "/client/calm-otter" || cookie.Value != "" || cookie.Expires.Year() > 1970 || cookie.MaxAge != -1 || !strings.Contains(cookie.Raw, "Max-Age=0") {
			t.Errorf("a logout leaves %v", cookie)
		}
	}
	if len(answer.Cookies()) != 2 || answer.StatusCode != 200 {
		t.Errorf("a logout answers %d with %v", answer.StatusCode, answer.Cookies())
	}
}

// A page of another site that loads the profile as an image does not clear the cookies
// of its visitor.
func TestAnImageOfAnotherSiteClearsNoCookies(t *testing.T) {
	c, _ := newClientAPI(t)
	answer, _ := c.call(t, "POST", "/login", signIn)
	good := answer.Cookies()[0].Value
	for site, cleared := range map[string]bool{"": true, "none": true, "same-origin": true, "cross-site": false} {
		header := []string{"Cookie", "access_token=x; refresh_token=x", "Sec-Fetch-Site", site}
		if answer, body := c.call(t, "GET", "/me", "", header...); answer.StatusCode != 401 || len(answer.Cookies()) == 2 != cleared {
			t.Errorf("from the site %q: %d %s with %v", site, answer.StatusCode, body, answer.Cookies())
		}
		header[1] = "access_token=" + good
		if answer, body := c.call(t, "GET", "/me", "", header...); answer.StatusCode != 200 {
			t.Errorf("from the site %q: %d %s", site, answer.StatusCode, body)
		}
	}
}

// The preflight of an origin that is not allowed is 403, also of a token endpoint.
func TestThePreflightOfAForeignPage(t *testing.T) {
	c, _ := newClientAPI(t)
	for _, path := range []string{"/login", "/oauth/token", "/oauth/revoke"} {
		answer, body := c.call(t, "OPTIONS", path, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
		if answer.StatusCode != 403 || !strings.Contains(body, `"status":403`) || answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s answers %d %s", path, answer.StatusCode, body)
		}
		answer, body = c.call(t, "OPTIONS", path, "", "Origin", origin, "Access-Control-Request-Method", "POST")
		if answer.StatusCode != 204 || !strings.Contains(answer.Header.Get("Access-Control-Allow-Headers"), "X-Service-Agent") {
			t.Errorf("%s answers %d %s to an allowed page", path, answer.StatusCode, body)
		}
	}
}

// A page of another site cannot log its visitors out.
func TestALogoutFromAPageOfAnotherSiteRevokesNothing(t *testing.T) {
	c, _ := newClientAPI(t)
	answer, _ := c.call(t, "POST", "/login", signIn)
	token := answer.Cookies()[0].Value
	for _, from := range []struct {
		origin string
		cookie bool // the token is sent as a cookie, otherwise as a bearer token
		ended  bool
	}{{"https://evil.example", true, false}, {"null", true, false}, {origin, true, true}, {"https://evil.example", false, true}} {
		credential := []string{"Authorization", "Bearer " + token}
		if from.cookie {
			credential = []string{"Cookie", "access_token=" + token}
		}
		revoked := c.peers.OAuth.Calls("ClientRevoke")
		answer, body := c.call(t, "POST", "/logout", "", append(credential, "Origin", from.origin)...)
		if answer.StatusCode != 200 || body != "" || (len(answer.Cookies()) == 2) != (from.origin == origin) {
			t.Errorf("%+v: the logout answers %d %q with %v", from, answer.StatusCode, body, answer.Cookies())
		}
		if ended := c.peers.OAuth.Calls("ClientRevoke") > revoked; ended != from.ended {
			t.Errorf("%+v: the token is revoked: %v", from, ended)
		}
	}
}

// Every error has two members, those of a throttled login too, which says when to try
// again.
func TestTheErrorsOfTheClientAPI(t *testing.T) {
	c, _ := newClientAPI(t)
	throttled := false
	c.peers.OAuth.Break("ClientToken", fault.Before, func() error {
		if throttled {
			return apierr.TooMany.Because("too many logins have failed").WithRetryAfter(7 * time.Second)
		}
		return nil
	})
	for _, each := range []struct{ method, path, body, want string }{
		{"GET", "/nothing", "", `{"message":"*","status":404}`},
		{"GET", "", "", `{"message":"*","status":404}`},
		{"DELETE", "/login", "", `{"message":"*","status":405}`},
		{"GET", "/oauth/token", "", `{"message":"*","status":405}`},
		{"POST", "/login", `{"login":"jo@example.test"}`, `{"message":"*","status":400}`},
		{"POST", "/login", `{"login":"throttled","password":"x"}`, `{"message":"*","status":429}`},
		{"POST", "/oauth/token", "grant_type=password&username=throttled", `{"error":"temporarily_unavailable","message":"*"}`},
		{"POST", "/oauth/token", "grant_type=password&username=jo&password=x", `{"error":"invalid_grant","message":"*"}`},
		{"POST", "/oauth/token", "{}", `{"error":"invalid_request","message":"*"}`},
		{"POST", "/oauth/token", "grant_type=password&username=jo@example.test&username=other&password=" + url.QueryEscape(string(idsitetest.Password)),
			`{"error":"invalid_request","message":"*"}`},
		{"POST", "/oauth/token", "grant_type=" + strings.Repeat("x", 64<<10), `{"error":"invalid_request","message":"*"}`},
		{"POST", "/login", "login=jo@example.test&login=&password=x", `{"message":"*","status":400}`},
	} {
		kind := fiber.MIMEApplicationJSON
		if strings.Contains(each.body, "=") {
			kind = fiber.MIMEApplicationForm
		}
		throttled = strings.Contains(each.body, "throttled")
		answer, body := c.send(t, each.method, "/client/calm-otter"+each.path, kind, each.body)
		if got := regexp.MustCompile(`"message":"[^"]+"`).ReplaceAllString(body, `"message":"*"`); got != each.want {
			t.Errorf("%s %s %s answers %s", each.method, each.path, each.body, body)
		}
		if throttled != (answer.Header.Get("Retry-After") == "7") ||
			throttled != (answer.StatusCode == 429) || len(each.body) > 64<<10 != (answer.StatusCode == 413) {
			t.Errorf("%s %s answers %d with Retry-After %q", each.path, each.body, answer.StatusCode, answer.Header.Get("Retry-After"))
		}
	}
}

// A method that a route has not is 405 with those that it has; an unknown route is 404
// by every method.
func TestTheMethodsOfTheClientAPI(t *testing.T) {
	c, _ := newClientAPI(t)
	for path, allow := range map[string]string{
		"/login": "GET, HEAD, POST, OPTIONS", "/me": "GET, HEAD, OPTIONS", "/logout": "POST, OPTIONS", "/oauth/token": "POST, OPTIONS",
		"/saml/sso": "GET, HEAD, POST, OPTIONS", "/nothing": "", "/oauth/nothing": "",
	} {
		status := 405
		if allow == "" {
			status = 404
		}
		for _, method := range []string{"PUT", "DELETE"} {
			answer, body := c.call(t, method, path, "")
			if answer.StatusCode != status || answer.Header.Get("Allow") != allow || !strings.Contains(body, `"status":`+strconv.Itoa(status)) {
				t.Errorf("%s %s answers %d %s with Allow %q", method, path, answer.StatusCode, body, answer.Header.Get("Allow"))
			}
		}
	}
}

func TestMeRequiresAnAccessToken(t *testing.T) {
	c, _ := newClientAPI(t)
	for _, header := range [][]string{nil, {"Authorization", "Bearer x"}, {"Authorization", "Basic eDp5"}, {"Cookie", "access_token=x"}} {
		answer, body := c.call(t, "GET", "/me", "", header...)
		if answer.StatusCode != 401 || body != "" || answer.Header.Get("WWW-Authenticate") != `Bearer realm="The 'Shop'"` {
			t.Errorf("%v gets %d %q, %s", header, answer.StatusCode, body, answer.Header.Get("WWW-Authenticate"))
		}
		if cleared := len(answer.Cookies()) == 2; cleared != (len(header) > 0 && header[0] == "Cookie") {
			t.Errorf("%v: the cookies are %v", header, answer.Cookies())
		}
	}
	answer, _ := c.call(t, "POST", "/login", signIn)
	token := answer.Cookies()[0].Value
	for _, header := range [][]string{{"Authorization", "Bearer " + token}, {"Authorization", "bearer " + token}, {"Cookie", "access_token=" + token}} {
		answer, body := c.call(t, "GET", "/me", "", header...)
		if answer.StatusCode != 200 || !strings.Contains(body, `"jo@example.test"`) ||
			answer.Header.Get("Cache-Control") != "no-store, no-cache" || answer.Header.Get("Pragma") != "no-cache" {
			t.Errorf("%v gets %d %s, %v", header, answer.StatusCode, body, answer.Header)
		}
	}
}

// The answers do not report whether an account exists, and the links of the mails do
// not follow what a client says of the host.
func TestForgotPasswordHidesWhetherAnAccountExists(t *testing.T) {
	c, user := newClientAPI(t)
	c.peers.Directories.EnableVerification(t, id.Ref{Tenant: user.TenantID, ID: user.DirectoryID})
	for _, path := range []string{"/forgot", "/verify"} {
		var first string
		for _, login := range []string{"jo@example.test", "nobody@example.test"} {
			answer, body := c.call(t, "POST", path, `{"login":"`+login+`"}`, "X-Forwarded-Host", "evil.example", "Forwarded", "host=evil.example")
			all := answer.Status + body + answer.Header.Get("Content-Length") + answer.Header.Get("Content-Type")
			if first == "" {
				first = all
			}
			if all != first || answer.StatusCode != 200 || body != "" {
				t.Errorf("%s of %s answers %q, want %q", path, login, all, first)
			}
		}
	}
	if mails := c.peers.Applications.Calls("RequestReset") + c.peers.Applications.Calls("RequestVerification"); mails != 4 {
		t.Errorf("%d mails are asked for, want one for each", mails)
	}
}

func TestForgotPasswordWithoutALoginIsAnsweredAsAnyOther(t *testing.T) {
	c, user := newClientAPI(t)
	c.peers.Directories.EnableVerification(t, id.Ref{Tenant: user.TenantID, ID: user.DirectoryID})
	for _, body := range []string{`{}`, `{"login":" "}`, `{"email":null}`, `{"login":"jo@example.test","email":"al@example.test"}`} {
		for path, want := range map[string]int{"/forgot": 200, "/verify": 400} {
			if answer, text := c.call(t, "POST", path, body); answer.StatusCode != want || want == 200 && text != "" {
				t.Errorf("%s with %s gets %d %s, want %d", path, body, answer.StatusCode, text, want)
			}
		}
	}
}

// A member that names the account store is never ignored: the request would go to another one.
func TestAnAccountStoreOfTheWrongTypeIsRefused(t *testing.T) {
	c, user := newClientAPI(t)
	shop, err := c.peers.Applications.ApplicationByDNSLabel(t.Context(), applicationapi.DNSLabel{Label: "calm-otter"})
	if err != nil {
		t.Fatal(err)
	}
	c.peers.Applications.NewOrganization(shop.TenantID, shop.ID, "acme", user.DirectoryID)
	bodies := map[string]string{
		"/login":    strings.TrimSuffix(signIn, "}"),
		"/forgot":   `{"login":"jo@example.test"`,
		"/verify":   `{"login":"jo@example.test"`,
		"/register": `{"email":"new@example.test","password":"Changeme1!"`,
	}
	c.peers.Directories.EnableVerification(t, id.Ref{Tenant: user.TenantID, ID: user.DirectoryID})
	for path, body := range bodies {
		refused := []string{}
		for _, value := range []string{`{"nameKey":"acme"}`, `5`, `["acme"]`, `true`} {
			refused = append(refused, `"organizationNameKey":`+value)
		}
		for _, value := range []string{`5`, `[]`, `true`, `{}`, `{"href":5}`, `{"foo":"x"}`} {
			refused = append(refused, `"accountStore":`+value)
		}
		for _, member := range refused {
			answer, text := c.call(t, "POST", path, body+","+member+"}")
			if answer.StatusCode != 400 || !strings.HasPrefix(text, `{"message":`) || !strings.HasSuffix(text, `,"status":400}`) {
				t.Errorf("%s with %s answers %d %s", path, member, answer.StatusCode, text)
			}
		}
	}
	if mails := c.peers.Applications.Calls("RequestReset") + c.peers.Applications.Calls("RequestVerification"); mails != 0 {
		t.Errorf("%d mails are asked for", mails)
	}
	directory := base.To("directories", user.DirectoryID)
	for _, member := range []string{
		`"organizationNameKey":null`, `"organizationNameKey":""`, `"organizationNameKey":"acme"`, `"accountStore":null`, `"accountStore":""`,
		`"accountStore":"` + directory + `"`, `"accountStore":{"href":"` + directory + `"}`, `"accountStore":{"nameKey":"acme"}`,
	} {
		if answer, text := c.call(t, "POST", "/login", bodies["/login"]+","+member+"}"); answer.StatusCode != 200 {
			t.Errorf("the login with %s answers %d %s", member, answer.StatusCode, text)
		}
	}
	form := url.Values{"login": {"jo@example.test"}, "password": {string(idsitetest.Password)}, "accountStore": {directory}}
	if answer, text := c.send(t, "POST", "/client/calm-otter/login", fiber.MIMEApplicationForm, form.Encode()); answer.StatusCode != 200 {
		t.Errorf("the login with a form answers %d %s", answer.StatusCode, text)
	}
}

// Whatever a body is, the answer is one of the Client API's own: no failure of the
// server, and of an error its two members alone.
func FuzzClientBodies(f *testing.F) {
	paths := []string{"/login", "/register", "/forgot", "/change", "/verify", "/factors", "/challenges", "/oauth/token",
		"/oauth/revoke", "/logout"}
	for i, seed := range []string{
		signIn, `{"email":"a@b.test","password":"x","customData":{"a":1},"accountStore":{"href":"x"}}`, `{"login":"x","organizationNameKey":"a"}`,
		`{"sptoken":"x","password":"y"}`, `login=x&email=y`, `{"type":"sms","phone":{"number":"+1"},"state":"x"}`, `{"state":1,"code":[]}`,
		"grant_type=password&username=a&password=b", "token=%ZZ", "\xff{", "{\"login\":\"a\x00\"}",
		`{"providerData":{"providerId":"google"}}`, "[]", "null", `{"a":` + strings.Repeat("[", 100),
	} {
		f.Add(uint8(i), i%3 == 0, seed)
	}
	c, _ := newClientAPI(f)
	f.Fuzz(func(t *testing.T, path uint8, form bool, body string) {
		at := paths[int(path)%len(paths)]
		request := httptest.NewRequest("POST", "/client/calm-otter"+at, strings.NewReader(body))
		request.Header.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		if form {
			request.Header.Set(fiber.HeaderContentType, fiber.MIMEApplicationForm)
		}
		request.Header.Set(caller.Header, c.signer.Sign(caller.Caller{}))
		answer, err := c.app.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode >= 500 {
			t.Fatalf("%s of %q answers %d: %s", at, body, answer.StatusCode, text)
		}
		if answer.StatusCode < 400 {
			return
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil || len(members) != 2 || members["message"] == nil {
			t.Fatalf("%s of %q answers %d: %s", at, body, answer.StatusCode, text)
		}
		values, _ := url.ParseQuery(body)
		if password := values.Get("password"); len(password) > 8 && strings.Contains(string(text), password) {
			t.Fatalf("the answer has the password: %s", text)
		}
	})
}

// Whoever has only the password must not choose the secret of the second factor, and a secret that is not
// taken must not be answered with another one.
func TestASecretForANewFactorIsRefused(t *testing.T) {
	c, user := newClientAPI(t)
	answer, body := c.call(t, "POST", "/login", signIn)
	if answer.StatusCode != 200 {
		t.Fatalf("the login answers %d %s", answer.StatusCode, body)
	}
	header := []string{"Authorization", "Bearer " + answer.Cookies()[0].Value}
	enroll := func(kind, body string) (int, string) {
		t.Helper()
		answer, text := c.send(t, "POST", "/client/calm-otter/factors", kind, body, header...)
		return answer.StatusCode, text
	}
	const secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	form := url.Values{"type": {"google-authenticator"}, "secret": {secret}}.Encode()
	for kind, body := range map[string]string{
		fiber.MIMEApplicationJSON: `{"type":"google-authenticator","secret":"` + secret + `"}`, fiber.MIMEApplicationForm: form,
	} {
		if status, text := enroll(kind, body); status != 400 || !strings.Contains(text, "secret") || strings.Contains(text, secret) {
			t.Errorf("%s is answered %d %s", body, status, text)
		}
	}
	factors, err := c.peers.MFA.FactorsOf(t.Context(), id.Ref{Tenant: user.TenantID, ID: user.ID})
	if err != nil || len(factors.Items) > 0 {
		t.Errorf("the account has the factors %+v, %v", factors, err)
	}
	if status, text := enroll(fiber.MIMEApplicationJSON, `{"type":"google-authenticator","secret":null}`); status != 200 {
		t.Errorf("without a secret it is answered %d %s", status, text)
	}
}
