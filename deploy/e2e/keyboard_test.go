package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/doorward/doorward/deploy/e2e"
)

// focusByTab moves the focus with the Tab key to what a CSS selector or the text of a link
// or button names. The focus must be visible there.
func (b *browser) focusByTab(what string) {
	b.Helper()
	found := fmt.Sprintf(`[...document.querySelectorAll('input, button, a, summary')].some((each) => each === document.activeElement &&
		(CSS.supports('selector(' + %[1]q + ')') && each.matches(%[1]q) || each.textContent.trim() === %[1]q))`, what)
	for range 30 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at, err := evaluate[bool](b, found)
		if err != nil {
			b.Fatal(err)
		}
		if at {
			if shown, err := evaluate[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== 'none'`); err != nil || !shown {
				b.Errorf("the focus on %s cannot be seen: %v", what, err)
			}
			return
		}
	}
	b.Fatalf("the Tab key does not reach %s: %s", what, b.description())
}

// typeInto types a text into the field of a name.
func (b *browser) typeInto(name, text string) {
	b.Helper()
	b.focusByTab("input[name='" + name + "']")
	b.do(chromedp.KeyEvent(text))
}

// pressEnterOn reaches a link or button and presses the Enter key.
func (b *browser) pressEnterOn(what string) {
	b.Helper()
	b.focusByTab(what)
	b.do(chromedp.KeyEvent(kb.Enter))
}

func TestTheKeyboardAloneIsEnough(t *testing.T) {
	shop := newShop(t)
	client.Update(t, shop.Application.Href(), e2e.Object{"name": e2e.Unique("Otter Outfitters")})

	t.Run("to register and to sign in", func(t *testing.T) {
		b, email := openBrowser(t), e2e.Unique("new")+"@example.test"
		shop.openLogin(b, nil)
		b.awaitHeading("Sign in")
		b.pressEnterOn("Create one")
		b.awaitHeading("Create your account")
		b.typeInto("givenName", "Jo")
		b.typeInto("surname", "Doe")
		b.typeInto("email", email)
		b.typeInto("password", e2e.Password)
		b.pressEnterOn("button[type=submit]")
		shop.awaitCallback(b, "REGISTERED", "")

		b = openBrowser(t)
		shop.openLogin(b, nil)
		b.awaitHeading("Sign in")
		b.typeInto("login", email)
		b.typeInto("password", e2e.Password)
		b.pressEnterOn(".toggle")
		b.awaitTrue("document.querySelector('input[name=password]').type === 'text'")
		b.pressEnterOn("button[type=submit]")
		shop.awaitCallback(b, "AUTHENTICATED", "")
	})
	t.Run("to choose a new password", func(t *testing.T) {
		account := client.Register(t, shop.Application.Link(t, "accounts"))
		b := openBrowser(t)
		shop.openLogin(b, nil)
		b.awaitHeading("Sign in")
		b.pressEnterOn("Forgot your password?")
		b.awaitHeading("Reset your password")
		b.typeInto("email", account.Text("email"))
		b.do(chromedp.KeyEvent(kb.Enter)) // of a form with one field
		mail := client.AwaitMail(t, account.Text("email"))
		b.open(linkInMail.FindString(mail.Text))
		b.awaitHeading("Choose a new password")
		b.do(chromedp.KeyEvent(newPassword)) // the first field has the focus
		b.typeInto("again", newPassword)
		b.pressEnterOn("button[type=submit]")
		b.awaitHeading("Your password is changed")
	})
	t.Run("to use an authenticator", func(t *testing.T) {
		account, b := client.Register(t, shop.Application.Link(t, "accounts")), openBrowser(t)
		shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}})
		b.awaitHeading("Sign in")
		b.typeInto("login", account.Text("email"))
		b.typeInto("password", e2e.Password)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.awaitHeading("Protect your account")
		b.pressEnterOn("a[href='#/mfa/setup/google-authenticator']")
		b.awaitHeading("Set up your authenticator")
		b.pressEnterOn("summary")
		b.awaitTrue("document.querySelector('details').open")
		key := b.readQRCode()
		b.typeInto("code", totpCode(t, key, time.Now()))
		b.pressEnterOn("button[type=submit]")
		shop.awaitCallback(b, "AUTHENTICATED", account.Href())
	})
	t.Run("to use a telephone", func(t *testing.T) {
		account, b := client.Register(t, shop.Application.Link(t, "accounts")), openBrowser(t)
		shop.openLogin(b, e2e.Object{"require_mfa": []string{"sms"}})
		b.awaitHeading("Sign in")
		b.typeInto("login", account.Text("email"))
		b.typeInto("password", e2e.Password)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.awaitHeading("Your phone number")
		number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
		b.typeInto("tel", number)
		b.pressEnterOn("button[type=submit]")
		first := awaitTextCode(t, number, "")
		b.awaitTrue("document.querySelector('input[name=code]') !== null")
		b.pressEnterOn("Send another code")
		again := awaitTextCode(t, number, first)
		b.awaitTrue("document.body.innerText.includes('We sent another code.')") // a message can come before the answer to the page
		b.typeInto("code", again)
		b.pressEnterOn("button[type=submit]")
		shop.awaitCallback(b, "AUTHENTICATED", account.Href())
	})
}
