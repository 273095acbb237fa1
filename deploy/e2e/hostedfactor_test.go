package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// enrolAuthenticator enrols an authenticator by the page and returns its key URI.
func (p *hostedPage) enrolAuthenticator(account e2e.Object) (keyURI, challenges string) {
	p.Helper()
	factor := p.object(http.StatusCreated, http.MethodPost, account.Link(p.T, "factors"), e2e.Object{"type": "google-authenticator", "issuer": "Shop"})
	if factor.Text("base64QRImage") == "" || factor.Text("secret") == "" {
		p.Errorf("the factor is %v", factor)
	}
	return factor.Text("keyUri"), factor.Link(p.T, "challenges")
}

func TestAHostedLoginWithASecondFactor(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	attempts, factors := fixture.Application.Link(t, "loginAttempts"), account.Link(t, "factors")
	anyFactor := e2e.Object{"require_mfa": []string{"SMS", "google-authenticator"}}
	password := func(t *testing.T, browser *e2e.Client, changes e2e.Object) *hostedPage {
		t.Helper()
		page := begin(t, browser, fixture.Application, changes, "/")
		body := page.object(http.StatusOK, http.MethodPost, attempts, loginBody(account.Text("email"), e2e.Password))
		if body.Link(t, "account") != account.Href() || page.claims().Object("scope").Object("account")[account.ID()] == nil {
			t.Errorf("the password step is answered with %v, claims %v", body, page.claims())
		}
		return page
	}
	plain := client.Browser()
	signIn(t, plain, fixture.Application, account.Text("email"))

	first := client.Browser()
	page := password(t, first, anyFactor)
	if items := page.object(http.StatusOK, http.MethodGet, factors, nil).Items(t); len(items) != 0 {
		t.Errorf("the factors are %v", items)
	}
	keyURI, challenges := page.enrolAuthenticator(account)
	wrong := page.object(http.StatusCreated, http.MethodPost, challenges, e2e.Object{"code": wrongCode(totpCode(t, keyURI, time.Now()))})
	if wrong.Text("status") != "FAILED" {
		t.Errorf("a wrong code is %v", wrong)
	}
	// The code of half a minute ago is accepted; the one of now is kept for the next login.
	if right := page.object(http.StatusCreated, http.MethodPost, challenges, e2e.Object{"code": respelled(oneTimeCode, totpCode(t, keyURI, time.Now().Add(-30*time.Second)))}); right.Text("status") != "SUCCESS" {
		t.Fatalf("the right code is %v", right)
	}
	checkAssertion(t, page.finishLogin(), "AUTHENTICATED", account.Href())
	checkAssertion(t, redirectAssertion(t, first, ssoRequest(hostedRequest(t, fixture.Application, anyFactor))), "AUTHENTICATED", account.Href())

	t.Run("a session without the second step must pass it", func(t *testing.T) {
		page := begin(t, plain, fixture.Application, anyFactor, "/")
		if page.claims().Object("scope").Object("account")[account.ID()] == nil {
			t.Errorf("the claims are %v", page.claims())
		}
		redirectAssertion(t, plain, ssoRequest(hostedRequest(t, fixture.Application, nil)))
	})
	t.Run("a client that knows the password alone cannot enrol another factor", func(t *testing.T) {
		page := password(t, client.Browser(), anyFactor)
		page.call(http.StatusForbidden, http.MethodPost, factors, e2e.Object{"type": "google-authenticator"})
		page.call(http.StatusForbidden, http.MethodPost, factors, e2e.Object{"type": "sms", "phone": e2e.Object{"number": "+12675550100"}})
		for _, each := range page.object(http.StatusOK, http.MethodGet, factors, nil).Items(t) {
			if each["secret"] != nil || each["keyUri"] != nil || each["base64QRImage"] != nil {
				t.Errorf("the factor is %v", each)
			}
		}
	})
	t.Run("a code by text message", func(t *testing.T) {
		number := enrolPhone(t, account)
		before := awaitTextCode(t, number, "")
		page := password(t, client.Browser(), e2e.Object{"require_mfa": []string{"sms"}})
		page.call(http.StatusForbidden, http.MethodPost, challenges, e2e.Object{"code": "123456"})
		var phone e2e.Object
		for _, each := range page.object(http.StatusOK, http.MethodGet, factors, nil).Items(t) {
			if each.Text("type") == "SMS" {
				phone = each
			}
		}
		if phone.Object("phone").Text("number") != number {
			t.Fatalf("the phone is %v", phone)
		}
		page.object(http.StatusCreated, http.MethodPost, phone.Link(t, "challenges"), nil)
		former := awaitTextCode(t, number, before)
		again := page.object(http.StatusCreated, http.MethodPost, phone.Link(t, "challenges"), e2e.Object{})
		code := awaitTextCode(t, number, former)
		if failed := page.object(http.StatusOK, http.MethodPost, again.Href(), e2e.Object{"code": wrongCode(code)}); failed.Text("status") != "FAILED" || page.back != "" {
			t.Errorf("a wrong code is %v", failed)
		}
		if right := page.object(http.StatusOK, http.MethodPost, again.Href(), e2e.Object{"code": respelled(oneTimeCode, code)}); right.Text("status") != "SUCCESS" {
			t.Errorf("the right code is %v", right)
		}
		page.finishLogin()
	})
	t.Run("a page that went back starts with the password again", func(t *testing.T) {
		page := begin(t, client.Browser(), fixture.Application, anyFactor, "/")
		before := page.token
		page.object(http.StatusOK, http.MethodPost, attempts, loginBody(account.Text("email"), e2e.Password))
		page.token = before
		page.call(http.StatusForbidden, http.MethodGet, factors, nil)
	})
}
