package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

// A browser rewrites such addresses in a field of type email: what was registered
// could not log in.
func TestABrowserRegistersAnInternationalizedAddress(t *testing.T) {
	shop := newShop(t)
	for _, email := range []string{e2e.Unique("jo") + "@bücher.test", e2e.Unique("jörg") + "@example.test"} {
		b := openBrowser(t)
		shop.openLogin(b, e2e.Object{"path": "/#/register"})
		b.awaitHeading("Create your account")
		b.fill("givenName", "Jo")
		b.fill("surname", "Doe")
		b.fill("password", e2e.Password)
		b.fill("email", "jo")
		b.submit()
		b.awaitTrue("[...document.querySelectorAll('.field-error')].some((each) => each.textContent === 'Please enter an email address.')")
		b.fill("email", email)
		b.submit()
		shop.awaitCallback(b, "REGISTERED", "")

		other := openBrowser(t)
		shop.openLogin(other, nil)
		other.signIn(email, e2e.Password)
		shop.awaitCallback(other, "AUTHENTICATED", "")
	}
	t.Run("and signs up with one", func(t *testing.T) {
		b := openBrowser(t)
		b.open(client.Key.HostURL() + "/register")
		b.awaitHeading("Create your account")
		email := e2e.Unique("jörg") + "@bücher.test"
		b.enterOwner(email)
		b.awaitHeading("Look in your inbox")
		b.awaitTrue(fmt.Sprintf("document.body.innerText.includes(%q)", email))
	})
}

// awaitAlert waits until a page shows a text as its alert.
func (b *browser) awaitAlert(text string) {
	b.Helper()
	b.awaitTrue(fmt.Sprintf("document.querySelector('.alert').textContent === %q", text))
}

func TestABrowserIsRefusedInTheLanguageOfThePage(t *testing.T) {
	shop := newShop(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	for language, text := range map[string]string{
		"en": "Invalid username or password.", "de": "Benutzername oder Passwort ist falsch.", "fr": "Identifiant ou mot de passe incorrect.",
		"es": "El usuario o la contraseña no son correctos.", "ja": "ユーザー名またはパスワードが正しくありません。",
	} {
		b := openBrowser(t)
		b.setLanguage(language)
		shop.openLogin(b, nil)
		b.fill("login", account.Text("email"))
		b.fill("password", "Wrong0000")
		b.submit()
		b.awaitAlert(text)
	}

	b := openBrowser(t)
	b.setLanguage("de")
	shop.openLogin(b, e2e.Object{"path": "/#/register"})
	b.awaitHeading("Konto erstellen")
	b.fill("givenName", "Jo")
	b.fill("surname", "Doe")
	b.fill("email", account.Text("email"))
	for password, text := range map[string]string{
		"short":      "Das Passwort ist zu kurz.",
		"changeme1!": "Das Passwort ist nicht stark genug.",
		e2e.Password: "Diese E-Mail-Adresse ist schon vergeben. Bitte melden Sie sich an oder verwenden Sie eine andere.",
	} {
		b.fill("password", password)
		b.submit()
		b.awaitAlert(text)
	}
	shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms"}})
	b.awaitHeading("Anmelden")
	b.fill("login", account.Text("email"))
	b.fill("password", e2e.Password)
	b.submit()
	b.awaitHeading("Ihre Telefonnummer")
	b.fill("tel", "123")
	b.submit()
	b.awaitAlert("Diese Telefonnummer ist ungültig. Bitte prüfen Sie sie.")

	english := openBrowser(t)
	shop.openLogin(english, e2e.Object{"path": "/#/register"})
	english.awaitHeading("Create your account")
	for name, text := range map[string]string{"givenName": "Jo", "surname": "Doe", "email": account.Text("email"), "password": "changeme1!"} {
		english.fill(name, text)
	}
	english.submit()
	english.awaitAlert("Password requires at least 1 uppercase character.")
}

// The routes that other hosted pages have lead to the same pages here.
func TestEveryRouteOfTheHostedPagesHasItsPage(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	for path, heading := range map[string]string{
		"/#/forgot/": "Reset your password", "/#/forgot/retry/": "Reset your password", "/#/register/": "Create your account",
		"/#/unverified/": "Look in your inbox", "/#/mfa/redirect": "Sign in", "/#/nothing": "Sign in",
	} {
		shop.openLogin(b, e2e.Object{"path": path})
		b.awaitHeading(heading)
	}
	demanded := e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}}
	visit := func(hash, heading, then string) {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("location.hash = %q", hash)))
		b.awaitTrue(fmt.Sprintf("location.hash === %q", then))
		b.awaitHeading(heading)
	}
	shop.openLogin(b, demanded)
	b.signIn(account.Text("email"), e2e.Password)
	b.awaitHeading("Protect your account")
	for _, hash := range []string{
		"#/mfa/redirect", "#/mfa/redirect/", "#/mfa/redirect/login/a.b-c_d", "#/mfa/verify/google-authenticator/true",
	} {
		visit("#/mfa/setup/sms", "Your phone number", "#/mfa/setup/sms")
		visit(hash, "Protect your account", "#/mfa/setup")
	}
	enrolPhone(t, account)
	for hash, then := range map[string]string{
		"#/mfa/redirect/login": "#/mfa/verify", "#/mfa/verify/sms/true": "#/mfa/verify/sms/true", "#/mfa/verify/": "#/mfa/verify/",
	} {
		shop.openLogin(b, demanded)
		b.signIn(account.Text("email"), e2e.Password)
		b.awaitHeading("Confirm that it is you")
		visit(hash, "Confirm that it is you", then)
	}
}

