package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestAnApplicationWithADirectoryLogsItsAccountsIn(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")

	t.Run("the account is complete", func(t *testing.T) {
		for field, want := range map[string]string{
			"username": email, "givenName": "Jo", "surname": "Doe", "fullName": "Jo Doe",
			"status": "ENABLED", "emailVerificationStatus": "UNVERIFIED",
		} {
			if got := account.Text(field); got != want {
				t.Errorf("%s is %q, want %q", field, got, want)
			}
		}
		if _, told := account["password"]; told {
			t.Error("the account has a password")
		}
		if home := account.Link(t, "directory"); home != fixture.Directory.Href() {
			t.Errorf("the account lives in %s, want %s", home, fixture.Directory.Href())
		}
		if read := client.Get(t, account.Href()); read.Text("email") != email {
			t.Errorf("read again, the email is %q", read.Text("email"))
		}
		if all := client.All(t, fixture.Application.Link(t, "accounts")); len(all) != 1 || all[0].Href() != account.Href() {
			t.Errorf("the application lists %d accounts, want this one", len(all))
		}
	})
	t.Run("by email, in any case", func(t *testing.T) {
		for _, login := range []string{email, strings.ToUpper(email)} {
			answer := client.Want(t, http.StatusOK, e2e.Login(fixture.Application, login, e2e.Password))
			if location := answer.Header.Get("Location"); location != account.Href() {
				t.Errorf("Location is %q, want %q", location, account.Href())
			}
			body, err := answer.Object()
			if err != nil {
				t.Fatal(err)
			}
			if body.Link(t, "account") != account.Href() || len(body.Object("account")) != 1 {
				t.Errorf("want a link to the account: %s", answer)
			}
		}
	})
	t.Run("expanded", func(t *testing.T) {
		request := e2e.Login(fixture.Application, email, e2e.Password)
		request.URL += "?expand=account"
		body := client.WantObject(t, http.StatusOK, request)
		if got := body.Object("account").Text("email"); got != email {
			t.Errorf("the expanded account has the email %q", got)
		}
	})
	t.Run("a wrong password and an unknown login read the same", func(t *testing.T) {
		wrong := client.Refused(t, 400, 7100, e2e.Login(fixture.Application, email, "Wrong1234"))
		unknown := client.Refused(t, 400, 7104, e2e.Login(fixture.Application, "nobody@example.test", e2e.Password))
		if wrong.Text("message") != unknown.Text("message") {
			t.Errorf("a user can tell them apart: %q and %q", wrong.Text("message"), unknown.Text("message"))
		}
	})
	t.Run("attempts that make no sense", func(t *testing.T) {
		attempts := fixture.Application.Link(t, "loginAttempts")
		for name, c := range map[string]struct {
			body e2e.Object
			code int
		}{
			"no Base64":    {e2e.Object{"type": "basic", "value": "%%%"}, 2006},
			"no colon":     {e2e.Object{"type": "basic", "value": "am8="}, 2006},
			"another type": {e2e.Object{"type": "digest", "value": "am86eA=="}, 2003},
			"no value":     {e2e.Object{"type": "basic"}, 2000},
			"no type":      {e2e.Object{"value": "am86eA=="}, 2000},
		} {
			t.Run(name, func(t *testing.T) { client.Refused(t, 400, c.code, post(attempts, c.body)) })
		}
	})
	t.Run("the same email twice is a conflict", func(t *testing.T) {
		client.Refused(t, http.StatusConflict, 2001,
			post(fixture.Directory.Link(t, "accounts"), e2e.Object{"email": strings.ToUpper(email), "password": e2e.Password}))
	})
	t.Run("a weak password is refused", func(t *testing.T) {
		for password, code := range map[string]int{"Short1": 2007, "alllower1": 400, "ALLUPPER1": 400, "NoNumber": 400} {
			client.Refused(t, 400, code,
				post(fixture.Directory.Link(t, "accounts"), e2e.Object{"email": e2e.Unique("weak") + "@example.test", "password": password}))
		}
	})
}

// White space around a login name, and its letter case, make no other name of it, at whatever door it comes.
func TestALoginNameIsReadAlikeAtEveryDoor(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")
	api := openClientAPI(t, fixture.Application)
	doors := map[string]func(login string){
		"login attempts": func(login string) { client.Want(t, 200, e2e.Login(fixture.Application, login, e2e.Password)) },
		"a grant": func(login string) {
			client.Want(t, 200, post(fixture.Application.Href()+"/oauth/token", passwordGrant(login, e2e.Password)))
		},
		"a grant of the Client API": func(login string) {
			api.want(200, post("/oauth/token", passwordGrant(login, e2e.Password)))
		},
		"a login of the Client API": func(login string) {
			api.want(200, post("/login", e2e.Object{"login": login, "password": e2e.Password}))
		},
		"the hosted page": func(login string) { signIn(t, client.Browser(), fixture.Application, login) },
		"a password reset": func(login string) {
			tokens := fixture.Application.Link(t, "passwordResetTokens")
			reset := client.WantObject(t, 200, post(tokens, e2e.Object{"email": login}))
			if reset.Link(t, "account") != account.Href() {
				t.Errorf("a reset for %q is of %v", login, reset["account"])
			}
		},
		"a search": func(login string) {
			for _, name := range []string{"email", "username"} {
				found := client.Get(t, fixture.Directory.Link(t, "accounts")+"?"+name+"="+url.QueryEscape(login))
				if found.Number(t, "size") != 1 {
					t.Errorf("%s=%q finds %v", name, login, found["size"])
				}
			}
		},
	}
	for _, login := range []string{email + " ", "\t" + strings.ToUpper(email) + "\r\n", "\u00a0" + email + "\u2003"} {
		for what, enter := range doors {
			enter(login)
			if t.Failed() {
				t.Fatalf("%q is not read at %s", login, what)
			}
		}
	}
}

func TestWhoIsDisabledCannotLogIn(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	login := e2e.Login(fixture.Application, account.Text("email"), e2e.Password)
	client.Want(t, http.StatusOK, login)

	for _, c := range []struct {
		what string
		e2e.Object
		code int
	}{
		{"account", account, 7101},
		{"directory", fixture.Directory, 7106},
		{"application", fixture.Application, 7104},
	} {
		t.Run(c.what, func(t *testing.T) {
			if disabled := client.Update(t, c.Href(), e2e.Object{"status": "disabled"}); disabled.Text("status") != "DISABLED" {
				t.Fatalf("the status is %q", disabled.Text("status"))
			}
			client.Refused(t, 400, c.code, login)
			client.Update(t, c.Href(), e2e.Object{"status": "ENABLED"})
			client.Want(t, http.StatusOK, login)
		})
	}
	t.Run("a deleted account", func(t *testing.T) {
		client.Delete(t, account.Href())
		client.Refused(t, 400, 7104, login)
		client.Delete(t, account.Href())
	})
	t.Run("an application without stores", func(t *testing.T) {
		mapping := client.Get(t, fixture.Application.Href()).Link(t, "defaultAccountStoreMapping")
		client.Delete(t, mapping)
		client.Refused(t, 400, 5105, login)
		client.Refused(t, 400, 5100, post(fixture.Application.Link(t, "accounts"), e2e.Object{"email": "jo@example.test", "password": e2e.Password}))
	})
}
