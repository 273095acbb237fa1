package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image/png"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"github.com/doorward/doorward/deploy/e2e"
)

// browser is one tab of Chromium with cookies of its own, and the messages of its console.
type browser struct {
	*testing.T
	ctx context.Context

	mu      sync.Mutex
	console []string
}

// browserLimit bounds what a test does in one browser.
const browserLimit = 2 * time.Minute

// openBrowser starts Chromium. When the test ends, no page may have had a JavaScript
// error or broken its Content-Security-Policy.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("the browser tests need Chromium; install it with: apt-get install -y chromium")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.IgnoreCertErrors}
	for _, flag := range []string{"disable-gpu", "disable-quic", "disable-component-update"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	limited, cancel := context.WithTimeout(context.Background(), browserLimit)
	ctx, closeBrowser := chromedp.NewContext(limited, chromedp.WithAllocatorOptions(options...))
	b := &browser{T: t, ctx: ctx}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.console {
			// Hints about forms are no errors. The network's refusals are in the console too; what comes of them is on the screen.
			if !strings.HasPrefix(text, "[DOM] ") && !strings.HasPrefix(text, "Failed to load resource: the server responded with a status of 4") {
				t.Errorf("the console says: %s", text)
			}
		}
	})
	t.Cleanup(func() { closeBrowser(); cancel() })
	b.do()
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(b.console, message.Text)
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatalf("%v; the page is %s", err, b.description())
	}
}

func evaluate[T any](b *browser, expression string) (T, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
}

// description describes the page for a failed test.
func (b *browser) description() string {
	text, err := evaluate[string](b, "location.href.slice(0, 120) + '\\n' + document.body?.innerText")
	if err != nil {
		return err.Error()
	}
	return text
}

// awaitTrue waits until an expression is true, on this page or the one after it. An error
// means that the browser is between two pages.
func (b *browser) awaitTrue(expression string) {
	b.Helper()
	err := e2e.AwaitFor(b.ctx, 30*time.Second, expression, func(context.Context) error {
		so, err := evaluate[bool](b, expression)
		if err == nil && !so {
			err = fmt.Errorf("it is not so")
		}
		return err
	})
	if err != nil {
		b.Fatalf("%v; the page is %s", err, b.description())
	}
}

// awaitHeading waits until the page shows a screen with this heading.
func (b *browser) awaitHeading(text string) {
	b.Helper()
	b.awaitTrue(fmt.Sprintf("document.querySelector('h1')?.textContent === %q && document.querySelector('[aria-busy]') === null", text))
}

// open shows an address.
func (b *browser) open(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address))
}

// fill types into the field of a form with this name.
func (b *browser) fill(name, text string) {
	b.Helper()
	field := chromedp.CSS("input[name='" + name + "']")
	b.awaitTrue("document.querySelector(\"input[name='" + name + "']\") !== null")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector(\"input[name='"+name+"']\").select()"), chromedp.SendKeys(field, text))
}

func (b *browser) submit() {
	b.Helper()
	b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
}

// follow clicks the link or button with this text.
func (b *browser) follow(text string) {
	b.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('a, button')].find((each) => each.textContent.trim() === %q)", text)
	b.awaitTrue(find + " !== undefined")
	b.do(chromedp.Evaluate[chromedp.Void](find + ".click()"))
}

// shop is an application with a callback page of its own, which a browser can open.
type shop struct {
	e2e.Fixture
	callback string
}

func newShop(t *testing.T) shop {
	t.Helper()
	s := shop{Fixture: client.NewFixture(t), callback: callbackPage(t)}
	s.Application = authorize(t, s.Application, s.callback)
	return s
}

// callbackPage serves the page of an application to which browsers come back.
func callbackPage(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><link rel=icon href='data:,'><title>callback</title><h1>Welcome back</h1>")
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "https://shop.localhost:" + port + "/callback"
}

// openLogin opens the hosted pages for the application.
func (s shop) openLogin(b *browser, changes e2e.Object) {
	b.Helper()
	claims := e2e.Object{"cb_uri": s.callback}
	for name, value := range changes {
		claims[name] = value
	}
	b.open(client.Key.HostURL() + "/sso?jwtRequest=" + hostedRequest(b.T, s.Application, claims))
}

