package rest_test

import (
	"cmp"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/doorward/doorward/pkg/openapi/openapitest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

// visit asks for a page as a browser does, without a tenant. A form makes it a
// POST.
func (c client) visit(t *testing.T, method, path string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	return c.send(t, method, path, fiber.MIMEApplicationForm, form.Encode(), header...)
}

// send asks without a tenant, as the gateway passes on what browsers send. A body
// has a type.
func (c client) send(t *testing.T, method, path, contentType, body string, header ...string) (*http.Response, string) {
	t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		request.Header.Set(fiber.HeaderContentType, contentType)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	request.Header.Set(caller.Header, c.signer.Sign(caller.Caller{}))
	answer, err := openapitest.Do(t, c.app, request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func link(path string, token secure.Secret) string {
	return path + "?sptoken=" + url.QueryEscape(token.Reveal())
}

// mail makes an account and the token of a mail whose link leads to path, asked for
// through an application of that name or, where it is empty, through none. spent
// reports whether the token was used.
func (c client) mail(t *testing.T, path, email, application string) (token secure.Secret, spent func() bool) {
	t.Helper()
	tenant := c.peers.Directories.NewTenant().Tenant.ID
	shop, user := c.peers.Shop(tenant, email)
	directories := c.peers.Directories
	named := idsitetest.Named(cmp.Or(application, "The only shop"), "https://shop.example.test/callback")
	c.peers.Applications.Change(id.Ref{Tenant: tenant, ID: shop}, named)
	directories.EnableVerification(t, id.Ref{Tenant: tenant, ID: user.DirectoryID})
	if path == "/emailVerificationTokens" {
		token = directories.VerificationToken(t, user)
		return token, func() bool {
			_, err := directories.Verification(t.Context(), directoryapi.VerifyEmail{Token: token})
			return err != nil
		}
	}
	directories.SetStrength(t, id.Ref{Tenant: tenant, ID: user.DirectoryID}, directory.StrengthChange{
		MinLength: field.Some(8), MaxLength: field.Some(100), MinLowerCase: field.Some(2), MinUpperCase: field.Some(0), MinNumeric: field.Some(1),
	})
	if application == "" {
		shop = id.ID{}
	}
	made, err := directories.RequestReset(t.Context(), directoryapi.RequestReset{
		Tenant: tenant, Application: shop, Login: email, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: user.DirectoryID}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Token, func() bool {
		_, err := directories.Reset(t.Context(), directoryapi.ResetToken{Token: made.Token})
		return err != nil
	}
}

// The administrators' own application and directory, which clients know as "Service"
// and "Service Administrators", go by the name of the product.
func TestThePagesOfAdministratorsNameTheProduct(t *testing.T) {
	c := newClient(t)
	tenant, now := id.New(time.Now()), time.Now()
	owner := directoryapi.SignUp{
		Tenant: tenant, Directory: id.New(now), Owner: id.New(now), Key: "blue-river", DirectoryName: "Service Administrators",
		Email: "owner@example.test",
	}
	if _, err := c.peers.Directories.SignUp(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	console := applicationapi.SignUp{
		Tenant: tenant, Console: id.New(now), ConsoleName: "Service", Administrators: owner.Directory, ConsoleMapping: id.New(now),
		Application: id.New(now), Directory: id.New(now), ApplicationMapping: id.New(now),
	}
	if _, err := c.peers.Applications.SignUp(t.Context(), console); err != nil {
		t.Fatal(err)
	}
	c.peers.Directories.EnableVerification(t, id.Ref{Tenant: tenant, ID: owner.Directory})
	verification := c.peers.Directories.VerificationToken(t, directoryapi.Account{
		TenantID: tenant, ID: owner.Owner, DirectoryID: owner.Directory, Email: owner.Email,
	})
	reset, err := c.peers.Directories.RequestReset(t.Context(), directoryapi.RequestReset{
		Tenant: tenant, Application: console.Console, Login: owner.Email,
		Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: owner.Directory}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link("/emailVerificationTokens", verification), link("/passwordReset", reset.Token)} {
		if answer, body := c.visit(t, "GET", path, nil); answer.StatusCode != 200 || !strings.Contains(body, ">Doorward</p>") ||
			strings.Contains(body, "Service") {
			t.Errorf("%s answers %d: %s", path, answer.StatusCode, body)
		}
	}
}

func TestAVerificationLinkIsConsumedByItsButtonAlone(t *testing.T) {
	c := newClient(t)
	token, spent := c.mail(t, "/emailVerificationTokens", `jo&b@example.test`, "")
	path := link("/emailVerificationTokens", token)
	for _, method := range []string{"GET", "HEAD", "GET"} {
		answer, body := c.visit(t, method, path, nil)
		if answer.StatusCode != 200 || spent() || (method == "GET" && !strings.Contains(body, `value="`+token.Reveal()+`"`)) ||
			(method == "GET" && !strings.Contains(body, ">The only shop</p>")) {
			t.Fatalf("%s answers %d, spent is %t: %s", method, answer.StatusCode, spent(), body)
		}
	}
	var good atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			answer, body := c.visit(t, "POST", path, url.Values{"sptoken": {token.Reveal()}})
			switch answer.StatusCode {
			case 200:
				good.Add(1)
				if !strings.Contains(body, "jo&amp;b@example.test") || !strings.Contains(body, `<a class="primary" href="https://shop.example.test/">Go to The only shop</a>`) {
					t.Errorf("the page says %s", body)
				}
			case 404:
			default:
				t.Errorf("the status is %d", answer.StatusCode)
			}
		})
	}
	group.Wait()
	if good.Load() != 1 {
		t.Errorf("%d of 50 tries succeeded", good.Load())
	}
	const invented = "Sign in with your password. If your address is not confirmed yet"
	for dead, want := range map[string]string{path: "It was used already: your address is confirmed.",
		"/emailVerificationTokens?sptoken=invented": invented, "/emailVerificationTokens": invented} {
		answer, body := c.visit(t, "GET", dead, nil)
		if answer.StatusCode != 404 || strings.Contains(body, "<form") || !strings.Contains(body, "<h1>This link no longer works</h1>") ||
			!strings.Contains(body, want) || strings.Contains(body, ">The only shop</p>") != (dead == path) {
			t.Errorf("%s answers %d: %s", dead, answer.StatusCode, body)
		}
	}
}

func TestAResetLinkSetsThePasswordOnce(t *testing.T) {
	c := newClient(t)
	token, spent := c.mail(t, "/passwordReset", "jo@example.test", "Shop & Co")
	path := link("/passwordReset", token)
	if answer, body := c.visit(t, "GET", path, nil); answer.StatusCode != 200 || !strings.Contains(body, "jo@example.test") ||
		!strings.Contains(body, ">Shop &amp; Co</p>") || strings.Contains(body, `role="alert"`) || !strings.Contains(body, `<ul class="rules" `+
		`id="password-rules"><li>At least 8 characters</li><li>2 lower-case letters</li><li>A digit</li></ul>`) {
		t.Fatalf("%d: %s", answer.StatusCode, body)
	}
	form := func(password, again string) url.Values {
		return url.Values{"sptoken": {token.Reveal()}, "password": {password}, "again": {again}}
	}
	const line = "<br>– "
	var refusal error
	c.peers.Directories.Break("ResetPassword", fault.Before, func() error { return refusal })
	for _, c2 := range []struct {
		password, again, problem string
		refusal                  error
	}{
		{"Different1!", "Different2!", "The two passwords differ.</p>", nil},
		{"NO!xx", "yes", "The two passwords differ." + line + "At least 8 characters" + line + "A digit</p>", nil},
		{"", "", "Please enter a new password. It needs:" + line + "At least 8 characters" + line + "2 lower-case letters" + line + "A digit</p>", nil},
		{"Ab!", "Ab!", "It still needs:" + line + "At least 8 characters" + line + "2 lower-case letters" + line + "A digit</p>", nil},
		{"changeme", "changeme", "It still needs:" + line + "A digit</p>", apierr.BadRequest},
		{"Used-before1", "Used-before1", "That password was used before. Please choose another one.</p>", apierr.PasswordReused},
	} {
		refusal = c2.refusal
		answer, body := c.visit(t, "POST", path, form(c2.password, c2.again))
		if answer.StatusCode != 400 || !strings.Contains(body, c2.problem) || !strings.Contains(body, ">Shop &amp; Co</p>") ||
			!strings.Contains(body, `name="password"`) || spent() {
			t.Errorf("%q: %d, %s", c2.password, answer.StatusCode, body)
		}
		if c2.password != "" && strings.Contains(body, c2.password) {
			t.Errorf("the page repeats the password: %s", body)
		}
	}
	refusal = nil
	if answer, body := c.visit(t, "POST", path, form("Different1!", "Different1!")); answer.StatusCode != 200 || !spent() ||
		!strings.Contains(body, "<h1>Your password is changed</h1>") || !strings.Contains(body, ">Shop &amp; Co</p>") {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
	for _, method := range []string{"GET", "POST"} {
		if answer, body := c.visit(t, method, path, form("Different3!", "Different3!")); answer.StatusCode != 404 ||
			!strings.Contains(body, "no longer works") || !strings.Contains(body, "We can send another mail to your address.") ||
			!strings.Contains(body, ">Shop &amp; Co</p>") || strings.Contains(body, "jo@example.test") {
			t.Errorf("%s again: %d, %s", method, answer.StatusCode, body)
		}
	}
}

// The button on the page of an old link sends another mail, as often as anybody may ask for one, and says what is so.
func TestThePageOfAnOldLinkSendsAnotherMail(t *testing.T) {
	c := newClient(t)
	token, _ := c.mail(t, "/passwordReset", "jo@example.test", "Shop")
	form := url.Values{"sptoken": {token.Reveal()}, "password": {"Different1!"}, "again": {"Different1!"}}
	if answer, body := c.visit(t, "POST", "/passwordReset", form); answer.StatusCode != 200 || !strings.Contains(body, "You can sign in with the new one now.") ||
		!strings.Contains(body, `href="https://shop.example.test/">Go to Shop</a>`) {
		t.Fatalf("the new password is answered %d: %s", answer.StatusCode, body)
	}
	again := url.Values{"sptoken": {token.Reveal()}, "send": {"again"}}
	for i := range directoryapi.MaxAnonymousMails + 1 {
		status, want := http.StatusAccepted, "Another mail is on its way."
		if i == directoryapi.MaxAnonymousMails {
			status, want = http.StatusOK, "Several mails were sent within the last hour."
		}
		if answer, body := c.visit(t, "POST", "/passwordReset", again); answer.StatusCode != status || !strings.Contains(body, want) {
			t.Errorf("mail %d is answered %d: %s", i+1, answer.StatusCode, body)
		}
	}
	again.Set("sptoken", "invented")
	for _, path := range []string{"/passwordReset", "/emailVerificationTokens"} {
		if answer, body := c.visit(t, "POST", path, again); answer.StatusCode != 404 || !strings.Contains(body, "no longer works") {
			t.Errorf("%s with an invented token is answered %d: %s", path, answer.StatusCode, body)
		}
	}
}

// Where an application says where its users find it, the pages of mails lead there, and not to the origin of
// a callback.
func TestThePagesOfMailsLeadToTheHomeOfTheApplication(t *testing.T) {
	c := newClient(t)
	token, _ := c.mail(t, "/passwordReset", "jo@example.test", "Shop")
	reset, err := c.peers.Directories.Reset(t.Context(), directoryapi.ResetToken{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	home := "https://home.example.test/start?a=1"
	shop := id.Ref{Tenant: reset.Account.TenantID, ID: reset.Application}
	c.peers.Applications.Change(shop, application.NewApplication{HomeURL: field.Some(home)})
	const button = `href="https://home.example.test/start?a=1">Go to Shop</a>`
	form := url.Values{"sptoken": {token.Reveal()}, "password": {"Different1!"}, "again": {"Different1!"}}
	answer, body := c.visit(t, "POST", "/passwordReset", form)
	if answer.StatusCode != 200 || !strings.Contains(body, button) {
		t.Errorf("the new password is answered %d: %s", answer.StatusCode, body)
	}
	answer, body = c.visit(t, "GET", link("/passwordReset", token), nil)
	if answer.StatusCode != 404 || !strings.Contains(body, button) {
		t.Errorf("a link that was used is answered %d: %s", answer.StatusCode, body)
	}
}

// After a reset no page says that a user can sign in who cannot.
func TestAResetDoesNotPromiseASignIn(t *testing.T) {
	for status, want := range map[string]string{
		directoryapi.Unverified: "your email address is not confirmed yet", directoryapi.Disabled: "Your account is disabled, so you cannot sign in.",
	} {
		c := newClient(t)
		token, _ := c.mail(t, "/passwordReset", "jo@example.test", "Shop")
		reset, err := c.peers.Directories.Reset(t.Context(), directoryapi.ResetToken{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		at := id.Ref{Tenant: reset.Account.TenantID, ID: reset.Account.ID}
		c.peers.Directories.Change(t, at, directoryapi.NewAccount{Status: field.Some(status)})
		form := url.Values{"sptoken": {token.Reveal()}, "password": {"Different1!"}, "again": {"Different1!"}}
		if answer, body := c.visit(t, "POST", "/passwordReset", form); answer.StatusCode != 200 || !strings.Contains(body, want) ||
			strings.Contains(body, "You can sign in") {
			t.Errorf("the reset of an account that is %s is answered %d: %s", status, answer.StatusCode, body)
		}
	}
}

func TestCustomPagesAreIsolatedByTenant(t *testing.T) {
	c := newClient(t)
	for _, path := range []string{"/emailVerificationTokens", "/passwordReset"} {
		token, spent := c.mail(t, path, "jo@example.test", "")
		form := url.Values{"sptoken": {token.Reveal()}}
		if path == "/passwordReset" {
			form["password"], form["again"] = []string{"Different1!"}, []string{"Different1!"}
		}
		for _, origin := range []string{"https://evil.example", "null", "https://localhost:8443.evil.example", "http://localhost:8443"} {
			if answer, body := c.visit(t, "POST", path, form, "Origin", origin); answer.StatusCode != 403 || spent() {
				t.Errorf("%s from %s answers %d: %s", path, origin, answer.StatusCode, body)
			}
		}
		for name, form := range map[string]url.Values{"nothing": {}, "no token": {"password": {"Different1!"}, "again": {"Different1!"}},
			"another": {"sptoken": {"x"}}} {
			if answer, _ := c.visit(t, "POST", path, form); answer.StatusCode != 404 {
				t.Errorf("%s with %s answers %d", path, name, answer.StatusCode)
			}
		}
		if answer, _ := c.visit(t, "GET", path, nil); answer.StatusCode != 404 {
			t.Errorf("%s without a token answers %d", path, answer.StatusCode)
		}
		answer, _ := c.visit(t, "GET", link(path, token), nil)
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
			"Content-Type": "text/html; charset=utf-8",
		} {
			if got := answer.Header.Get(name); !strings.Contains(got, want) {
				t.Errorf("%s has %s %q", path, name, got)
			}
		}
		if answer, body := c.visit(t, "POST", path, form, "Origin", "https://localhost:8443"); answer.StatusCode != 200 {
			t.Errorf("%s from its own page answers %d: %s", path, answer.StatusCode, body)
		}
	}
}

// What refuses a request names the application on its page, once it is known.
func TestARefusedRequestNamesItsApplication(t *testing.T) {
	p := newPage(t)
	request := func(claims secure.Claims) string {
		signed, err := secure.SignJWT(map[string]any{"typ": "JWT"}, claims, "secret")
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	known := secure.Claims{"iss": "K1", "sub": base.To("applications", p.application), "cb_uri": "https://elsewhere.test/"}
	for brand, jwt := range map[string]string{"Shop": request(known), "Doorward": "x"} {
		for _, path := range []string{"/sso", "/sso/logout"} {
			answer, body := p.visit(t, "GET", path+"?jwtRequest="+jwt, nil, "Accept", "text/html")
			if answer.StatusCode != 400 || !strings.Contains(body, "· "+brand+"</title>") || !strings.Contains(body, ">"+brand+"</p>") {
				t.Errorf("%s answers %d: %s", path, answer.StatusCode, body)
			}
		}
	}
	if _, body := p.visit(t, "GET", "/register", nil); !strings.Contains(body, ">Doorward</p>") {
		t.Errorf("the sign-up says %s", body)
	}
}

// A scanner or a preview that looks at the address of a redirect leaves its token to the
// browser that comes after it.
func TestHeadOfARedirectConsumesNoToken(t *testing.T) {
	p := newPage(t)
	request := func(jti string) string {
		signed, err := secure.SignJWT(map[string]any{"typ": "JWT"}, secure.Claims{
			"iss": "K1", "sub": base.To("applications", p.application), "cb_uri": returnTo, "iat": 1795242600, "jti": jti,
		}, "secret")
		if err != nil {
			t.Fatal(err)
		}
		return "?jwtRequest=" + signed
	}
	for path, succeeds := range map[string]func(location string) bool{
		"/sso" + request("login"): func(location string) bool { return strings.Contains(location, "/#/?jwt=") },
		"/sso/logout" + request("logout"): func(location string) bool {
			_, token, _ := strings.Cut(location, "?jwtResponse=")
			parts := strings.Split(token, ".")
			claims, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
			return err == nil && strings.Contains(string(claims), `"status":"LOGOUT"`)
		},
		"/sso/provider?state=x&code=x": nil,
		"/v1/applications/" + p.application.String() + "/saml/sso/idpRedirect?accessToken=x": nil,
	} {
		answer, body := p.visit(t, http.MethodHead, path, nil)
		if answer.StatusCode != http.StatusOK || body != "" || answer.Header.Get("Location") != "" || answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("HEAD %s answers %d %q, %v", path, answer.StatusCode, body, answer.Header)
		}
		if succeeds == nil {
			continue
		}
		answer, body = p.visit(t, http.MethodGet, path, nil)
		if location := answer.Header.Get("Location"); answer.StatusCode != http.StatusFound || !succeeds(location) {
			t.Errorf("GET %s answers %d to %q: %s", path, answer.StatusCode, location, body)
		}
	}
}
