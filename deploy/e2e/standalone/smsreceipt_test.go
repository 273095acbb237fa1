package standalone_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" // as the provider signs
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// A provider on the internet reports through the gateway what became of a text.
func TestAReceiptOfTheProviderMovesItsChallenge(t *testing.T) {
	const token = "the token of the account"
	asked := make(chan url.Values, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked <- r.PostForm
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(provider.Close)
	_, client := start(t, "texts", "DOORWARD_SMS_PROVIDER=twilio", "DOORWARD_SMS_TWILIO_URL="+provider.URL,
		"DOORWARD_SMS_TWILIO_ACCOUNT_SID=AC0", "DOORWARD_SMS_TWILIO_AUTH_TOKEN="+token, "DOORWARD_SMS_TWILIO_FROM=+15005550006")
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	for _, c := range []struct{ number, status, want string }{
		{"+12675555501", "delivered", "WAITING_FOR_VALIDATION"},
		{"+12675555502", "undelivered", "UNDELIVERED"},
	} {
		factor := client.Create(t, account.Link(t, "factors")+"?challenge=true", e2e.Object{"type": "SMS", "phone": e2e.Object{"number": c.number}})
		callback := (<-asked).Get("StatusCallback")
		receipt := e2e.Request{
			Method: http.MethodPost, URL: callback, Anonymous: true, Body: url.Values{"MessageSid": {"SM0"}, "MessageStatus": {c.status}},
			Header: http.Header{"X-Twilio-Signature": {base64.StdEncoding.EncodeToString([]byte("nobody's signature"))}},
		}
		client.Want(t, http.StatusForbidden, receipt)
		mac := hmac.New(sha1.New, []byte(token))
		mac.Write([]byte(callback + "MessageSidSM0" + "MessageStatus" + c.status))
		receipt.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		client.Want(t, http.StatusNoContent, receipt)
		err := e2e.AwaitFor(t.Context(), mailLimit, "the challenge to be "+c.want, func(ctx context.Context) error {
			answer, err := client.Do(ctx, e2e.Request{Method: http.MethodGet, URL: factor.Link(t, "mostRecentChallenge")})
			if err == nil && !strings.Contains(string(answer.Body), `"status":"`+c.want+`"`) {
				err = errors.New(answer.String())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