// awaitCallback waits until the browser is redirected to the application and checks the
// assertion: its account is the expected one, and it can be exchanged for a token.
func (s shop) awaitCallback(b *browser, status, account string) {
	b.Helper()
	b.awaitHeading("Welcome back")
	address, err := evaluate[string](b, "location.href")
	if err != nil {
		b.Fatal(err)
	}
	assertion, found := strings.CutPrefix(address, s.callback+"?jwtResponse=")
	if !found {
		b.Fatalf("the browser is back at %s", address)
	}
	claims := e2e.Claims(b.T, assertion)
	if claims.Text("status") != status || account != "" && claims.Text("sub") != account {
		b.Fatalf("the assertion says %v", claims)
	}
	if status != "LOGOUT" {
		client.Want(b.T, http.StatusOK, exchange(s.Application, assertion))
	}
}

func (b *browser) signIn(login, password string) {
	b.Helper()
	b.awaitHeading("Sign in")
	b.fill("login", login)
	b.fill("password", password)
	b.submit()
}

func TestABrowserSignsIn(t *testing.T) {
	first, second := newShop(t), shop{Fixture: e2e.Fixture{Application: client.NewApplication(t)}, callback: callbackPage(t)}
	second.Application = authorize(t, second.Application, second.callback)
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": second.Application.Href()}, "accountStore": e2e.Object{"href": first.Directory.Href()},
	})
	account := client.Register(t, first.Application.Link(t, "accounts"))
	b := openBrowser(t)

	first.openLogin(b, nil)
	b.awaitHeading("Sign in")
	b.submit()
	b.awaitTrue("document.querySelector('.field-error').textContent === 'Please fill in this field.'")
	b.signIn(account.Text("email"), "Wrong0000")
	b.awaitTrue("document.querySelector('.alert').textContent === 'Invalid username or password.'")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('input[name=password]').value = ''"))
	b.submit()
	b.awaitTrue("[...document.querySelectorAll('.field-error')].some((each) => each.textContent === 'Please fill in this field.')")
	if alert, err := evaluate[string](b, "document.querySelector('.alert').textContent"); err != nil || alert != "" {
		t.Errorf("beside the field that is missing stands %q, %v", alert, err)
	}
	b.signIn(account.Text("email"), e2e.Password)
	first.awaitCallback(b, "AUTHENTICATED", account.Href())

	second.openLogin(b, nil)
	second.awaitCallback(b, "AUTHENTICATED", account.Href())

	b.open(client.Key.HostURL() + "/sso/logout?jwtRequest=" + hostedRequest(t, first.Application, e2e.Object{"cb_uri": first.callback}))
	first.awaitCallback(b, "LOGOUT", account.Href())
	second.openLogin(b, nil)
	b.awaitHeading("Sign in")
	b.do(chromedp.Reload())
	b.signIn(account.Text("email"), e2e.Password)
	second.awaitCallback(b, "AUTHENTICATED", account.Href())
}

func TestABrowserRegisters(t *testing.T) {
	shop := newShop(t)
	client.Update(t, shop.Directory.Link(t, "accountCreationPolicy"), e2e.Object{"verificationEmailStatus": "ENABLED"})
	template := client.All(t, client.Get(t, shop.Directory.Link(t, "accountCreationPolicy")).Link(t, "verificationEmailTemplates"))[0]
	email := e2e.Unique("new") + "@example.test"
	b := openBrowser(t)

	shop.openLogin(b, nil)
	b.awaitHeading("Sign in")
	b.follow("Create one")
	b.awaitHeading("Create your account")
	b.fill("givenName", "Jo")
	b.fill("surname", "Doe")
	b.fill("email", email)
	b.fill("password", "short")
	b.submit()
	b.awaitTrue("document.querySelector('.alert').textContent !== ''")
	b.fill("password", e2e.Password)
	b.awaitTrue("[...document.querySelectorAll('.rules li')].every((each) => each.classList.contains('met'))")
	b.submit()
	b.awaitHeading("Look in your inbox")

	mail := client.AwaitMail(t, email)
	b.open(linkInMail.FindString(mail.Text))
	b.awaitTrue("document.querySelector('form button') !== null")
	b.do(chromedp.Click(chromedp.CSS("form button")))
	awaitTrue(t, "the email to be confirmed", func() bool {
		items := client.Get(t, shop.Directory.Link(t, "accounts")).Items(t)
		return items[0].Text("emailVerificationStatus") == "VERIFIED"
	})
	shop.openLogin(b, nil)
	b.signIn(email, e2e.Password)
	shop.awaitCallback(b, "AUTHENTICATED", "")

	t.Run("and confirms the address at the hosted pages", func(t *testing.T) {
		client.Update(t, template.Href(), e2e.Object{"defaultModel": e2e.Object{"linkBaseUrl": shop.callback}})
		other := client.Register(t, shop.Application.Link(t, "accounts"))
		token, err := client.AwaitMail(t, other.Text("email")).Sptoken()
		if err != nil {
			t.Fatal(err)
		}
		b := openBrowser(t)
		shop.openLogin(b, e2e.Object{"path": "/#/verify", "sp_token": token})
		b.awaitHeading("Your email address is confirmed")
		shop.openLogin(b, e2e.Object{"path": "/#/verify", "sp_token": token})
		b.awaitHeading("This link no longer works")
		b.follow("Back to sign in")
		b.signIn(other.Text("email"), e2e.Password)
		shop.awaitCallback(b, "AUTHENTICATED", other.Href())
	})
}

