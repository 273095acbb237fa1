package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

const newPassword = "Different1!"

// sendConcurrently makes the same call so many times at once and returns the number of
// each status.
func sendConcurrently(t *testing.T, times int, request e2e.Request) map[int]int {
	t.Helper()
	statuses := map[int]int{}
	for _, answer := range concurrentAnswers(t, times, request) {
		statuses[answer.Status]++
	}
	return statuses
}

func concurrentAnswers(t *testing.T, times int, request e2e.Request) []e2e.Answer {
	t.Helper()
	answers := make([]e2e.Answer, times)
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range answers {
		group.Go(func() {
			<-start
			var err error
			if answers[i], err = client.Do(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	group.Wait()
	return answers
}

func TestAForgottenPasswordIsResetByMail(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")
	resets := fixture.Application.Link(t, "passwordResetTokens")

	made := client.WantObject(t, http.StatusOK, post(resets, e2e.Object{"email": strings.ToUpper(email)}))
	if made.Text("email") != email || made.Link(t, "account") != account.Href() {
		t.Errorf("the reset is %v", made)
	}
	mail := client.AwaitMail(t, email)
	if mail.Subject != "Reset your Password" || strings.Contains(mail.Text+mail.HTML, "!{") {
		t.Errorf("the mail %q says:\n%s", mail.Subject, mail.Text)
	}
	token, err := mail.Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	reset := resets + "/" + token
	if made.Href() != reset {
		t.Errorf("the mail has the token %q and the answer the address %q", token, made.Href())
	}

	t.Run("the token is read and stays", func(t *testing.T) {
		encoded := resets + "/" + strings.ReplaceAll(token, ".", "%2E")
		twice := resets + "/" + strings.ReplaceAll(token, ".", "%252E")
		for _, address := range []string{reset, encoded, twice} {
			if read := client.Get(t, address); read.Href() != reset || read.Text("email") != email {
				t.Errorf("read at %s it is %v", address, read)
			}
		}
		expanded := client.Get(t, reset+"?expand=account")
		if expanded.Object("account").Text("email") != email {
			t.Errorf("the expanded account is %v", expanded.Object("account"))
		}
	})
	t.Run("a refused password spends nothing", func(t *testing.T) {
		client.Refused(t, 400, 2007, post(reset, e2e.Object{"password": "Short1"}))
		client.Refused(t, 400, 400, post(reset, e2e.Object{"password": "different1!"}))
		client.Refused(t, 400, 2000, post(reset, e2e.Object{}))
		client.Want(t, http.StatusOK, e2e.Login(fixture.Application, email, e2e.Password))
	})
	another := client.WantObject(t, http.StatusOK, post(resets, e2e.Object{"email": email}))
	t.Run("of fifty tries one sets the password", func(t *testing.T) {
		statuses := sendConcurrently(t, 50, post(reset, e2e.Object{"password": newPassword}))
		if statuses[http.StatusOK] != 1 || statuses[http.StatusNotFound] != 49 {
			t.Errorf("fifty new passwords are answered with %v", statuses)
		}
	})
	t.Run("the old password is refused, the new one is good", func(t *testing.T) {
		client.Refused(t, 400, 7100, e2e.Login(fixture.Application, email, e2e.Password))
		client.Want(t, http.StatusOK, e2e.Login(fixture.Application, email, newPassword))
	})
	t.Run("every token of the account is spent", func(t *testing.T) {
		for _, address := range []string{reset, another.Href()} {
			client.Refused(t, 404, 404, e2e.Request{Method: http.MethodGet, URL: address})
			client.Refused(t, 404, 404, post(address, e2e.Object{"password": "Different2!"}))
		}
	})
	t.Run("a mail confirms it", func(t *testing.T) {
		client.AwaitMailWith(t, email, "Your password has been changed")
	})
}

func TestAPasswordThatWasUsedIsRefused(t *testing.T) {
	fixture := client.NewFixture(t)
	strength := client.Get(t, client.Get(t, fixture.Directory.Link(t, "passwordPolicy")).Link(t, "strength")).Href()
	client.Update(t, strength, e2e.Object{"preventReuse": 2})
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	statuses := sendConcurrently(t, 2, post(account.Href(), e2e.Object{"password": newPassword}))
	if statuses[http.StatusOK] != 1 || statuses[http.StatusBadRequest] != 1 {
		t.Errorf("two changes to one password at once are answered with %v", statuses)
	}
	reset := client.WantObject(t, http.StatusOK, post(fixture.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")}))
	for _, used := range []string{e2e.Password, newPassword} {
		client.Refused(t, 400, 6401, post(account.Href(), e2e.Object{"password": used}))
		client.Refused(t, 400, 6401, post(reset.Href(), e2e.Object{"password": used}))
	}
	client.Want(t, http.StatusOK, post(reset.Href(), e2e.Object{"password": "Different2!"}))
	client.Update(t, account.Href(), e2e.Object{"password": e2e.Password})
}

func TestAResetTokenIsVoidAfterAChange(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	resets := fixture.Application.Link(t, "passwordResetTokens")
	for _, change := range []e2e.Object{{"password": newPassword}, {"email": e2e.Unique("jo") + "@example.test"}} {
		made := client.WantObject(t, http.StatusOK, post(resets, e2e.Object{"email": client.Get(t, account.Href()).Text("email")}))
		client.Get(t, made.Href())
		client.Update(t, account.Href(), change)
		client.Refused(t, 404, 404, e2e.Request{Method: http.MethodGet, URL: made.Href()})
		client.Refused(t, 404, 404, post(made.Href(), e2e.Object{"password": "Different2!"}))
	}
}

func TestNoResetForWhoIsNotThere(t *testing.T) {
	fixture, stranger := client.NewFixture(t), client.NewFixture(t)
	email := client.Register(t, stranger.Application.Link(t, "accounts")).Text("email")
	resets := fixture.Application.Link(t, "passwordResetTokens")
	client.Refused(t, 400, 2016, post(resets, e2e.Object{"email": email}))
	client.Refused(t, 400, 5114, post(resets, e2e.Object{"email": email, "accountStore": e2e.Object{"href": stranger.Directory.Href()}}))
	client.Refused(t, 400, 2014, post(resets, e2e.Object{"email": email, "accountStore": e2e.Object{"href": fixture.Application.Href()}}))
	client.Refused(t, 404, 404, e2e.Request{Method: http.MethodGet, URL: resets + "/eyJhbGciOiJub25lIn0.e30."})
}

func TestAVerificationMailIsSentAgain(t *testing.T) {
	fixture := client.NewVerificationFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email := account.Text("email")
	former, err := client.AwaitMail(t, email).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	again := post(fixture.Application.Link(t, "verificationEmails"), e2e.Object{"login": email})
	if answer := client.Want(t, http.StatusAccepted, again); len(answer.Body) != 0 {
		t.Errorf("the request for a verification mail is answered with a body: %s", answer)
	}
	link := client.Get(t, account.Href()).Link(t, "emailVerificationToken")
	token := link[strings.LastIndexByte(link, '/')+1:]
	if token != former {
		t.Errorf("the account has the token %s, want that of the first mail, %s", token, former)
	}
	err = e2e.AwaitFor(t.Context(), e2e.MailLimit, "two mails with the token", func(ctx context.Context) error {
		messages, err := client.Mailbox(ctx, url.Values{"to": {email}})
		if err == nil && len(messages) < 2 {
			err = fmt.Errorf("the account got %d mails", len(messages))
		}
		for _, message := range messages {
			if !strings.Contains(message.Text, token) {
				err = fmt.Errorf("a mail without the token: %s", message.Text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	client.Want(t, http.StatusOK, verify(former))
	client.Refused(t, 404, 404, verify(former))
	client.Want(t, http.StatusOK, e2e.Login(fixture.Application, email, e2e.Password))

	client.Want(t, http.StatusAccepted, again) // verified: nothing is sent
	client.Refused(t, 400, 2016, post(fixture.Application.Link(t, "verificationEmails"), e2e.Object{"login": "nobody@example.test"}))
	quiet := client.NewFixture(t)
	other := client.Register(t, quiet.Application.Link(t, "accounts")).Text("email")
	client.Refused(t, 400, 6101, post(quiet.Application.Link(t, "verificationEmails"), e2e.Object{"login": other}))
}
