package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// enrolPhone adds a verified phone to an account and returns its number.
func enrolPhone(t *testing.T, account e2e.Object) string {
	t.Helper()
	number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
	before := lastTextCode(t, number) // of another test that has drawn the same number
	factor := client.Create(t, account.Link(t, "factors")+"?challenge=true&expand=mostRecentChallenge", e2e.Object{"type": "SMS", "phone": e2e.Object{"number": number}})
	client.Update(t, factor.Object("mostRecentChallenge").Href(), e2e.Object{"code": awaitTextCode(t, number, before)})
	return number
}

// lastTextCode returns the code of the newest text to a number, or "".
func lastTextCode(t *testing.T, number string) string {
	t.Helper()
	messages, err := client.Mailbox(t.Context(), url.Values{"to": {number}})
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) == 0 {
		return ""
	}
	return messages[0].Text[len(messages[0].Text)-6:]
}

// awaitTextCode waits for a text with another code than the one before.
func awaitTextCode(t *testing.T, number, before string) (code string) {
	t.Helper()
	err := e2e.AwaitFor(t.Context(), e2e.MailLimit, "a code to "+number, func(ctx context.Context) error {
		messages, err := client.Mailbox(ctx, url.Values{"to": {number}})
		if err != nil || len(messages) == 0 {
			return fmt.Errorf("the number got %d messages, %w", len(messages), err)
		}
		code = messages[0].Text[len(messages[0].Text)-6:]
		if code == before {
			return errors.New("the last code is the former")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestALoginAsksForASecondFactor(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	client.Update(t, webConfig(t, fixture.Application).Href(), e2e.Object{"mfa": e2e.Object{"required": true}})
	endpoint := fixture.Application.Href() + "/oauth/token"
	first := e2e.Request{Method: http.MethodPost, URL: endpoint, Body: passwordGrant(account.Text("email"), e2e.Password)}
	demanded := func() e2e.Object {
		t.Helper()
		answer := client.Call(t, first)
		body, err := answer.Object()
		if err != nil || answer.Status != http.StatusBadRequest || body.Text("error") != "access_denied" {
			t.Fatalf("the first step is answered %s", answer)
		}
		return body
	}
	second := func(state, code string) e2e.Request {
		return e2e.Request{Method: http.MethodPost, URL: endpoint, Body: url.Values{"grant_type": {"service_factor_challenge"}, "state": {state}, "code": {code}}}
	}

	if body := demanded(); body.Text("action") != "factor_enroll" || body.Text("state") == "" {
		t.Errorf("without a factor: %v", body)
	}
	number := enrolPhone(t, account)
	former := awaitTextCode(t, number, "")
	body := demanded()
	if body.Text("action") != "factor_challenge" || body.Object("factor").Text("type") != "sms" || body.Object("factor").Text("hint") != "xxx-xxx-"+number[len(number)-4:] {
		t.Errorf("with a phone: %v", body)
	}
	code := awaitTextCode(t, number, former)
	oauthRefused(t, 400, 13104, "invalid_grant", second(body.Text("state"), wrongCode(code)))
	statuses := sendConcurrently(t, 50, second(body.Text("state"), code))
	if statuses[http.StatusOK] != 1 || statuses[http.StatusBadRequest] != 49 {
		t.Errorf("the answers to fifty right codes by status are %v", statuses)
	}
	oauthRefused(t, 400, 13112, "invalid_grant", second(body.Text("state"), code))

	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator", "issuer": "Shop"})
	client.Create(t, factor.Link(t, "challenges"), e2e.Object{"code": totpCode(t, factor.Text("keyUri"), time.Now())})
	body = demanded()
	factors, _ := body["factors"].([]any)
	if body.Text("action") != "factor_select" || len(factors) != 2 || body.Text("state") != "" {
		t.Fatalf("with two factors: %v", body)
	}
	state, _ := factors[1].(map[string]any)["state"].(string)
	next := totpCode(t, factor.Text("keyUri"), time.Now().Add(30*time.Second))
	if answer := client.Call(t, second(strings.TrimSuffix(state, "x"), next)); answer.Status != http.StatusOK {
		t.Errorf("the code of the authenticator is answered %s", answer)
	}
}
