package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestAHostedRegistration(t *testing.T) {
	fixture := newHosted(t)
	email := e2e.Unique("new") + "@example.test"
	browser := client.Browser()
	page := begin(t, browser, fixture.Application, e2e.Object{"path": "/#/register"}, "/register")
	page.refused(400, 2007, http.MethodPost, fixture.Application.Link(t, "accounts"), e2e.Object{"email": email, "password": "x"})
	page.call(http.StatusNoContent, http.MethodPost, fixture.Application.Link(t, "accounts"), e2e.Object{"email": email, "password": e2e.Password, "givenName": nil, "surname": nil})
	account := checkAssertion(t, page.finishLogin(), "REGISTERED", client.Get(t, fixture.Directory.Link(t, "accounts")).Items(t)[0].Href()).Text("sub")
	if got := client.Get(t, account); got.Text("email") != email {
		t.Errorf("the account is %v", got)
	}
	checkAssertion(t, redirectAssertion(t, browser, ssoRequest(hostedRequest(t, fixture.Application, nil))), "AUTHENTICATED", account)

	t.Run("where addresses are confirmed the user waits, a taken one too", func(t *testing.T) {
		client.Update(t, fixture.Directory.Link(t, "accountCreationPolicy"), e2e.Object{"verificationEmailStatus": "ENABLED"})
		pending := e2e.Unique("new") + "@example.test"
		for _, each := range []string{pending, email} {
			page := begin(t, client.Browser(), fixture.Application, e2e.Object{"path": "/register"}, "/register")
			answer := page.call(http.StatusAccepted, http.MethodPost, fixture.Application.Link(t, "accounts"), e2e.Object{"email": each, "password": e2e.Password})
			if len(answer.Body) > 0 {
				t.Errorf("the registration is answered with %s", answer)
			}
		}
		reminder := client.AwaitMailWith(t, email, "You already have an account")
		if !strings.Contains(reminder.Text, client.Key.HostURL()+"/passwordReset?sptoken=") || !strings.Contains(reminder.HTML, "<html lang=") {
			t.Errorf("the mail to the owner of the taken email says:\n%s\n%s", reminder.Text, reminder.HTML)
		}
		token, err := client.AwaitMail(t, pending).Sptoken()
		if err != nil {
			t.Fatal(err)
		}
		page := begin(t, client.Browser(), fixture.Application, e2e.Object{"path": "/#/verify", "sp_token": token}, "/verify")
		if page.claims().Text("sp_token") != token {
			t.Errorf("the claims are %v", page.claims())
		}
		page.call(http.StatusOK, http.MethodPost, client.Key.HostURL()+"//v1/accounts/emailVerificationTokens/"+token, nil)
		page.refused(404, 404, http.MethodPost, client.Key.BaseURL+"/accounts/emailVerificationTokens/"+token, nil)
		page.logIn(pending)
		page.finishLogin()
	})
}

// What users may write into their customData when they register themselves is the administrator's
// to say: applications trust it as a plan or a role.
func TestCustomDataOfARegistration(t *testing.T) {
	fixture := newHosted(t)
	client.Update(t, fixture.Directory.Link(t, "accountCreationPolicy"), e2e.Object{"registrationCustomData": []string{"shoe"}})
	accounts := fixture.Application.Link(t, "accounts")
	body := func(data e2e.Object) e2e.Object {
		return e2e.Object{"email": e2e.Unique("new") + "@example.test", "password": e2e.Password, "givenName": "Jo", "surname": "Doe", "customData": data}
	}
	api := openClientAPI(t, fixture.Application)
	refused := api.object(http.StatusBadRequest, post("/register", body(e2e.Object{"shoe": 43, "role": "admin"})))
	if refused.Text("message") != "customData.role is not a field of a registration." {
		t.Errorf("the refusal is %v", refused)
	}
	made := api.object(http.StatusOK, post("/register", body(e2e.Object{"shoe": 43}))).Object("account")
	if shoe := client.Get(t, made.Href()+"/customData").Number(t, "shoe"); shoe != 43 {
		t.Errorf("the shoe is %d", shoe)
	}
	page := begin(t, client.Browser(), fixture.Application, e2e.Object{"path": "/#/register"}, "/register")
	page.refused(400, 2015, http.MethodPost, accounts, body(e2e.Object{"role": "admin"}))
	page.call(http.StatusNoContent, http.MethodPost, accounts, body(e2e.Object{"shoe": 43}))
	client.Create(t, accounts, body(e2e.Object{"role": "admin"})) // with an API key
}

func TestAHostedPasswordReset(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email, tokens := account.Text("email"), fixture.Application.Link(t, "passwordResetTokens")
	other := client.Browser()
	signIn(t, other, fixture.Application, email)

	page := begin(t, client.Browser(), fixture.Application, e2e.Object{"path": "/forgot"}, "/forgot")
	for _, each := range []string{e2e.Unique("nobody") + "@example.test", email} {
		if answer := page.call(http.StatusOK, http.MethodPost, tokens, e2e.Object{"email": each}); string(answer.Body) != "{}" {
			t.Errorf("the request for a reset is answered with %s", answer)
		}
	}
	token, err := client.AwaitMail(t, email).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	page = begin(t, client.Browser(), fixture.Application, e2e.Object{"path": "/#/reset", "sp_token": token}, "/reset")
	page.refused(404, 404, http.MethodGet, tokens+"/"+token+"x", nil)
	at := page.object(http.StatusOK, http.MethodGet, tokens+"/"+token, nil).Href()
	page.refused(400, 2007, http.MethodPost, at, e2e.Object{"password": "x"})
	page.call(http.StatusOK, http.MethodPost, at, e2e.Object{"password": newPassword})
	page.refused(404, 404, http.MethodPost, at, e2e.Object{"password": newPassword + "2"})
	awaitNoSession(t, other, fixture.Application)
	page.call(http.StatusNoContent, http.MethodPost, fixture.Application.Link(t, "loginAttempts"), loginBody(email, newPassword))
	page.finishLogin()
}
