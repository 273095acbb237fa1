package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/locale"
)

// screenshotsEnv names the folder that screenshots go to; none are taken without.
const screenshotsEnv = "DOORWARD_SCREENSHOTS"

// axe is the source of axe-core, which setup.sh fetches.
var axe = sync.OnceValues(func() (string, error) {
	folder, err := exec.Command("../setup/setup.sh", "where", "axe-core").Output()
	if err != nil {
		return "", fmt.Errorf("the browser tests need axe-core; get it with deploy/setup/setup.sh axe-core: %w", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "node_modules/axe-core/axe.min.js"))
	return string(source), err
})

// setTheme shows pages in light or dark.
func (b *browser) setTheme(name string) {
	b.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

// setLanguage lets the browser ask for pages in a language.
func (b *browser) setLanguage(tag string) {
	b.Helper()
	agent, err := evaluate[string](b, "navigator.userAgent")
	if err != nil {
		b.Fatal(err)
	}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: tag})
		return err
	}))
}

// checkScreen checks the screen that is shown: axe-core finds nothing in both themes,
// and on a telephone nothing is cut off. It takes the screenshots.
func (b *browser) checkScreen(name string) {
	b.Helper()
	for _, theme := range []string{"light", "dark"} {
		b.do(chromedp.EmulateViewport(1024, 900))
		b.setTheme(theme)
		b.takeScreenshot(name + "-" + theme)
		b.checkAccessibility(name + " in " + theme)
	}
	b.setTheme("light")
	if printed, err := evaluate[bool](b, `/\b(null|undefined)\b/.test(document.body.innerText)`); err != nil || printed {
		b.Errorf("%s shows null or undefined: %s", name, b.description())
	}
	b.do(chromedp.EmulateViewport(320, 700))
	b.checkNoOverflow(name)
	b.takeScreenshot(name + "-telephone")
	b.rightToLeft(func() {
		b.checkNoOverflow(name + " from right to left")
		b.takeScreenshot(name + "-rtl")
	})
	b.do(chromedp.EmulateViewport(1024, 900))
}

// rightToLeft calls look while the page has the direction of a right-to-left language, whatever its own is.
func (b *browser) rightToLeft(look func()) {
	b.Helper()
	const turn = `((dir) => { const was = document.documentElement.dir; document.documentElement.dir = dir; return was; })(%q)`
	before, err := evaluate[string](b, fmt.Sprintf(turn, "rtl"))
	if err != nil {
		b.Fatal(err)
	}
	look()
	if _, err := evaluate[string](b, fmt.Sprintf(turn, before)); err != nil {
		b.Fatal(err)
	}
}

func (b *browser) takeScreenshot(name string) {
	b.Helper()
	folder := os.Getenv(screenshotsEnv)
	if folder == "" {
		return
	}
	content, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), content, 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// checkAccessibility checks the page with axe-core, whose rules are those of WCAG 2.2 AA and
// its own best practices.
func (b *browser) checkAccessibility(what string) {
	b.Helper()
	source, err := axe()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := evaluate[bool](b, source+"; true"); err != nil {
		b.Fatal(err)
	}
	const run = `axe.run({resultTypes: ['violations']}).then(({violations, passes}) => JSON.stringify({passed: passes.length,
		found: violations.map(({id, help, nodes}) => ({id, help, at: nodes.map(({html}) => html)}))}))`
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	var result struct {
		Passed int
		Found  []struct {
			ID, Help string
			At       []string
		}
	}
	if err := json.Unmarshal([]byte(found), &result); err != nil || result.Passed < 5 {
		b.Fatalf("%s: axe-core did not run: %s, %v", what, found, err)
	}
	for _, v := range result.Found {
		b.Errorf("%s: axe-core finds %s (%s): %v", what, v.ID, v.Help, v.At)
	}
}

// checkNoOverflow checks that nothing is wider than the page or its own box.
func (b *browser) checkNoOverflow(what string) {
	b.Helper()
	const wide = `JSON.stringify([...document.querySelectorAll('html, button, a, h1, p, label, input, .card, .choice, pre')]
		.filter((each) => !each.matches('.unseen, .key') && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline' && each.tagName !== 'INPUT'
			|| each.getBoundingClientRect().right > innerWidth + 1 || each.getBoundingClientRect().left < -1)
		.map((each) => each.outerHTML.slice(0, 120)))`
	found, err := evaluate[string](b, wide)
	if err != nil {
		b.Fatal(err)
	}
	if found != "[]" {
		b.Errorf("%s: too wide: %s", what, found)
	}
}

