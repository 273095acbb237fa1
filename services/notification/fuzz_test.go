package notification

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/services/notification/store"
)

// Anybody can send a receipt: one that is not signed is refused, and one that is
// signed has one of few outcomes.
func FuzzReceipt(f *testing.F) {
	f.Add("GvWf1cFY/Q7PnoempGyD5oXAezc=", "MessageStatus=delivered&ErrorCode=30003")
	f.Add("", "MessageStatus=undelivered&ErrorCode=x%00")
	f.Add("AAAA", "a=1&a=2&%zz")
	f.Fuzz(func(t *testing.T, signature, body string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		r := SMSReceipt{Signature: signature, Form: form}
		if r.isSigned("a token that nobody guesses", "https://id.example.test/sms/receipts/a/b") {
			t.Errorf("%q is accepted", signature)
		}
		state, reason := r.finalState()
		if state != "" && state != store.Delivered && state != store.Failed || len(reason) > 60 {
			t.Errorf("the outcome is %q, %q", state, reason)
		}
	})
}

// Whatever a provider answers is one of the outcomes, and nothing of its text is
// kept.
func FuzzProviderAnswer(f *testing.F) {
	f.Add(400, `{"code":21211,"message":"no"}`)
	f.Add(500, `{"code":"x"}`)
	f.Add(201, ``)
	f.Add(429, `[[[[`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		status = 200 + (status&0x7fff)%400
		err := responseError(&http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))})
		if (status < 300) != (err == nil) {
			t.Fatalf("%d returns %v", status, err)
		}
		if err == nil {
			return
		}
		var refused permanentError
		var broken deploymentError
		known := errors.Is(err, errUnavailable) || errors.Is(err, errSMSProviderBusy) ||
			errors.Is(err, errNoSMSProviderAnswer) || errors.As(err, &refused) || errors.As(err, &broken)
		if !known || len(err.Error()) > 120 {
			t.Errorf("%d returns %v", status, err)
		}
	})
}