func TestABrowserRegistersAndIsSignedIn(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	shop.openLogin(b, e2e.Object{"path": "/#/register"})
	b.awaitHeading("Create your account")
	b.fill("givenName", "Jo")
	b.fill("surname", "Doe")
	b.fill("email", e2e.Unique("new")+"@example.test")
	b.fill("password", e2e.Password)
	b.submit()
	shop.awaitCallback(b, "REGISTERED", "")
}

func TestABrowserResetsAForgottenPassword(t *testing.T) {
	shop := newShop(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	email := account.Text("email")
	b := openBrowser(t)
	shop.openLogin(b, nil)
	b.awaitHeading("Sign in")
	b.follow("Forgot your password?")
	b.awaitHeading("Reset your password")
	b.fill("email", email)
	b.submit()
	b.awaitTrue("document.querySelector('[role=status]')?.textContent.startsWith('If there is an account')")
	token, err := client.AwaitMail(t, email).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	shop.openLogin(b, e2e.Object{"path": "/#/reset", "sp_token": token})
	b.awaitHeading("Choose a new password")
	b.fill("password", newPassword)
	b.fill("again", newPassword+"x")
	b.submit()
	b.awaitTrue("document.body.innerText.includes('The two passwords differ.')")
	b.fill("again", newPassword)
	b.submit()
	b.awaitTrue("document.querySelector('[role=status]')?.textContent === 'Your password is changed.'")
	b.follow("Sign in")
	b.signIn(email, newPassword)
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())

	other := openBrowser(t)
	shop.openLogin(other, e2e.Object{"path": "/#/reset", "sp_token": token})
	other.awaitHeading("Reset your password")
	other.awaitTrue("document.body.innerText.includes('That link no longer works')")
}

// pureBarcode reads a QR code as it was drawn. The search for one in a photograph
// misses one code in a hundred.
var pureBarcode = map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true}

// readQRCode reads the QR code that a page shows.
func (b *browser) readQRCode() string {
	b.Helper()
	b.awaitTrue("document.querySelector('img.qr')?.complete")
	source, err := evaluate[string](b, "document.querySelector('img.qr').src")
	if err != nil {
		b.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(source, "data:image/png;base64,"))
	if err != nil {
		b.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		b.Fatal(err)
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		b.Fatal(err)
	}
	read, err := qrcode.NewQRCodeReader().Decode(bitmap, pureBarcode)
	if err != nil {
		b.Fatal(err)
	}
	return read.GetText()
}

