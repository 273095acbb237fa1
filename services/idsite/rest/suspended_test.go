package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// A browser of a suspended tenant is shown a page, and is sent nowhere; a program gets the error in the form of its
// door. All comes back when the tenant is resumed.
func TestTheDoorsOfASuspendedTenant(t *testing.T) {
	p := newPage(t)
	tenant := p.tenant
	google := p.mapGoogle(t)
	at := id.Ref{Tenant: tenant, ID: p.application}
	party, err := p.peers.OAuth.Rules.OpenID.CreateClient(t.Context(), at, relyingparty.Change{
		Name: field.Some("Party"), RedirectURIs: field.Some([]string{returnTo}), ApplicationType: field.Some("native"),
	})
	if err != nil {
		t.Fatal(err)
	}
	sign := func(jti string) string {
		signed, err := secure.SignJWT(map[string]any{"typ": "JWT"}, secure.Claims{
			"iss": "K1", "sub": base.To("applications", p.application), "cb_uri": returnTo, "iat": 1795242600, "jti": jti,
		}, "secret")
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	_, settings := p.update(t, tenant, p.site(t), `{}`)
	began := p.visitSSO(t, "another").Cookies()
	answer, _ := p.logIn(t, "jo@example.test", idsitetest.Password.Reveal())
	_, assertion, _ := strings.Cut(answer.Header.Get("Service-SSO-Redirect-Location"), "jwtResponse=")
	p.begin(t, secure.Claims{"jti": "the page"})
	toGoogle, _ := p.send(t, http.MethodGet, "/client/calm-otter/authorize?response_type=service_token&account_store_href="+
		url.QueryEscape(base.To("directories", google))+"&redirect_uri="+url.QueryEscape(returnTo), "", "")
	toProvider, err := url.Parse(toGoogle.Header.Get("Location"))
	if err != nil || toProvider.Query().Get("state") == "" {
		t.Fatalf("the login at the provider begins with %q", toGoogle.Header.Get("Location"))
	}
	reset := p.resetToken(t, tenant)
	invitation := p.peers.Directories.Invite(t, tenant, "new@example.test")
	authorize := "/oidc/" + p.application.String() + "/authorize?" + url.Values{
		"client_id": {party.ClientID}, "redirect_uri": {returnTo}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"},
		"code_challenge": {strings.Repeat("a", 43)}, "code_challenge_method": {"S256"},
	}.Encode()

	pages := map[string]string{
		"a request for a login":    "/sso?jwtRequest=" + sign("third"),
		"a request for a logout":   "/sso/logout?jwtRequest=" + sign("fourth"),
		"an assertion":             "/sso?jwtResponse=" + assertion,
		"a login by a SAML token":  "/v1/applications/" + p.application.String() + "/saml/sso/idpRedirect?accessToken=" + sign("fifth"),
		"a callback of a provider": "/sso/provider?code=c&state=" + url.QueryEscape(toProvider.Query().Get("state")),
		"a hosted page":            "/site/",
		"a file of hosted pages":   "/site/static/x/app.js",
		"an authorization request": authorize,
		"the page of devices":      strings.Replace(authorize[:strings.Index(authorize+"?", "?")], "/authorize", "/device", 1),
		"a mailed link":            link("/passwordReset", reset),
		"an invitation":            link("/register", invitation),
		"the Client API":           "/client/calm-otter/authorize",
		"a SAML service provider":  "/client/calm-otter/saml/sso",
	}
	visit := func(path string) (*http.Response, string) {
		return p.send(t, http.MethodGet, path, "", "", "Accept", "text/html", "Cookie", pair(began[0]),
			idsiterest.HostHeader, settings["domainName"].(string))
	}
	p.peers.Directories.SetTenantStatus(t, tenant, directoryapi.Suspended)
	for name, path := range pages {
		answer, body := visit(path)
		isPage := strings.HasPrefix(answer.Header.Get(fiber.HeaderContentType), fiber.MIMETextHTML)
		if answer.StatusCode != http.StatusForbidden || !isPage || answer.Header.Get("Location") != "" {
			t.Errorf("%s of a suspended tenant is answered %d %q %s, want a page with 403", name, answer.StatusCode,
				answer.Header.Get("Location"), body)
		}
	}
	answer, body := p.logIn(t, "jo@example.test", idsitetest.Password.Reveal())
	if answer.StatusCode != http.StatusForbidden || !strings.Contains(body, `"code":1930`) ||
		answer.Header.Get("Access-Control-Allow-Origin") != pageOrigin {
		t.Errorf("a page of a suspended tenant gets %d %s, want 403 with code 1930", answer.StatusCode, body)
	}
	program := func(method, path string) map[string]any {
		answer, body := p.send(t, method, path, fiber.MIMEApplicationForm, "grant_type=password", "Accept", "application/json")
		var members map[string]any
		if err := json.Unmarshal([]byte(body), &members); err != nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s is answered %d %s, want 403", path, answer.StatusCode, body)
		}
		return members
	}
	if got := program(http.MethodGet, "/client/calm-otter/login"); len(got) != 2 || got["status"] != 403.0 || got["message"] == "" {
		t.Errorf("the Client API answers %v", got)
	}
	if got := program(http.MethodPost, "/client/calm-otter/oauth/token"); len(got) != 2 || got["error"] != "access_denied" {
		t.Errorf("the token endpoint of the Client API answers %v", got)
	}

	p.peers.Directories.SetTenantStatus(t, tenant, directoryapi.Enabled)
	for name, path := range pages {
		if answer, body := visit(path); answer.StatusCode == http.StatusForbidden {
			t.Errorf("%s of a tenant that was resumed is answered 403 %s", name, body)
		}
	}
	if answer, body := p.logIn(t, "jo@example.test", idsitetest.Password.Reveal()); answer.StatusCode != http.StatusOK &&
		answer.StatusCode != http.StatusNoContent {
		t.Errorf("a login of a tenant that was resumed is answered %d %s", answer.StatusCode, body)
	}
}

// site is the ID site of the tenant.
func (p *pageAPI) site(t *testing.T) id.ID {
	t.Helper()
	page, err := p.svc.ListSites(t.Context(), id.Ref{Tenant: p.tenant, ID: p.tenant}, list.First())
	if err != nil {
		t.Fatal(err)
	}
	return page.Items[0].ID
}

// resetToken is the token of a password reset mail to a new account of a tenant.
func (p *pageAPI) resetToken(t *testing.T, tenant id.ID) secure.Secret {
	t.Helper()
	directory := p.peers.Directories.NewDirectory(tenant, "Staff")
	p.peers.Directories.NewAccount(tenant, directory, directoryapi.NewAccount{
		Username: field.Some("kay@example.test"), Email: field.Some("kay@example.test")})
	reset, err := p.peers.Directories.RequestReset(t.Context(), directoryapi.RequestReset{
		Tenant: tenant, Login: "kay@example.test", Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: directory}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reset.Token
}
