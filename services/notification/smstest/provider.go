// Package smstest is a fake SMS provider for tests. It has the Messages API of Twilio, and
// fails as a test tells it to.
package smstest

import (
	"crypto/hmac"
	"crypto/sha1" // as providers sign
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/doorward/doorward/services/notification"
)

// Account and Token are those that the provider knows.
const (
	Account = "AC0123456789abcdef"
	Token   = "a token of the tests"
)

// Drop is the status of an answer that never comes: the connection breaks.
const Drop = 0

// Provider is a server that accepts text messages.
type Provider struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(form url.Values) (status int, body string)
	asked  []url.Values
}

// Start starts a provider that accepts every message.
func Start(t testing.TB) *Provider {
	p := &Provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

// Config is the configuration by which the service uses the provider.
func (p *Provider) Config() notification.SMSProvider {
	return notification.SMSProvider{Address: p.URL, Account: Account, Token: Token, From: "+15005550006",
		Receipts: true}
}

// Answers sets the response to every message; nil accepts all.
func (p *Provider) Answers(answer func(form url.Values) (status int, body string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// Asked are the messages that the provider was asked to send.
func (p *Provider) Asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]url.Values{}, p.asked...)
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	account, token, _ := r.BasicAuth()
	if account != Account || token != Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/2010-04-01/Accounts/"+Account+"/Messages.json" ||
		r.ParseForm() != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r.PostForm)
	answer := p.answer
	p.mu.Unlock()
	status, body := http.StatusCreated, `{"sid":"SM0","status":"queued"}`
	if answer != nil {
		status, body = answer(r.PostForm)
	}
	if status == Drop {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body)
}

// Sign returns the signature of a receipt. The fields are given in the order of
// their names, each name with its value.
func Sign(token, address string, fields ...string) string {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(address))
	for _, part := range fields {
		mac.Write([]byte(part))
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