// checkWeight checks what the page and its files weigh on the way to the browser.
func (b *browser) checkWeight() {
	b.Helper()
	const weight = `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
		.map(({transferSize}) => transferSize).reduce((sum, each) => sum + each, 0)`
	if size, err := evaluate[int](b, weight); err != nil || size < 10_000 || size >= 60_000 {
		b.Errorf("the sign-in page takes %d bytes, want less than 60,000: %v", size, err)
	}
}

// Every screen passes the checks of accessibility, fits a telephone, has no error in
// its console and keeps its policy (openBrowser checks both).
func TestEveryScreen(t *testing.T) {
	shop := newShop(t)
	client.Update(t, shop.Application.Href(), e2e.Object{"name": "Otter Outfitters"})
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	anyFactor := e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}}

	t.Run("of a password", func(t *testing.T) {
		b := openBrowser(t)
		shop.openLogin(b, nil)
		b.awaitHeading("Sign in")
		b.checkWeight()
		b.checkScreen("sign-in")
		b.submit()
		b.awaitTrue("document.querySelector('.field-error').textContent !== ''")
		b.checkScreen("sign-in-refused")
		b.follow("Create one")
		b.awaitHeading("Create your account")
		b.fill("password", "abc")
		b.checkScreen("register")
		b.follow("Sign in")
		b.awaitHeading("Sign in")
		b.follow("Forgot your password?")
		b.awaitHeading("Reset your password")
		b.checkScreen("forgot")
		b.fill("email", account.Text("email"))
		b.submit()
		b.awaitTrue("document.querySelector('[role=status]') !== null")
		b.checkScreen("forgot-sent")
		mail := client.AwaitMail(t, account.Text("email"))
		token, err := mail.Sptoken()
		if err != nil {
			t.Fatal(err)
		}
		mapOrganization(t, shop.Fixture, newOrganization(t))
		shop.openLogin(b, e2e.Object{"sof": true, "onk": nil})
		b.awaitHeading("Sign in")
		b.checkScreen("sign-in-organization")
		shop.openLogin(b, e2e.Object{"path": "/#/verify", "sp_token": "x"})
		b.awaitHeading("This link no longer works")
		b.checkScreen("dead-link")
		shop.openLogin(b, e2e.Object{"path": "/#/unverified"})
		b.awaitHeading("Look in your inbox")
		b.checkScreen("unverified")
		shop.openLogin(b, e2e.Object{"path": "/#/reset", "sp_token": token})
		b.awaitHeading("Choose a new password")
		b.checkScreen("reset")
		b.open(linkInMail.FindString(mail.Text))
		b.awaitHeading("Choose a new password")
		b.checkScreen("page-reset")
		b.fill("password", newPassword)
		b.fill("again", newPassword+"x")
		b.submit()
		b.awaitTrue("document.querySelector('.alert') !== null")
		b.checkScreen("page-reset-refused")
		b.open(client.Key.HostURL() + "/passwordReset?sptoken=x")
		b.awaitHeading("This link no longer works")
		b.checkScreen("page-dead-link")
	})
	t.Run("of providers", func(t *testing.T) {
		other := newShop(t)
		client.Update(t, other.Application.Href(), e2e.Object{"name": "Otter Club"})
		certificate := string(document(t, identityProvider(t, other.Application).Link(t, "x509SigningCert"), "").Body)
		for name, settings := range map[string]e2e.Object{
			"Google":   {"providerId": "google", "clientId": "abc", "clientSecret": "def", "redirectUri": callback},
			"GitHub":   {"providerId": "github", "clientId": "abc", "clientSecret": "def", "redirectUri": callback},
			"Facebook": {"providerId": "facebook", "clientId": "abc", "clientSecret": "def", "redirectUri": callback},
			"LinkedIn": {"providerId": "linkedin", "clientId": "abc", "clientSecret": "def", "redirectUri": callback},
			"Otter Staff": {"providerId": "saml", "ssoLoginUrl": "https://idp.example.test/login", "ssoLogoutUrl": "https://idp.example.test/logout",
				"encodedX509SigningCert": certificate},
		} {
			directory := client.Create(t, "/directories", e2e.Object{"name": e2e.Unique(name + " "), "provider": settings})
			client.DeleteAtEnd(t, directory.Href())
			client.Create(t, "/accountStoreMappings", e2e.Object{
				"application": e2e.Object{"href": other.Application.Href()}, "accountStore": e2e.Object{"href": directory.Href()},
			})
		}
		b := openBrowser(t)
		other.openLogin(b, nil)
		b.awaitHeading("Sign in")
		b.checkScreen("sign-in-providers")
		b.signIn("nobody@example.test", "Wrong0000!")
		b.awaitTrue("document.querySelector('.alert').textContent !== ''")
		b.checkScreen("sign-in-failed")
	})
	t.Run("of a sign-up", func(t *testing.T) {
		b := openBrowser(t)
		b.open(client.Key.HostURL() + "/register")
		b.awaitHeading("Create your account")
		b.checkScreen("page-sign-up")
		email := e2e.Unique("owner") + "@example.test"
		b.enterOwner(email)
		b.awaitHeading("Look in your inbox")
		b.checkScreen("page-sign-up-sent")
		b.open(linkInMail.FindString(client.AwaitMail(t, email).Text))
		b.awaitHeading("Complete your sign-up")
		b.checkScreen("page-complete")
		b.submit()
		b.awaitHeading("Your tenant is ready")
		b.checkScreen("page-ready")
	})
	t.Run("of a second factor", func(t *testing.T) {
		b := openBrowser(t)
		shop.openLogin(b, anyFactor)
		b.signIn(account.Text("email"), e2e.Password)
		b.awaitHeading("Protect your account")
		b.checkScreen("factor-choice")
		b.do(chromedp.Click(chromedp.CSS("a[href='#/mfa/setup/sms']")))
		b.awaitHeading("Your phone number")
		b.checkScreen("factor-phone")
		b.fill("tel", "123")
		b.submit()
		b.awaitAlert("That phone number is not valid. Please check it.")
		b.checkScreen("factor-phone-refused")
		b.fill("tel", fmt.Sprintf("+1267555%04d", rand.IntN(10_000)))
		b.submit()
		b.awaitTrue("document.querySelector('input[name=code]') !== null")
		b.checkScreen("factor-phone-code")
		b.follow("Choose another way")
		b.awaitHeading("Protect your account")
		b.do(chromedp.Click(chromedp.CSS("a[href='#/mfa/setup/google-authenticator']")))
		b.awaitHeading("Set up your authenticator")
		b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('details').open = true"))
		b.checkScreen("factor-authenticator")
		enrolPhone(t, account)
		shop.openLogin(b, anyFactor)
		b.signIn(account.Text("email"), e2e.Password)
		b.awaitHeading("Confirm that it is you")
		b.awaitTrue("document.querySelector('[role=status]') !== null")
		b.checkScreen("factor-code")
		b.fill("code", "000000")
		b.submit()
		b.awaitTrue("document.querySelector('.field-error').textContent !== ''")
		b.checkScreen("factor-code-refused")
	})
	t.Run("of a failure", func(t *testing.T) {
		b := openBrowser(t)
		b.open(pageOrigin(t) + "/")
		b.awaitHeading("Your session is over")
		b.checkScreen("session-over")
		shop.openLogin(b, e2e.Object{"cb_uri": "https://evil.example/callback"})
		b.awaitHeading("This sign-in link does not work")
		b.checkScreen("page-request-refused")
	})
}

