package e2e_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

var linkInMail = regexp.MustCompile(`https://\S+sptoken=[A-Za-z0-9._%-]+`)

// page asks for a page as a browser does, which has no API key.
func page(method, address string, form url.Values) e2e.Request {
	request := e2e.Request{Method: method, URL: address, Anonymous: true}
	if form != nil {
		request.Body = form
	}
	return request
}

// fieldsOf returns what the form of a page would send.
func fieldsOf(html string) url.Values {
	values := url.Values{}
	for _, field := range regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		values.Set(field[1], field[2])
	}
	return values
}

// follow opens the link of the mail to an address and returns the link and what
// the page's form would send.
func follow(t *testing.T, email, below string) (string, url.Values) {
	t.Helper()
	mail := client.AwaitMail(t, email)
	address := linkInMail.FindString(mail.Text)
	if !strings.HasPrefix(address, client.Key.HostURL()+below+"?") {
		t.Fatalf("the link is %q in the mail:\n%s", address, mail.Text)
	}
	client.Want(t, http.StatusOK, page(http.MethodHead, address, nil))
	shown := client.Want(t, http.StatusOK, page(http.MethodGet, address, nil))
	return address, fieldsOf(string(shown.Body))
}

func TestTheLinkOfAVerificationMailLeadsToAPageThatConfirms(t *testing.T) {
	fixture := client.NewVerificationFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	address, form := follow(t, account.Text("email"), "/emailVerificationTokens")
	if status := client.Get(t, account.Href()).Text("emailVerificationStatus"); status != "UNVERIFIED" {
		t.Fatalf("a page that was only looked at made the email %s", status)
	}
	client.Want(t, http.StatusForbidden, e2e.Request{Method: http.MethodPost, URL: address, Anonymous: true, Body: form, Header: http.Header{"Origin": {"https://evil.example"}}})
	client.Want(t, http.StatusOK, page(http.MethodPost, address, form))
	client.Want(t, http.StatusNotFound, page(http.MethodPost, address, form))
	if proven := client.Get(t, account.Href()); proven.Text("status") != "ENABLED" || proven.Text("emailVerificationStatus") != "VERIFIED" {
		t.Errorf("the account is %v", proven)
	}
	client.Want(t, http.StatusOK, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
}

func TestTheLinkOfAResetMailLeadsToAPageThatSetsThePassword(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")
	client.Want(t, http.StatusOK, post(fixture.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": email}))
	address, form := follow(t, email, "/passwordReset")
	send := func(password string) url.Values {
		return url.Values{"sptoken": form["sptoken"], "password": {password}, "again": {password}}
	}
	client.Want(t, http.StatusBadRequest, page(http.MethodPost, address, send("different")))
	client.Want(t, http.StatusOK, e2e.Login(fixture.Application, email, e2e.Password))
	client.Want(t, http.StatusOK, page(http.MethodPost, address, send(newPassword)))
	client.Want(t, http.StatusNotFound, page(http.MethodPost, address, send("Different2!")))
	client.Want(t, http.StatusOK, e2e.Login(fixture.Application, email, newPassword))
	client.Refused(t, 400, 7100, e2e.Login(fixture.Application, email, e2e.Password))
}
