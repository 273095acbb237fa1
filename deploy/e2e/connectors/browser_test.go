package connectors_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// browserLimit bounds what a test does in one browser.
const browserLimit = 2 * time.Minute

// browser is one tab of Chromium with cookies of its own.
type browser struct {
	*testing.T
	ctx context.Context
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; run deploy/setup/setup.sh chromium", err)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.IgnoreCertErrors}
	for _, flag := range []string{"disable-gpu", "disable-quic", "disable-component-update"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), browserLimit)
	ctx, closeBrowser := chromedp.NewContext(limited, chromedp.WithAllocatorOptions(options...))
	t.Cleanup(func() { closeBrowser(); cancel() })
	b := &browser{T: t, ctx: ctx}
	b.do()
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatalf("%v; the page is %s", err, b.text("location.href.slice(0, 200) + '\\n' + document.body?.innerText"))
	}
}

// text evaluates an expression to text; an error is text too.
func (b *browser) text(expression string) string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		return err.Error()
	}
	return text
}

// awaitTrue waits until an expression is true, on this page or the one after it.
func (b *browser) awaitTrue(expression string) {
	b.Helper()
	err := e2e.AwaitFor(b.ctx, 45*time.Second, expression, func(context.Context) error {
		so, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && !so {
			err = fmt.Errorf("it is not so")
		}
		return err
	})
	if err != nil {
		b.Fatalf("%v; the page is %s", err, b.text("location.href.slice(0, 200) + '\\n' + document.body?.innerText"))
	}
}

// fill types into the field of a form with this name.
func (b *browser) fill(name, text string) {
	b.Helper()
	b.awaitTrue("document.querySelector(\"input[name='" + name + "']\") !== null")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name='"+name+"']"), text))
}

// follow clicks a link or a button by its text.
func (b *browser) follow(text string) {
	b.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('a, button')].find((each) => each.textContent.trim() === %q)", text)
	b.awaitTrue(find + " !== undefined")
	b.do(chromedp.Evaluate[chromedp.Void](find + ".click()"))
}

// callbackPage serves the callback page of an application.
func callbackPage(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>callback</title><h1>Welcome back</h1>")
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "https://shop.localhost:" + port + "/callback"
}

// awaitCallback waits until the browser is at the application's callback page and returns its query.
func (b *browser) awaitCallback() url.Values {
	b.Helper()
	b.awaitTrue("document.querySelector('h1')?.textContent === 'Welcome back'")
	address, err := url.Parse(b.text("location.href"))
	if err != nil {
		b.Fatal(err)
	}
	return address.Query()
}

func TestABrowserSignsInToKeycloakOnTheHostedPages(t *testing.T) {
	k, callback, fixture := keycloak(t), callbackPage(t), client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	b := openBrowser(t)
	b.do(chromedp.Navigate(brokered(t, k, fixture.Application, callback)))
	b.fill("login", account.Text("email"))
	b.fill("password", e2e.Password)
	b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
	if query := b.awaitCallback(); query.Get("code") == "" {
		t.Errorf("the browser brings %v", query)
	}
	users, _ := k.Admin(t, http.MethodGet, "/users?exact=true&email="+url.QueryEscape(account.Text("email")), nil).([]any)
	if len(users) != 1 {
		t.Errorf("Keycloak has the users %v", users)
	}
}

// The demo application sends the browser to the hosted pages, these to Keycloak's own
// login page, and Keycloak back to the application, which shows the account.
func TestABrowserSignsInToTheDemoApplicationAtKeycloak(t *testing.T) {
	k := keycloak(t)
	shop := startDemo(t)
	p := keycloakProvider(t)
	metadataOf := func(directory e2e.Object) []byte { metadata, _ := serviceProvider(t, directory); return metadata }
	overSAML := samlDirectory(t, shop, k.SAML(), k.Issuer(), k.Certificate(t))
	k.NewServiceProvider(t, metadataOf(overSAML), e2e.Object{})
	for name, directory := range map[string]e2e.Object{"OpenID Connect": openIDDirectory(t, shop, p), "SAML": overSAML} {
		t.Run(name, func(t *testing.T) {
			email := k.NewUser(t, nil)
			b := openBrowser(t)
			b.do(chromedp.Navigate(demoShop))
			b.follow("Sign in")
			b.follow("Continue with " + directory.Text("name"))
			b.awaitTrue("location.href.startsWith('" + k.URL + "')")
			b.fill("username", email)
			b.fill("password", e2e.Password)
			b.do(chromedp.Click(chromedp.CSS("#kc-login")))
			b.awaitTrue("document.querySelector('strong')?.textContent === 'Kim Ruiz'")
			accounts := client.All(t, directory.Link(t, "accounts"))
			if len(accounts) != 1 || accounts[0].Text("email") != email || !strings.Contains(b.text("document.body.innerText"), email) {
				t.Errorf("the directory has the accounts %v", accounts)
			}
		})
	}
}

const demoShop = "http://localhost:8081"

// startDemo runs the demo applications and returns the shop.
func startDemo(t *testing.T) e2e.Object {
	t.Helper()
	bin, err := harness.Build(t.Context(), shared.dir, "./deploy/demo")
	if err != nil {
		t.Fatal(err)
	}
	ready := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, demoShop, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	demo := harness.NewDaemon("demo", filepath.Join(t.TempDir(), "demo.log"), ready, filepath.Join(bin, "demo"))
	demo.Setenv("DOORWARD_DATA_DIR=" + filepath.Dir(keyFile))
	if err := demo.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = demo.Stop(context.WithoutCancel(t.Context())) })
	return client.All(t, client.Tenant(t).Link(t, "applications")+"?name=Demo+shop")[0]
}
