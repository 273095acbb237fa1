package e2e_test

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/certificate/certtest"
)

// An organization has a subdomain of the tenant's own domain, and the user may name
// it on the page.
func TestABrowserChoosesAnOrganization(t *testing.T) {
	shop, settings := newShop(t), idSite(t)
	nameKey, domain := strings.ToLower(e2e.Unique("acme")), strings.ToLower(e2e.Unique("login"))+".localhost"
	organization := client.Create(t, "/organizations?createDirectory=true", e2e.Object{"name": nameKey, "nameKey": nameKey})
	client.DeleteAtEnd(t, organization.Href())
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": shop.Application.Href()}, "accountStore": e2e.Object{"href": organization.Href()},
	})
	member := client.Register(t, organization.Link(t, "accounts"))
	outsider := client.Register(t, shop.Application.Link(t, "accounts"))
	certificate := certtest.Now(domain, "*."+domain)
	changed := client.Update(t, settings.Href(), e2e.Object{
		"domainName": domain, "tlsPublicCert": certificate.Chain(), "tlsPrivateKey": certificate.PrivateKey(),
	})
	if changed.Text("tlsStatus") != "VALID" {
		t.Errorf("the certificate is %s", changed.Text("tlsStatus"))
	}
	defer client.Update(t, settings.Href(), e2e.Object{"domainName": nil, "tlsPublicCert": nil, "tlsPrivateKey": nil})
	host := func(b *browser) string {
		b.Helper()
		host, err := evaluate[string](b, "location.hostname")
		if err != nil {
			b.Fatal(err)
		}
		return host
	}

	b := openBrowser(t)
	shop.openLogin(b, e2e.Object{"onk": nameKey, "usd": true})
	b.awaitHeading("Sign in")
	if at := host(b); at != nameKey+"."+domain {
		t.Errorf("the pages of the organization are at %s", at)
	}
	b.signIn(outsider.Text("email"), e2e.Password)
	b.awaitTrue("document.querySelector('.alert').textContent !== ''")
	b.signIn(member.Text("email"), e2e.Password)
	shop.awaitCallback(b, "AUTHENTICATED", member.Href())
	address, err := evaluate[string](b, "location.href")
	if err != nil {
		t.Fatal(err)
	}
	if claims := e2e.Claims(t, strings.TrimPrefix(address, shop.callback+"?jwtResponse=")); claims.Text("org") != organization.Href() ||
		claims.Text("iss") != "https://"+domain {
		t.Errorf("the assertion says %v", claims)
	}

	other := openBrowser(t)
	shop.openLogin(other, e2e.Object{"sof": true})
	other.awaitHeading("Sign in")
	if at := host(other); at != domain {
		t.Errorf("the pages are at %s", at)
	}
	other.fill("organization", "nobody-"+nameKey)
	other.signIn(member.Text("email"), e2e.Password)
	other.awaitTrue("document.querySelector('.alert').textContent !== ''")
	other.fill("organization", strings.ToUpper(nameKey))
	other.signIn(member.Text("email"), e2e.Password)
	shop.awaitCallback(other, "AUTHENTICATED", member.Href())

	filled := openBrowser(t)
	shop.openLogin(filled, e2e.Object{"sof": true, "onk": nameKey})
	filled.awaitHeading("Sign in")
	filled.awaitTrue("document.querySelector(\"input[name=organization]\").value === '" + nameKey + "'")
	filled.signIn(member.Text("email"), e2e.Password)
	shop.awaitCallback(filled, "AUTHENTICATED", member.Href())
}

// customPage is a page of a customer's own: the smallest that signs in.
const customPage = `<!doctype html><html lang="en"><title>Ours</title><link rel="icon" href="data:,"><h1>Ours</h1>
<form><input name="username"><input name="password" type="password"><button type="submit">In</button></form><p id="said"></p><script src="own.js"></script>`

const customScript = `
const token = /jwt=([^&]+)/.exec(location.href)[1];
const application = JSON.parse(atob(token.split('.')[1])).app_href;
document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const answer = await fetch(application + '/loginAttempts', {method: 'POST', headers: {Authorization: 'Bearer ' + token, 'Content-Type': 'application/json'},
    body: JSON.stringify({type: 'basic', value: btoa(form.get('username') + ':' + form.get('password'))})});
  const to = [...answer.headers].find(([name]) => name.endsWith('sso-redirect-location'));
  if (to) location.href = to[1];
  document.getElementById('said').textContent = answer.status;
});`

// repository serves a git repository with files over HTTP, on this machine.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	home := t.TempDir()
	work := filepath.Join(home, "pages.git")
	git := func(arguments ...string) string {
		arguments = append([]string{"-C", work, "-c", "user.name=Jo", "-c", "user.email=jo@example.test"}, arguments...)
		out, err := exec.CommandContext(t.Context(), "git", arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for name, content := range files {
		file := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "master")
	git("add", "-A")
	git("commit", "-q", "-m", "pages")
	server := httptest.NewServer(&cgi.Handler{Path: filepath.Join(git("--exec-path"), "git-http-backend"), Env: []string{
		"GIT_PROJECT_ROOT=" + home, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}})
	t.Cleanup(server.Close)
	return server.URL + "/pages.git"
}

func TestABrowserSignsInOnPagesOfACustomersOwn(t *testing.T) {
	shop, settings := newShop(t), idSite(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	client.Update(t, settings.Href(), e2e.Object{"gitRepoUrl": repository(t, map[string]string{
		"index.html": customPage, "own.js": customScript, "help/index.html": "<h1>Help</h1>", "help/über uns.html": "<h1>Über uns</h1>",
	})})
	defer client.Update(t, settings.Href(), e2e.Object{"gitRepoUrl": nil, "gitBranch": nil})
	awaitTrue(t, "the pages to be fetched", func() bool { return client.Get(t, settings.Href()).Text("gitStatus") == "OK" })
	for path, want := range map[string]string{
		"/help": "Help", "/help/": "Help", "/help/%C3%BCber%20uns.html": "Über uns", "/help/%FF": "", "/help/none.html": "",
	} {
		answer := client.Call(t, e2e.Request{Method: http.MethodGet, URL: pageOrigin(t) + path, Anonymous: true})
		custom := string(answer.Body) == "<h1>"+want+"</h1>"
		if (answer.Status == http.StatusOK) != (want != "") || custom != (want != "") {
			t.Errorf("%s answers %s", path, answer)
		}
		if popups := answer.Header.Get("Cross-Origin-Opener-Policy") == "same-origin-allow-popups"; popups != custom {
			t.Errorf("%s has the headers %v", path, answer.Header)
		}
	}
	b := openBrowser(t)
	shop.openLogin(b, nil)
	b.awaitHeading("Ours")
	b.fill("username", account.Text("email"))
	b.fill("password", e2e.Password)
	b.submit()
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())

	client.Update(t, settings.Href(), e2e.Object{"gitRepoUrl": nil})
	awaitTrue(t, "the built-in pages to be back", func() bool {
		answer := client.Call(t, e2e.Request{Method: http.MethodGet, URL: pageOrigin(t) + "/", Anonymous: true})
		return answer.Status == http.StatusOK && !strings.Contains(string(answer.Body), "Ours")
	})
}
