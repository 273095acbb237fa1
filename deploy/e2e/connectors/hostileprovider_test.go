package connectors_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// providerServer serves a provider's endpoints with a certificate of the authority.
func providerServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	cert, key, err := authority.Issue(t.TempDir(), "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// generic is a directory of a provider with three endpoints below this address.
func generic(t *testing.T, application e2e.Object, address string) (providerID string) {
	t.Helper()
	providerID = e2e.Unique("generic")
	connect(t, application, e2e.Object{
		"providerId": providerID, "providerType": "oauth2", "clientId": "c", "clientSecret": "s",
		"authorizationEndpoint": address + "/authorize", "tokenEndpoint": address + "/token", "resourceEndpoint": address + "/me",
		"acceptForeignTokens": true,
	})
	return providerID
}

// signIn asks for the account of an access token.
func signIn(application e2e.Object, providerID string) e2e.Request {
	return post(application.Href()+"/accounts", e2e.Object{"providerData": e2e.Object{"providerId": providerID, "accessToken": "token"}})
}

// answerLimit is the timeout of requests to a provider, and some more time for a busy machine.
const answerLimit = 20 * time.Second

func TestAProviderThatMisbehavesIsRefused(t *testing.T) {
	const me = `{"id":"7","email":"jo@example.test"}`
	for name, handler := range map[string]http.HandlerFunc{
		"a page in the place of JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!doctype html><h1>Please sign in</h1>")
		},
		"JSON that is no object": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `["`+"jo@example.test"+`"]`)
		},
		"more than a mebibyte": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"7","email":"jo@example.test","filler":"`)
			for range 64 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `"}`)
		},
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, me[:20])
		},
		"a failure of its own": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", http.StatusBadGateway) },
		"a way into a private network": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://10.0.0.1/me", http.StatusFound)
		},
		"a way to the address of cloud machines": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			application := newShop(t)
			began := time.Now()
			refused := client.Refused(t, 400, 7200, signIn(application, generic(t, application, providerServer(t, handler).URL)))
			if took := time.Since(began); took > answerLimit {
				t.Errorf("the refusal took %s", took)
			}
			t.Log(refused.Text("developerMessage"))
		})
	}
	t.Run("no email address", func(t *testing.T) {
		application := newShop(t)
		server := providerServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"7"}`)
		})
		client.Refused(t, 400, 7201, signIn(application, generic(t, application, server.URL)))
	})
	t.Run("nobody there", func(t *testing.T) {
		application := newShop(t)
		server := providerServer(t, http.NotFound)
		server.Close()
		client.Refused(t, 400, 7200, signIn(application, generic(t, application, server.URL)))
	})
	t.Run("a certificate that nobody vouches for", func(t *testing.T) {
		application := newShop(t)
		server := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(server.Close)
		refused := client.Refused(t, 400, 7200, signIn(application, generic(t, application, server.URL)))
		if !strings.Contains(refused.Text("developerMessage"), "certificate") {
			t.Errorf("the refusal says %q", refused.Text("developerMessage"))
		}
	})
}

// A provider that does not answer delays only the logins that wait for it: other logins of
// the same tenant succeed meanwhile, as fast as before.
func TestADeadProviderHoldsUpNothingElse(t *testing.T) {
	const waiting, tries = 200, 30
	gate := make(chan struct{})
	var held atomic.Int64
	server := providerServer(t, func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(gate) })
	dead, application, fixture := newShop(t), newShop(t), client.NewFixture(t)
	providerID := generic(t, dead, server.URL)
	working := providerServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"8","email":"fay@example.test"}`)
	})
	other := generic(t, application, working.URL)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	client.Create(t, application.Href()+"/accounts", e2e.Object{"providerData": e2e.Object{"providerId": other, "accessToken": "token"}})
	slowest := func() (longest time.Duration) {
		t.Helper()
		for range tries {
			began := time.Now()
			client.Want(t, http.StatusOK, signIn(application, other))
			client.Want(t, http.StatusOK, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
			longest = max(longest, time.Since(began))
		}
		return longest
	}
	before := slowest()

	began := time.Now()
	answers, statuses := make(chan error, waiting), [600]atomic.Int64{}
	for range waiting {
		go func() {
			answer, err := client.Do(t.Context(), signIn(dead, providerID))
			if err == nil {
				statuses[answer.Status].Add(1)
			}
			if err == nil && answer.Status != http.StatusBadRequest && answer.Status != http.StatusTooManyRequests && answer.Status != http.StatusServiceUnavailable {
				err = fmt.Errorf("a login at the dead provider: %s", answer)
			}
			answers <- err
		}()
	}
	// Of all, those are left that wait for the answer of the provider, or for others.
	err := e2e.AwaitFor(t.Context(), answerLimit, "the rest to be refused", func(ctx context.Context) error {
		if held.Load() == 0 || len(answers) < waiting-64 {
			return fmt.Errorf("%d wait, %d were refused", held.Load(), len(answers))
		}
		// The gateways count what is in flight together, a moment late.
		answer, err := client.Do(ctx, signIn(application, other))
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("another login: %s", answer)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	refusedAfter := time.Since(began)
	during := slowest()
	if len(answers) == waiting {
		t.Error("no login waited any more when others were tried")
	}
	t.Logf("%d logins waited, the rest was refused within %s (%d with 429); the slowest of %d others took %s, before that %s",
		held.Load(), refusedAfter, statuses[http.StatusTooManyRequests].Load(), tries, during, before)
	if during > 3*before+time.Second {
		t.Errorf("other logins take %s while some wait, and took %s before", during, before)
	}
	for range waiting {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 2*answerLimit {
		t.Errorf("the logins at the dead provider ended after %s", took)
	}
}
