package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

const (
	// clients is how many clients call at the same time, two of three of them with a
	// request that takes long: twice what one tenant may have in flight.
	clients = 300

	// limitTimeout bounds how long it takes until requests are refused.
	limitTimeout = time.Minute
)

// A tenant has a limited number of requests in flight. Two of three clients set a
// password, whose hash takes many times what a client needs to send the request, also on
// a busy machine: such requests pile up in the service, and then some must be refused.
func TestTooManyRequestsAtOnceAreRefused(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	update := post(account.Href(), e2e.Object{"password": e2e.Password})
	calls := []e2e.Request{update, update, get(account.Href())}

	ctx, cancel := context.WithTimeoutCause(t.Context(), limitTimeout, errors.New("no request was refused"))
	defer cancel()
	var answers answers
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				// The call goes on when others have seen enough: it counts too.
				answer, err := client.Do(context.WithoutCancel(ctx), calls[i%len(calls)])
				if answers.note(answer, err) {
					cancel()
				}
			}
		})
	}
	group.Wait()
	t.Logf("answers by status: %v", answers.statuses)
	for _, err := range answers.wrong {
		t.Error(err)
	}
	if len(answers.refused) == 0 {
		t.Fatalf("%d clients at once for %s: %v", clients, limitTimeout, context.Cause(ctx))
	}
	for _, answer := range answers.refused {
		e2e.CheckError(t, answer, http.StatusTooManyRequests, 429)
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || seconds < 1 {
			t.Errorf("Retry-After is %q, want seconds", answer.Header.Get("Retry-After"))
		}
		if t.Failed() {
			break
		}
	}
	t.Run("and are served again when there are few", func(t *testing.T) {
		for _, call := range calls {
			client.Want(t, http.StatusOK, call)
		}
	})
}

// Excess logins are refused (load shedding), and do not slow down the other requests of the
// same tenant: management and the validation of tokens have limits of their own.
func TestManyLoginsAreShedAndDelayNothingElse(t *testing.T) {
	const (
		storm   = 200 // clients, twice what may be in flight
		samples = 100
		bound   = 2 * time.Second // of the 95th percentile, on two busy cores
	)
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	token := client.Token(t, fixture.Application.Href(), url.Values{"grant_type": {"password"}, "username": {account.Text("email")}, "password": {e2e.Password}})
	login := e2e.Login(fixture.Application, account.Text("email"), "not "+e2e.Password)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shed atomic.Int64
	var group sync.WaitGroup
	for range storm {
		group.Go(func() {
			for ctx.Err() == nil {
				answer, err := client.Do(context.WithoutCancel(ctx), login)
				switch {
				case err != nil:
					t.Error(err)
					return
				case answer.Status == http.StatusTooManyRequests, answer.Status == http.StatusServiceUnavailable:
					if answer.Header.Get("Retry-After") == "" {
						t.Errorf("no Retry-After: %s", answer)
					}
					shed.Add(1)
				case answer.Status != http.StatusBadRequest:
					t.Errorf("want 400, 429 or 503: %s", answer)
				}
			}
		})
	}
	defer group.Wait()
	defer cancel()
	if err := e2e.AwaitFor(t.Context(), limitTimeout, "logins to be shed", func(context.Context) error {
		if n := shed.Load(); n < storm {
			return fmt.Errorf("%d logins were shed", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status  int
		address string
	}{
		"validation": {http.StatusFound, fixture.Application.Href() + "/authTokens/" + token.Text("access_token")},
		"management": {http.StatusOK, fixture.Directory.Href()},
	} {
		times := make([]time.Duration, samples)
		for i := range times {
			began := time.Now()
			client.Want(t, c.status, get(c.address))
			times[i] = time.Since(began)
		}
		slices.Sort(times)
		p95 := times[samples*95/100]
		t.Logf("%s: p50 %s, p95 %s", name, times[samples/2], p95)
		if p95 > bound {
			t.Errorf("the p95 of %s is %s", name, p95)
		}
	}
}

// answers gathers the answers to all clients.
type answers struct {
	sync.Mutex
	statuses map[int]int
	refused  []e2e.Answer
	wrong    []error
}

// note records one answer and reports whether it was the one looked for.
func (a *answers) note(answer e2e.Answer, err error) bool {
	a.Lock()
	defer a.Unlock()
	if a.statuses == nil {
		a.statuses = map[int]int{}
	}
	a.statuses[answer.Status]++
	switch {
	case err != nil:
		a.wrong = append(a.wrong, err)
	case answer.Status == http.StatusTooManyRequests:
		a.refused = append(a.refused, answer)
		return true
	case answer.Status == http.StatusServiceUnavailable:
		if answer.Header.Get("Retry-After") == "" {
			a.wrong = append(a.wrong, fmt.Errorf("a 503 without Retry-After: %s", answer))
		}
	case answer.Status != http.StatusOK:
		a.wrong = append(a.wrong, fmt.Errorf("want 200, 429 or 503: %s", answer))
	}
	return false
}