// The claim asnk names the organization of a request whose onk is null, and is the
// address of an account store that is none.
func TestTheOrganizationOfARequestIsFilledIn(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	shop.openLogin(b, nil)
	b.awaitHeading("Sign in")
	const value = `import(document.querySelector('link[href$="/screens/password.js"]').href).then((page) => page.organizationField(%s).value)`
	for claims, want := range map[string]string{
		`{sof: true, onk: 'acme'}`: "acme", `{sof: true, onk: null, asnk: 'acme'}`: "acme", `{sof: true, onk: null}`: "",
		`{sof: true, onk: null, asnk: 'https://localhost/v1/directories/D1'}`: "",
	} {
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(value, claims), chromedp.EvalAwaitPromise))
		if err != nil || got != want {
			t.Errorf("for %s the field has %q, want %q: %v", claims, got, want, err)
		}
	}
}

func TestABrowserCorrectsAPhoneNumber(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	wrong, right := fmt.Sprintf("+1267555%04d", rand.IntN(5_000)), fmt.Sprintf("+1267555%04d", 5_000+rand.IntN(5_000))
	shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}})
	b.signIn(account.Text("email"), e2e.Password)
	b.awaitHeading("Protect your account")
	b.do(chromedp.Click(chromedp.CSS("a[href='#/mfa/setup/sms']")))
	b.awaitHeading("Your phone number")
	b.fill("tel", wrong)
	b.submit()
	b.awaitTrue("document.querySelector('input[name=code]') !== null && document.querySelector('a[href=\"#/mfa/setup\"]') !== null")
	b.follow("Change the number")
	b.awaitTrue("document.querySelector('input[name=tel]')?.value === '" + wrong + "' && document.activeElement.name === 'tel'")
	b.fill("tel", right)
	b.submit()
	b.fill("code", awaitTextCode(t, right, ""))
	b.submit()
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())
}

// A QR code that was scanned stays good when the page is loaded again, and its key
// does not outlive the session.
func TestAReloadKeepsTheAuthenticatorThatIsBeingSetUp(t *testing.T) {
	shop, b := newShop(t), openBrowser(t)
	demanded := e2e.Object{"require_mfa": []string{"google-authenticator"}}
	account := client.Register(t, shop.Application.Link(t, "accounts"))
	shop.openLogin(b, demanded)
	b.signIn(account.Text("email"), e2e.Password)
	b.awaitHeading("Set up your authenticator")
	scanned := b.readQRCode()
	b.do(chromedp.Reload())
	b.awaitHeading("Set up your authenticator")
	if again := b.readQRCode(); again != scanned {
		t.Errorf("after a reload the code is %s, was %s", again, scanned)
	}
	if factors := client.Get(t, account.Link(t, "factors")).Items(t); len(factors) != 1 {
		t.Errorf("the account has %d factors", len(factors))
	}
	b.fill("code", totpCode(t, scanned, time.Now()))
	b.submit()
	shop.awaitCallback(b, "AUTHENTICATED", account.Href())
	shop.openLogin(b, e2e.Object{"path": "/#/forgot"})
	b.awaitHeading("Reset your password")
	if kept, err := evaluate[string](b, "Object.keys(sessionStorage).join()"); err != nil || kept != "session" {
		t.Errorf("the tab keeps %s, %v", kept, err)
	}
}