// checkKeyWithoutCamera checks that the page has the key of its QR code for who cannot scan it: as a link for
// the app of this telephone, and as a text to copy.
func (b *browser) checkKeyWithoutCamera(keyURI string) {
	b.Helper()
	key, err := url.Parse(keyURI)
	if err != nil {
		b.Fatal(err)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = async (text) => { window.copied = text; };
		document.querySelector('details button').click()`))
	b.awaitTrue(fmt.Sprintf(`document.querySelector('a[href^="otpauth:"]')?.getAttribute('href') === %q`, keyURI))
	b.awaitTrue(fmt.Sprintf("window.copied === %q", key.Query().Get("secret")))
	b.awaitTrue("document.querySelector('details [role=status]').textContent === 'Copied.'")
}

func TestABrowserUsesAnAuthenticator(t *testing.T) {
	shop := newShop(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	demanded := e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}}
	b := openBrowser(t)
	shop.openLogin(b, demanded)
	b.signIn(account.Text("email"), e2e.Password)
	b.awaitHeading("Protect your account")
	b.do(chromedp.Click(chromedp.CSS("a[href='#/mfa/setup/google-authenticator']")))
	b.awaitHeading("Set up your authenticator")
	keyURI := b.readQRCode()
	b.checkKeyWithoutCamera(keyURI)
	b.fill("code", wrongCode(totpCode(t, keyURI, time.Now())))
	b.submit()
	b.awaitTrue("document.body.innerText.includes('That code is not right.')")
	// The code of half a minute ago is good too; the one of now is kept for later.
	b.fill("code", totpCode(t, keyURI, time.Now().Add(-30*time.Second)))
	b.submit()
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())

	shop.openLogin(b, demanded)
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())

	other := openBrowser(t)
	shop.openLogin(other, demanded)
	other.signIn(account.Text("email"), e2e.Password)
	other.awaitHeading("Confirm that it is you")
	other.fill("code", totpCode(t, keyURI, time.Now()))
	other.submit()
	shop.awaitCallback(other, "AUTHENTICATED", account.Href())
}

func TestABrowserUsesATextMessage(t *testing.T) {
	shop := newShop(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	b := openBrowser(t)
	shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms"}})
	b.signIn(account.Text("email"), e2e.Password)
	b.awaitHeading("Your phone number")
	number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
	b.fill("tel", number)
	b.submit()
	code := awaitTextCode(t, number, "")
	b.fill("code", wrongCode(code))
	b.submit()
	b.awaitTrue("document.body.innerText.includes('That code is not right.')")
	b.follow("Send another code")
	again := awaitTextCode(t, number, code)
	b.awaitTrue("document.body.innerText.includes('We sent another code.')") // a message can come before the answer to the page
	b.fill("code", again)
	b.submit()
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())

	plain := openBrowser(t)
	shop.openLogin(plain, nil)
	plain.signIn(account.Text("email"), e2e.Password)
	shop.awaitCallback(plain, "AUTHENTICATED", account.Href())
	shop.openLogin(plain, e2e.Object{"require_mfa": []string{"sms"}})
	plain.awaitHeading("Confirm that it is you")
	plain.fill("code", awaitTextCode(t, number, again))
	plain.submit()
	shop.awaitCallback(plain, "AUTHENTICATED", account.Href())
}

// A user who left before the code came enters the same number again.
func TestABrowserComesBackToAPhone(t *testing.T) {
	shop := newShop(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
	enter := func(b *browser, number string) {
		shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms"}})
		b.signIn(account.Text("email"), e2e.Password)
		b.awaitHeading("Your phone number")
		b.fill("tel", number)
		b.submit()
	}
	enter(openBrowser(t), number)
	first := awaitTextCode(t, number, "")
	b := openBrowser(t)
	enter(b, number[2:5]+" "+number[5:]) // as it is written at home
	b.fill("code", awaitTextCode(t, number, first))
	b.submit()
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())
}

func TestWhatABrowserIsToldOfABadRequest(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	shop.openLogin(b, e2e.Object{"iat": time.Now().Unix() - 3600})
	b.awaitHeading("Welcome back")
	address, err := evaluate[string](b, "location.href")
	if err != nil {
		t.Fatal(err)
	}
	checkErrorAssertion(t, strings.TrimPrefix(address, shop.callback+"?jwtResponse="), shop.Application, 400, 10011)

	shop.openLogin(b, e2e.Object{"cb_uri": "https://evil.example/callback"})
	b.awaitHeading("This sign-in link does not work")

	t.Run("and of a page without a session", func(t *testing.T) {
		client.Update(t, shop.Application.Href(), e2e.Object{"homeUrl": shop.callback})
		defer client.Update(t, shop.Application.Href(), e2e.Object{"homeUrl": nil})
		b := openBrowser(t)
		b.open(pageOrigin(t) + "/")
		b.awaitHeading("Your session is over")
		b.follow("Go to " + shop.Application.Text("name"))
		b.awaitHeading("Welcome back")
	})
	t.Run("and of a session that has ended in another tab", func(t *testing.T) {
		account := client.Register(t, shop.Application.Link(t, "accounts"))
		b := openBrowser(t)
		shop.openLogin(b, nil)
		b.awaitHeading("Sign in")
		token, err := evaluate[string](b, "sessionStorage.getItem('session')")
		if err != nil {
			t.Fatal(err)
		}
		page := &hostedPage{T: t, browser: client.Browser(), app: shop.Application, token: token}
		page.logIn(account.Text("email"))
		b.signIn(account.Text("email"), e2e.Password)
		b.awaitHeading("Your session is over")
		b.follow("Back to the application")
		b.awaitHeading("Welcome back")
	})
}