// The longest texts are not in English.
func TestEveryScreenFitsInEveryLanguage(t *testing.T) {
	shop := newShop(t)
	mapOrganization(t, shop.Fixture, newOrganization(t))
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	unverified := client.Register(t, client.NewVerificationFixture(t).Application.Link(t, "accounts"))
	link := linkInMail.FindString(client.AwaitMail(t, unverified.Text("email")).Text)
	languages := locale.Languages[1:]
	if mode := os.Getenv(modeEnv); mode != "" && mode != "standalone" {
		languages = []string{"de", "ar"} // the other shapes serve the same files
	}
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			b := openBrowser(t)
			b.setLanguage(language)
			b.do(chromedp.EmulateViewport(320, 700))
			look := func(name, selector string) {
				b.awaitTrue("document.documentElement.lang === '" + language + "' && document.querySelector('" + selector + "') !== null")
				b.checkNoOverflow(name + " in " + language)
				b.takeScreenshot(name + "-" + language)
			}
			for _, path := range []string{"/", "/#/register", "/#/forgot", "/#/forgot/retry", "/#/unverified", "/#/verify"} {
				shop.openLogin(b, e2e.Object{"path": path, "sof": true})
				look("screen"+strings.NewReplacer("/#/", "-", "/", "-").Replace(path), "h1")
			}
			shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}})
			look("screen-", "h1")
			b.fill("login", account.Text("email"))
			b.fill("password", e2e.Password)
			b.submit()
			look("factor-choice", ".choices")
			for _, factor := range []string{"sms", "google-authenticator"} {
				b.do(chromedp.Click(chromedp.CSS("a[href='#/mfa/setup/" + factor + "']")))
				look("factor-"+factor, "form button")
				b.do(chromedp.Evaluate[chromedp.Void]("location.hash = '#/mfa/setup'"))
				b.awaitTrue("document.querySelector('.choices') !== null")
			}
			b.open(client.Key.HostURL() + "/register")
			look("page-sign-up", "form button")
			b.open(link)
			look("page-verify", "form button")
			b.open(client.Key.HostURL() + "/emailVerificationTokens?sptoken=x")
			look("page-verify-refused", "h1")
		})
	}
}

