package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Registrar registers accounts without a pause while other things go wrong,
// and remembers what it was promised: every account for which it got a 201.
type Registrar struct {
	client   *Client
	accounts string // the collection to register in
	stop     context.CancelFunc
	workers  sync.WaitGroup

	mu         sync.Mutex
	promised   []Registration
	turnedAway int   // refused with a 5xx or 429
	cutOff     int   // no answer at all: whether the account exists is open
	wrong      error // an answer that nothing can excuse
}

// Registration is one account that the service has acknowledged.
type Registration struct {
	Email string
	Href  string
}

// rest keeps a registrar from spinning while the service is away.
const rest = 20 * time.Millisecond

// StartRegistrar lets this many workers register accounts through the given
// collection until Stop, or until the test ends.
func (c *Client) StartRegistrar(t testing.TB, accounts string, workers int) *Registrar {
	ctx, stop := context.WithCancel(t.Context())
	r := &Registrar{client: c, accounts: accounts, stop: stop}
	for range workers {
		r.workers.Go(func() { r.work(ctx) })
	}
	t.Cleanup(func() {
		stop()
		r.workers.Wait()
	})
	return r
}

func (r *Registrar) work(ctx context.Context) {
	for ctx.Err() == nil {
		email := Unique("crash") + "@example.test"
		// The call itself is not cut off by Stop: its answer counts.
		answer, err := r.client.Do(context.WithoutCancel(ctx), Request{
			Method: http.MethodPost, URL: r.accounts, Body: Object{"email": email, "password": Password},
		})
		if r.note(email, answer, err) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// note records one outcome and reports whether the account is promised.
func (r *Registrar) note(email string, answer Answer, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.cutOff++
	case answer.Status == http.StatusCreated:
		account, err := answer.Object()
		if err != nil || account.Href() == "" {
			r.wrong = errors.Join(r.wrong, fmt.Errorf("a 201 without an account: %s", answer))
			return false
		}
		r.promised = append(r.promised, Registration{Email: email, Href: account.Href()})
		return true
	case answer.Status >= 500 || answer.Status == http.StatusTooManyRequests:
		r.turnedAway++
	case r.wrong == nil:
		r.wrong = fmt.Errorf("a registration was refused for good: %s", answer)
	}
	return false
}

func (r *Registrar) count() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.promised), r.wrong
}

// AwaitMore waits until this many further accounts are promised.
func (r *Registrar) AwaitMore(t testing.TB, n int, limit time.Duration) {
	t.Helper()
	before, _ := r.count()
	what := fmt.Sprintf("%d more registrations", n)
	err := AwaitFor(t.Context(), limit, what, func(context.Context) error {
		now, err := r.count()
		if err != nil {
			return Final(err)
		}
		if now < before+n {
			return fmt.Errorf("%d so far", now-before)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Stop ends the registrations and returns what was promised. It fails the test
// when an answer was wrong in a way that no crash excuses.
func (r *Registrar) Stop(t testing.TB) []Registration {
	t.Helper()
	r.stop()
	r.workers.Wait()
	if r.wrong != nil {
		t.Error(r.wrong)
	}
	t.Logf("%d registrations promised, %d turned away, %d cut off", len(r.promised), r.turnedAway, r.cutOff)
	return r.promised
}

// CheckPromises holds the service to every promise: each account is there, and
// a mail has arrived for it. Accounts that exist without a promise, because the
// answer was cut off, must have their mail too: an account and its mail come
// together or not at all. Mails that came twice are counted and logged; delivery
// is at least once.
func (c *Client) CheckPromises(t testing.TB, directory Object, promised []Registration, limit time.Duration) {
	t.Helper()
	there := map[string]string{}
	var addresses []string
	for _, account := range c.All(t, directory.Link(t, "accounts")) {
		there[account.Href()] = account.Text("email")
		addresses = append(addresses, account.Text("email"))
	}
	for _, registration := range promised {
		if there[registration.Href] != registration.Email {
			t.Errorf("%s was acknowledged as %s and is not there", registration.Email, registration.Href)
		}
	}
	began := time.Now()
	mails, err := c.MailCount(t.Context(), limit, addresses)
	if err != nil {
		t.Fatal(err)
	}
	twice := 0
	for _, count := range mails {
		twice += count - 1
	}
	t.Logf("%d accounts are there, %d of them promised; the last mail was there %s after the check began; %d mails came more than once",
		len(addresses), len(promised), time.Since(began).Round(time.Millisecond), twice)
}
