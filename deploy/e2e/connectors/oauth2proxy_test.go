package connectors_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

// oauth2-proxy shows a page to the members of one group alone.
func TestOAuth2ProxyProtectsAPage(t *testing.T) {
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<p>The wiki of %s</p>", r.Header.Get("X-Forwarded-Email"))
	}))
	t.Cleanup(program.Close)
	fixture := client.NewFixture(t)
	staff := client.Create(t, fixture.Directory.Link(t, "groups"), e2e.Object{"name": "staff"})
	p := newRelyingParty(t, fixture.Application)
	outside := overTLS(t, "http://127.0.0.1:"+strconv.Itoa(p.Port))
	p.ClientID, p.Secret = newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "wiki", "redirectUris": []string{outside + "/oauth2/callback"},
		"postLogoutRedirectUris": []string{outside + "/"},
	})
	p.StartProxy(t, outside, program.URL+"/")
	newAccount := func(t *testing.T, status string) e2e.Object {
		account := client.Register(t, fixture.Directory.Link(t, "accounts"))
		return client.Update(t, account.Href(), e2e.Object{"emailVerificationStatus": status})
	}

	t.Run("a member sees the page until the logout", func(t *testing.T) {
		member := newAccount(t, "VERIFIED")
		join(t, member, staff)
		b := openBrowser(t)
		b.do(chromedp.Navigate(outside + "/page"))
		b.logIn(member)
		b.awaitText("The wiki of " + member.Text("email"))
		end := url.Values{"client_id": {p.ClientID}, "post_logout_redirect_uri": {outside + "/"}}.Encode()
		b.do(chromedp.Navigate(outside + "/oauth2/sign_out?" + url.Values{"rd": {p.Issuer + "/logout?" + end}}.Encode()))
		b.do(chromedp.Click(chromedp.CSS("button[name=logout]")))
		b.logIn(member) // the page at which the logout ends is protected too
		b.awaitText("The wiki of " + member.Text("email"))
	})
	for name, status := range map[string]string{"no member": "VERIFIED", "an address that is not verified": "UNVERIFIED"} {
		t.Run(name+" is refused", func(t *testing.T) {
			b := openBrowser(t)
			b.do(chromedp.Navigate(outside + "/page"))
			b.logIn(newAccount(t, status))
			b.awaitText("403")
		})
	}
}