// A page without scripts says what it needs, and the pages of mails need none.
func TestPagesWithoutScripts(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	shop.openLogin(b, nil)
	b.awaitTrue("document.body.innerText.includes('This page needs JavaScript.')")
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	client.Want(t, http.StatusOK, post(shop.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")}))
	b.open(linkInMail.FindString(client.AwaitMailWith(t, account.Text("email"), "sptoken=").Text))
	b.awaitHeading("Choose a new password")
	b.fill("password", newPassword)
	b.fill("again", newPassword)
	b.submit()
	b.awaitHeading("Your password is changed")
	client.Want(t, http.StatusOK, e2e.Login(shop.Application, account.Text("email"), newPassword))
}

// The cookies of a browser, its history and its tabs.
func TestABrowserGoesBackAndHasTwoTabs(t *testing.T) {
	shop := newShop(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	t.Run("back after the second step", func(t *testing.T) {
		b := openBrowser(t)
		shop.openLogin(b, e2e.Object{"require_mfa": []string{"google-authenticator"}})
		b.signIn(account.Text("email"), e2e.Password)
		b.awaitHeading("Set up your authenticator")
		b.fill("code", totpCode(t, b.readQRCode(), time.Now()))
		b.submit()
		shop.awaitCallback(b, "AUTHENTICATED", account.Href())
		b.do(chromedp.Evaluate[chromedp.Void]("history.back()"))
		b.awaitHeading("Your session is over")
	})
	t.Run("two tabs end as one", func(t *testing.T) {
		b := openBrowser(t)
		other := &browser{T: t}
		var stop context.CancelFunc
		other.ctx, stop = chromedp.NewContext(b.ctx)
		t.Cleanup(stop)
		other.do()
		shop.openLogin(b, nil)
		b.awaitHeading("Sign in")
		shop.openLogin(other, nil)
		other.awaitHeading("Sign in")
		b.signIn(account.Text("email"), e2e.Password)
		shop.awaitCallback(b, "AUTHENTICATED", account.Href())
		other.signIn(account.Text("email"), e2e.Password)
		shop.awaitCallback(other, "AUTHENTICATED", account.Href())
		shop.openLogin(other, nil)
		shop.awaitCallback(other, "AUTHENTICATED", account.Href())
	})
	t.Run("a reset ends the session of before", func(t *testing.T) {
		b := openBrowser(t)
		shop.openLogin(b, nil)
		b.signIn(account.Text("email"), e2e.Password)
		shop.awaitCallback(b, "AUTHENTICATED", account.Href())
		shop.openLogin(b, e2e.Object{"path": "/#/forgot"})
		b.awaitHeading("Reset your password")
		b.fill("email", account.Text("email"))
		b.submit()
		b.awaitTrue("document.querySelector('[role=status]') !== null")
		b.open(linkInMail.FindString(client.AwaitMailWith(t, account.Text("email"), "sptoken=").Text))
		b.awaitHeading("Choose a new password")
		b.fill("password", newPassword)
		b.fill("again", newPassword)
		b.submit()
		b.awaitHeading("Your password is changed")
		shop.openLogin(b, nil)
		b.signIn(account.Text("email"), newPassword)
		shop.awaitCallback(b, "AUTHENTICATED", account.Href())
	})
	t.Run("a persistent cookie has an end", func(t *testing.T) {
		site := idSite(t)
		client.Update(t, site.Href(), e2e.Object{"sessionCookiePersistent": true, "sessionTtl": "PT2H"})
		defer client.Update(t, site.Href(), e2e.Object{"sessionCookiePersistent": site["sessionCookiePersistent"],
			"sessionTtl": site["sessionTtl"]})
		hosted := newHosted(t)
		member := client.Register(t, hosted.Application.Link(t, "accounts"))
		page := begin(t, client.Browser(), hosted.Application, nil, "/")
		page.logIn(member.Text("email"))
		answer := page.browser.Want(t, http.StatusFound, get(client.Key.HostURL()+"/sso/?jwtResponse="+strings.TrimPrefix(page.back,
			callback+"?jwtResponse=")))
		cookies := (&http.Response{Header: answer.Header}).Cookies()
		if len(cookies) != 1 || cookies[0].Name != "__Host-sso" || cookies[0].MaxAge != 7200 || !cookies[0].HttpOnly || !cookies[0].Secure {
			t.Errorf("the cookies are %v", cookies)
		}
	})
}
