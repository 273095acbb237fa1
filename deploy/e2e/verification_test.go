package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

func verify(token string) e2e.Request {
	return post("/accounts/emailVerificationTokens/"+url.PathEscape(token), nil)
}

func TestANewAccountProvesItsEmailAddress(t *testing.T) {
	for _, email := range []string{"verificationEmailStatus", "verificationSuccessEmailStatus", "welcomeEmailStatus"} {
		if status := client.Get(t, client.NewFixture(t).Directory.Link(t, "accountCreationPolicy")).Text(email); status != "DISABLED" {
			t.Errorf("a new directory has %s %q", email, status)
		}
	}
	fixture := client.NewVerificationFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")
	login := e2e.Login(fixture.Application, email, e2e.Password)

	if account.Text("status") != "UNVERIFIED" || account.Text("emailVerificationStatus") != "UNVERIFIED" {
		t.Fatalf("the account is %s and its email %s", account.Text("status"), account.Text("emailVerificationStatus"))
	}
	client.Refused(t, 400, 7102, login)

	mail := client.AwaitMail(t, email)
	if mail.Kind != "email" || mail.Subject == "" || mail.From == "" || mail.ReceivedAt == "" {
		t.Errorf("the mail lacks a part: %+v", mail)
	}
	if strings.Contains(mail.Text+mail.HTML+mail.Subject, "${") || strings.Contains(mail.Text+mail.HTML+mail.Subject, "$!{") {
		t.Errorf("the mail holds a macro that was not filled in:\n%s", mail.Text)
	}
	token, err := mail.Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	if link := account.Link(t, "emailVerificationToken"); link != client.Key.BaseURL+"/accounts/emailVerificationTokens/"+token {
		t.Errorf("the mail has the token %q and the account the link %q", token, link)
	}

	answer := client.Want(t, http.StatusOK, verify(token))
	body, err := answer.Object()
	if err != nil {
		t.Fatal(err)
	}
	if body.Href() != account.Href() || answer.Header.Get("Location") != account.Href() {
		t.Errorf("want the account's address in body and Location %q: %s", answer.Header.Get("Location"), answer)
	}
	proven := client.Get(t, account.Href())
	if proven.Text("status") != "ENABLED" || proven.Text("emailVerificationStatus") != "VERIFIED" || proven["emailVerificationToken"] != nil {
		t.Errorf("after the proof the account is %v", proven)
	}
	client.Want(t, http.StatusOK, login)
	client.Refused(t, 404, 404, verify(token))
	client.Refused(t, 404, 404, verify("0000000000000000000000"))
}

func TestATokenVerifiesOnceAmongFiftyTries(t *testing.T) {
	fixture := client.NewVerificationFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	token, err := client.AwaitMail(t, account.Text("email")).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	statuses := sendConcurrently(t, 50, verify(token))
	if statuses[http.StatusOK] != 1 || statuses[http.StatusNotFound] != 49 {
		t.Errorf("fifty verifications are answered with %v, want one 200 and the rest 404", statuses)
	}
}

func TestRegistrationCanBeQuiet(t *testing.T) {
	fixture := client.NewVerificationFixture(t)
	quiet := client.Register(t, fixture.Application.Link(t, "accounts")+"?registrationWorkflowEnabled=false")
	if quiet.Text("status") != "ENABLED" || quiet["emailVerificationToken"] != nil {
		t.Errorf("without the workflow the account is %s with the token %v", quiet.Text("status"), quiet["emailVerificationToken"])
	}
	// A mail for an account that was registered later shows that the quiet one
	// has had its chance.
	loud := client.Register(t, fixture.Application.Link(t, "accounts"))
	client.AwaitMail(t, loud.Text("email"))
	messages, err := client.Mailbox(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range messages {
		if message.SentTo(quiet.Text("email")) {
			t.Errorf("the quiet account got the mail %q", message.Subject)
		}
	}
}
