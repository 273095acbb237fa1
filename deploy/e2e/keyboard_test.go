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

// reach moves the focus with the Tab key to what a CSS selector or the text of a link
// or button names. The focus must be visible there.
func (b *browser) reach(what string) {
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
	b.Fatalf("the Tab key does not reach %s: %s", what, b.shown())
}

// enter types a text into the field of a name.
func (b *browser) enter(name, text string) {
	b.Helper()
	b.reach("input[name='" + name + "']")
	b.do(chromedp.KeyEvent(text))
}

// press reaches a link or button and presses the Enter key.
func (b *browser) press(what string) {
	b.Helper()
	b.reach(what)
	b.do(chromedp.KeyEvent(kb.Enter))
}

func TestTheKeyboardAloneIsEnough(t *testing.T) {
	shop := newShop(t)
	client.Update(t, shop.Application.Href(), e2e.Object{"name": e2e.Unique("Otter Outfitters")})

	t.Run("to register and to sign in", func(t *testing.T) {
		b, email := openBrowser(t), e2e.Unique("new")+"@example.test"
		shop.begin(b, nil)
		b.heading("Sign in")
		b.press("Create one")
		b.heading("Create your account")
		b.enter("givenName", "Jo")
		b.enter("surname", "Doe")
		b.enter("email", email)
		b.enter("password", e2e.Password)
		b.press("button[type=submit]")
		shop.back(b, "REGISTERED", "")

		b = openBrowser(t)
		shop.begin(b, nil)
		b.heading("Sign in")
		b.enter("username", email)
		b.enter("password", e2e.Password)
		b.press(".toggle")
		b.until("document.querySelector('input[name=password]').type === 'text'")
		b.press("button[type=submit]")
		shop.back(b, "AUTHENTICATED", "")
	})
	t.Run("to choose a new password", func(t *testing.T) {
		account := client.Register(t, shop.Application.Link(t, "accounts"))
		b := openBrowser(t)
		shop.begin(b, nil)
		b.heading("Sign in")
		b.press("Forgot your password?")
		b.heading("Reset your password")
		b.enter("email", account.Text("email"))
		b.do(chromedp.KeyEvent(kb.Enter)) // of a form with one field
		mail := client.AwaitMail(t, account.Text("email"))
		b.open(linkInMail.FindString(mail.Text))
		b.heading("Choose a new password")
		b.do(chromedp.KeyEvent(newPassword)) // the first field has the focus
		b.enter("again", newPassword)
		b.press("button[type=submit]")
		b.heading("Your password is changed")
	})
	t.Run("to use an authenticator", func(t *testing.T) {
		account, b := client.Register(t, shop.Application.Link(t, "accounts")), openBrowser(t)
		shop.begin(b, e2e.Object{"require_mfa": []string{"sms", "google-authenticator"}})
		b.heading("Sign in")
		b.enter("username", account.Text("email"))
		b.enter("password", e2e.Password)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.heading("Protect your account")
		b.press("a[href='#/mfa/setup/google-authenticator']")
		b.heading("Set up your authenticator")
		b.press("summary")
		b.until("document.querySelector('details').open")
		key := b.scan()
		b.enter("code", oneTime(t, key, time.Now()))
		b.press("button[type=submit]")
		shop.back(b, "AUTHENTICATED", account.Href())
	})
	t.Run("to use a telephone", func(t *testing.T) {
		account, b := client.Register(t, shop.Application.Link(t, "accounts")), openBrowser(t)
		shop.begin(b, e2e.Object{"require_mfa": []string{"sms"}})
		b.heading("Sign in")
		b.enter("username", account.Text("email"))
		b.enter("password", e2e.Password)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.heading("Your phone number")
		number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
		b.enter("tel", number)
		b.press("button[type=submit]")
		first := codeSentTo(t, number, "")
		b.until("document.querySelector('input[name=code]') !== null")
		b.press("Send another code")
		again := codeSentTo(t, number, first)
		b.until("document.body.innerText.includes('We sent another code.')") // a message can come before the answer to the page
		b.enter("code", again)
		b.press("button[type=submit]")
		shop.back(b, "AUTHENTICATED", account.Href())
	})
}
