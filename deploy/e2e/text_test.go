package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// Older clients compare the texts of some errors: docs/interface/errors.md#texts-that-clients-compare.
func TestTextsThatClientsCompareKeepTheirWording(t *testing.T) {
	const (
		notThere   = "The requested resource does not exist."
		noResource = "does not match a known resource"
		noAccount  = "Login attempt failed because there is no Account in the Application's associated Account Stores with the specified " +
			"username or email."
	)
	fixture := client.NewFixture(t)
	accounts, resets := fixture.Application.Link(t, "accounts"), fixture.Application.Link(t, "passwordResetTokens")
	account := client.Register(t, accounts)
	phones := account.Link(t, "phones")
	client.Create(t, phones, e2e.Object{"number": "+12675555555"})
	reset := post(resets, e2e.Object{"email": "nobody@example.test"})
	imported := func(password string) e2e.Object {
		return e2e.Object{"email": "import@example.test", "password": password}
	}
	other, deleted := client.Register(t, accounts), client.Register(t, accounts)
	client.Delete(t, deleted.Href())
	token := client.WantObject(t, http.StatusOK, post(resets, e2e.Object{"email": account.Text("email")}))
	person := func(email, username string) e2e.Object {
		return e2e.Object{"email": email, "username": username, "password": e2e.Password}
	}
	for _, c := range []struct {
		what         string
		status, code int
		request      e2e.Request
		member, text string
		part         bool // the text may be a part
	}{
		{"an unknown path", 404, 404, get(account.Href() + "/foobar"), "developerMessage", notThere, false},
		{"an unknown id", 404, 404, get(account.Href() + "0"), "message", notThere, true},
		{"an unknown id, to the developer", 404, 404, get(account.Href() + "0"), "developerMessage", notThere, false},
		{"what was deleted, to the developer", 404, 404, get(deleted.Href()), "developerMessage", notThere, false},
		{"a reset with an empty password", 400, 2000, post(token.Href(), e2e.Object{"password": ""}), "message",
			"account password is required; it cannot be null, empty, or blank.", false},
		{"a token of another text", 400, 10017, get(fixture.Application.Href() + "/authTokens/abc"), "developerMessage",
			"Token is invalid because verifying the signature of a JWT failed.", false},
		{"a revocation without a token", 400, 2000, post(fixture.Application.Href()+"/oauth/revoke", url.Values{"x": {"y"}}), "developerMessage",
			"token parameter is required; it cannot be null, empty, or blank.", false},
		{"an unknown client", 400, 10019, post(fixture.Application.Href()+"/oauth/token",
			url.Values{"grant_type": {"client_credentials"}, "client_id": {"x"}, "client_secret": {"y"}}), "developerMessage",
			"API Key Authentication failed because the API key or secret submitted is invalid.", false},
		{"a password reset that is none", 404, 404, get(resets + "/unknown"), "message",
			"This password reset request does not exist. Please request a new password reset.", false},
		{"an account without an email", 400, 2000, post(accounts, e2e.Object{"password": e2e.Password}), "message",
			"Account email address is required; it cannot be null, empty, or blank.", false},
		{"an account without a password", 400, 2000, post(accounts, e2e.Object{"email": "import@example.test"}), "message",
			"Account password is required; it cannot be null, empty, or blank.", false},
		{"an email that is there", 409, 2001, post(accounts, person(account.Text("email"), "another")), "message",
			"Account with that email already exists.  Please choose another email.", false},
		{"a user name that is there", 409, 2001, post(accounts, person("import@example.test", account.Text("username"))), "message",
			"Account with that username already exists.  Please choose another username.", false},
		{"an email that is there, by a change", 409, 2001, post(other.Href(), e2e.Object{"email": account.Text("email")}), "message",
			"Account with that email already exists.  Please choose another email.", false},
		{"a user name that is there, by a change", 409, 2001, post(other.Href(), e2e.Object{"username": account.Text("username")}), "message",
			"Account with that username already exists.  Please choose another username.", false},
		{"a password without a digit", 400, 400, post(accounts, imported("Changeme!")), "message",
			"Password requires at least 1 numeric character.", false},
		{"a password without a capital", 400, 400, post(accounts, imported("changeme1!")), "message",
			"Password requires at least 1 uppercase character.", false},
		{"a wrong password", 400, 7100, e2e.Login(fixture.Application, account.Text("email"), "Wrong1234"), "developerMessage",
			"Login attempt failed because the specified password is incorrect.", false},
		{"an unknown login", 400, 7104, e2e.Login(fixture.Application, "nobody@example.test", e2e.Password), "developerMessage",
			noAccount, false},
		{"a reset of an unknown login", 400, 2016, reset, "message", noResource, true},
		{"a reset of an unknown login, to the developer", 400, 2016, reset, "developerMessage", noResource, true},
		{"a hash that is none", 400, 2006, post(accounts+"?passwordFormat=mcf", imported("$INVALID$04$AAAA")), "message",
			"The imported password is in an invalid format.", false},
		{"a hash of another format", 400, 2105, post(accounts+"?passwordFormat=plain", imported("$2a$08$AAAA")), "message",
			"The imported password designates an algorithm that is an unsupported value.", false},
		{"a short password", 400, 2007, post(accounts, imported("a")), "message", "Account password minimum length not satisfied.", false},
		{"a short password, to the developer", 400, 2007, post(accounts, imported("a")), "developerMessage",
			"Account password minimum length not satisfied.", true},
		{"a phone that is there", 409, 13102, post(phones, e2e.Object{"number": "+12675555555"}), "message",
			"An existing phone with that number already exists for this Account.", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := client.Refused(t, c.status, c.code, c.request).Text(c.member)
			if got != c.text && !(c.part && strings.Contains(got, c.text)) {
				t.Errorf("%s is %q, want %q", c.member, got, c.text)
			}
		})
	}
}
