package e2e_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// mailsTo returns the subjects of the messages to an address, oldest first.
func mailsTo(t *testing.T, address string) (subjects []string) {
	t.Helper()
	messages, err := client.Mailbox(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range messages {
		if message.SentTo(address) {
			subjects = append([]string{message.Subject}, subjects...)
		}
	}
	return subjects
}

func TestEveryWorkflowHasItsMailAndNoneThatIsOff(t *testing.T) {
	fixture := client.NewFixture(t)
	accounts, creation := fixture.Application.Link(t, "accounts"), fixture.Directory.Link(t, "accountCreationPolicy")
	password := fixture.Directory.Link(t, "passwordPolicy")
	resets := fixture.Application.Link(t, "passwordResetTokens")

	silent := client.Register(t, accounts).Text("email")
	client.Update(t, creation, e2e.Object{"welcomeEmailStatus": "enabled"})
	welcomed := client.Register(t, accounts).Text("email")
	quiet := client.Register(t, accounts+"?registrationWorkflowEnabled=false").Text("email")
	client.AwaitMailWith(t, welcomed, "Your registration was successful")

	client.Update(t, creation, e2e.Object{"verificationEmailStatus": "ENABLED", "verificationSuccessEmailStatus": "ENABLED"})
	proven := client.Register(t, accounts).Text("email")
	token, err := client.AwaitMailWith(t, proven, "Verify your account").Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	if got := mailsTo(t, proven); len(got) != 1 {
		t.Errorf("before the proof the mails are %q", got)
	}
	client.Want(t, http.StatusOK, verify(token))
	client.AwaitMailWith(t, proven, "Your account has been confirmed")
	client.AwaitMailWith(t, proven, "Your registration was successful")

	client.Want(t, http.StatusOK, post(resets, e2e.Object{"email": welcomed}))
	if token, err = client.AwaitMailWith(t, welcomed, "Reset your Password").Sptoken(); err != nil {
		t.Fatal(err)
	}
	client.Want(t, http.StatusOK, post(resets+"/"+token, e2e.Object{"password": newPassword}))
	client.AwaitMailWith(t, welcomed, "Your password has been changed")

	client.Update(t, password, e2e.Object{"resetEmailStatus": "DISABLED", "resetSuccessEmailStatus": "DISABLED"})
	reset := client.WantObject(t, http.StatusOK, post(resets, e2e.Object{"email": silent})).Href()
	client.Want(t, http.StatusOK, post(reset, e2e.Object{"password": newPassword}))

	// A mail that was asked for later shows that the others had their chance.
	client.AwaitMail(t, client.Register(t, accounts).Text("email"))
	for address, want := range map[string]int{silent: 0, quiet: 0, welcomed: 3, proven: 3} {
		if got := mailsTo(t, address); len(got) != want {
			t.Errorf("%s got the mails %q", address, got)
		}
	}
}

func TestAMailSpeaksOfCustomDataAndOfItsLifetime(t *testing.T) {
	fixture := client.NewFixture(t)
	client.Update(t, fixture.Application.Href()+"/customData", e2e.Object{"support": "help@shop.example.test", "limits": e2e.Object{"a": 1}})
	client.Update(t, fixture.Directory.Href()+"/customData", e2e.Object{"town": "Berlin"})
	policy := client.Update(t, fixture.Directory.Link(t, "passwordPolicy"), e2e.Object{"resetTokenTtl": 3})
	account := client.Create(t, fixture.Application.Link(t, "accounts"), e2e.Object{
		"email": e2e.Unique("jo") + "@example.test", "password": e2e.Password, "customData": e2e.Object{"plan": "gold", "seats": 12},
	})
	ask := post(fixture.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")})
	client.Want(t, http.StatusOK, ask)
	if mail := client.AwaitMail(t, account.Text("email")); !strings.Contains(mail.Text, "The link works for 3 hours.") {
		t.Errorf("the default mail says:\n%s", mail.Text)
	}
	template := client.All(t, policy.Link(t, "resetEmailTemplates"))[0]
	client.Update(t, template.Href(), e2e.Object{
		"textBody": "$!{url}\n[${account.customData.plan}|$!{account.customData.seats}|$!{account.customData.none}|$!{account.directory.customData.town}|" +
			"$!{application.customData.support}|$!{application.customData.limits}|${application.customData.none}]",
	})
	client.Want(t, http.StatusOK, ask)
	client.AwaitMailWith(t, account.Text("email"), "[gold|12||Berlin|help@shop.example.test||${application.customData.none}]")
}

func TestNoHeaderChangesTheLinkOfAMail(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	request := post(fixture.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")})
	request.Header = http.Header{
		"X-Forwarded-Host": {"evil.example"}, "Forwarded": {"host=evil.example;proto=http"}, "X-Forwarded-Proto": {"https"},
		"X-Original-Host": {"evil.example"}, "X-Host": {"evil.example"}, "Origin": {"https://evil.example"}, "Referer": {"https://evil.example/"},
	}
	client.Want(t, http.StatusOK, request)
	mail := client.AwaitMail(t, account.Text("email"))
	if strings.Contains(mail.Raw, "evil.example") || !strings.Contains(mail.Text, client.Key.HostURL()+"/passwordReset?sptoken=") {
		t.Errorf("the mail says:\n%s", mail.Raw)
	}
}

// An attacker who knows an email address cannot flood its mailbox (rate limit of mails): the
// answers stay the same, and no further mails are sent.
func TestStrangersSendFewMailsToAUser(t *testing.T) {
	const asked, sent = 20, 10
	fixture := newHosted(t)
	client.Update(t, fixture.Directory.Link(t, "accountCreationPolicy"), e2e.Object{"verificationEmailStatus": "ENABLED"})
	email := client.Register(t, fixture.Application.Link(t, "accounts")).Text("email")
	resets, api := fixture.Application.Link(t, "passwordResetTokens"), openClientAPI(t, fixture.Application)
	page := begin(t, client.Browser(), fixture.Application, e2e.Object{"path": "/forgot"}, "/forgot")
	for range asked / 2 {
		api.empty(post("/forgot", e2e.Object{"login": email}))
		api.empty(post("/verify", e2e.Object{"login": email}))
		if answer := page.call(http.StatusOK, http.MethodPost, resets, e2e.Object{"email": email}); string(answer.Body) != "{}" {
			t.Errorf("the request for a reset is answered with %s", answer)
		}
		api.empty(post("/verify", e2e.Object{"login": email}))
	}
	// The tenant's own request sends a mail still, and the mails of one account are in
	// order: that of its use is the last.
	reset := client.WantObject(t, http.StatusOK, post(resets, e2e.Object{"email": email})).Href()
	client.Want(t, http.StatusOK, post(reset, e2e.Object{"password": newPassword}))
	client.AwaitMailWith(t, email, "Your password has been changed")
	got := map[string]int{}
	for _, subject := range mailsTo(t, email) {
		got[subject]++
	}
	want := map[string]int{"Verify your account": sent + 1, "Reset your Password": sent + 1, "Your password has been changed": 1}
	if !maps.Equal(got, want) {
		t.Errorf("the mails are %v, want %v", got, want)
	}
}
