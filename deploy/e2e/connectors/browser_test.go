package connectors_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
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

// until waits until an expression is true, on this page or the one after it.
func (b *browser) until(expression string) {
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
	b.until("document.querySelector(\"input[name='" + name + "']\") !== null")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name='"+name+"']"), text))
}

// callbackPage serves the page of an application to which browsers come back.
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

// back waits until the browser is at the application's page and returns its query.
func (b *browser) back() url.Values {
	b.Helper()
	b.until("document.querySelector('h1')?.textContent === 'Welcome back'")
	address, err := url.Parse(b.text("location.href"))
	if err != nil {
		b.Fatal(err)
	}
	return address.Query()
}

func TestABrowserSignsInToKeycloakOnTheHostedPages(t *testing.T) {
	k, callback, site := keycloak(t), callbackPage(t), client.NewSite(t)
	account := client.Register(t, site.Directory.Link(t, "accounts"))
	b := openBrowser(t)
	b.do(chromedp.Navigate(brokered(t, k, site.Application, callback)))
	b.fill("username", account.Text("email"))
	b.fill("password", e2e.Password)
	b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
	if query := b.back(); query.Get("code") == "" {
		t.Errorf("the browser brings %v", query)
	}
	users, _ := k.Admin(t, http.MethodGet, "/users?exact=true&email="+url.QueryEscape(account.Text("email")), nil).([]any)
	if len(users) != 1 {
		t.Errorf("Keycloak has the users %v", users)
	}
}
