package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e/loadgen"
)

// Load is concurrent clients that use a deployment without a pause while
// a test kills, upgrades or moves parts of it. It records every call, and every
// registration that was acknowledged with a 201.
type Load struct {
	ctx     context.Context // of the workers: until Stop
	stop    context.CancelFunc
	workers sync.WaitGroup

	mu           sync.Mutex
	attempts     []Attempt
	acknowledged []Registration
}

// Attempt is one call of a load.
type Attempt struct {
	Kind   string
	Began  time.Time
	Took   time.Duration
	Status int   // 0 where no complete answer came: whether the call had its effect is unknown
	Err    error // nil where the answer had the expected status
}

// Registration is one account that the service has acknowledged.
type Registration struct {
	Email string
	Href  string
}

// retryDelay keeps a load from spinning while the service is unavailable.
const retryDelay = 20 * time.Millisecond

// NewLoad is a load without workers, which ends with ctx at the latest.
func NewLoad(ctx context.Context) *Load {
	l := &Load{}
	l.ctx, l.stop = context.WithCancel(ctx)
	return l
}

// Repeat starts so many workers, each of which calls work again and again until Stop. A
// call of work that has begun is not cancelled by Stop: its answers count.
func (l *Load) Repeat(workers int, work func(context.Context)) {
	l.workers.Go(func() {
		loadgen.Load{Workers: workers}.Run(l.ctx, func() (loadgen.Operation, func()) {
			return func(uint64) (string, error) {
				work(context.WithoutCancel(l.ctx))
				return "", nil
			}, func() {}
		})
	})
}

// StartRegistrations starts so many workers that register accounts in a collection until
// Stop, or until the test ends.
func (c *Client) StartRegistrations(t testing.TB, accounts string, workers int) *Load {
	l := NewLoad(t.Context())
	l.Repeat(workers, func(ctx context.Context) { l.register(ctx, c, accounts) })
	t.Cleanup(func() { l.Stop() })
	return l
}

// StartUsers starts so many workers, each of which is one new user after another:
// registration with a mail, login, token and refresh, and the calls of an administrator
// about the user. The answers are not checked against the OpenAPI description, which is
// that of one release, where two releases may be deployed.
func (c *Client) StartUsers(ctx context.Context, fixture Fixture, workers int) *Load {
	l, unchecked := NewLoad(ctx), c.Unchecked()
	l.Repeat(workers, func(ctx context.Context) { l.newUser(ctx, unchecked, fixture) })
	return l
}

func (l *Load) register(ctx context.Context, c *Client, accounts string) (Registration, bool) {
	email := Unique("load") + "@example.test"
	account, ok := l.call(ctx, c, "registration", http.StatusCreated, Post(accounts, Object{"email": email, "password": Password}))
	made := Registration{Email: email, Href: account.Href()}
	if ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.acknowledged = append(l.acknowledged, made)
	}
	return made, ok
}

func (l *Load) newUser(ctx context.Context, c *Client, fixture Fixture) {
	account, ok := l.register(ctx, c, fixture.Directory.Href()+"/accounts")
	if !ok {
		return
	}
	// The account has to be verified before it logs in; an administrator may do it.
	l.call(ctx, c, "update", http.StatusOK, Post(account.Href, Object{"status": "ENABLED", "givenName": "Jo"}))
	l.call(ctx, c, "login", http.StatusOK, Login(fixture.Application, account.Email, Password))
	grants := fixture.Application.Href() + "/oauth/token"
	if token, ok := l.call(ctx, c, "token", http.StatusOK, Post(grants, PasswordGrant(account.Email))); ok {
		l.call(ctx, c, "refresh", http.StatusOK, Post(grants, RefreshGrant(token.Text("refresh_token"))))
	}
	for _, path := range []string{"", "/customData", "/groups", "/applications"} {
		l.call(ctx, c, "read", http.StatusOK, Get(account.Href+path))
	}
}

// call sends a request once and records it, as failed where the answer is no object with
// the expected status.
func (l *Load) call(ctx context.Context, c *Client, kind string, want int, r Request) (object Object, ok bool) {
	began := time.Now()
	answer, err := c.Do(ctx, r)
	a := Attempt{Kind: kind, Began: began, Took: time.Since(began), Err: err}
	if err == nil {
		a.Status = answer.Status
		if object, a.Err = answer.Object(); answer.Status != want {
			a.Err = errors.New(answer.String())
		}
	}
	l.Record(a)
	if a.Err != nil {
		<-time.After(retryDelay)
	}
	return object, a.Err == nil
}

// Record adds a call that the caller has made itself.
func (l *Load) Record(a Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = append(l.attempts, a)
}

// Since are the calls that ended after a time.
func (l *Load) Since(at time.Time) (attempts []Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.attempts {
		if a.Ended().After(at) {
			attempts = append(attempts, a)
		}
	}
	return attempts
}

// FailedSince are the failed calls that ended after a time.
func (l *Load) FailedSince(at time.Time) (failed []Attempt) {
	for _, a := range l.Since(at) {
		if a.Err != nil {
			failed = append(failed, a)
		}
	}
	return failed
}

// Ended is when the call was answered or timed out.
func (a Attempt) Ended() time.Time { return a.Began.Add(a.Took) }

// String is the call for a message.
func (a Attempt) String() string {
	return fmt.Sprintf("%s %s after %s: %v", a.Began.Format(time.TimeOnly), a.Kind, a.Took.Round(time.Millisecond), a.Err)
}

// String counts the calls by kind, the failures, and has the slowest call.
func (l *Load) String() string {
	done, failed := map[string]int{}, 0
	var slowest time.Duration
	for _, a := range l.Since(time.Time{}) {
		slowest = max(slowest, a.Took)
		if a.Err != nil {
			failed++
		} else {
			done[a.Kind]++
		}
	}
	return fmt.Sprintf("done %v, failed %d, slowest %s", done, failed, slowest.Round(time.Millisecond))
}

// AwaitMore waits until so many further registrations are acknowledged.
func (l *Load) AwaitMore(t testing.TB, more int, limit time.Duration) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acknowledged)
	}
	target := count() + more
	err := AwaitFor(t.Context(), limit, fmt.Sprintf("%d more registrations", more), func(context.Context) error {
		if missing := target - count(); missing > 0 {
			return fmt.Errorf("%d are missing", missing)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, l)
	}
}

// Stop ends the load when its calls are answered, and returns the acknowledged registrations.
func (l *Load) Stop() []Registration {
	l.stop()
	l.workers.Wait()
	return l.acknowledged
}

// StopWithoutFailure is Stop for a test in which every call has to succeed.
func (l *Load) StopWithoutFailure(t testing.TB) []Registration {
	t.Helper()
	acknowledged, failed := l.Stop(), l.FailedSince(time.Time{})
	for _, a := range failed[:min(len(failed), 20)] {
		t.Error(a)
	}
	if len(failed) > 0 {
		t.Errorf("%d requests failed; %s", len(failed), l)
	}
	return acknowledged
}

// StopAfterCrash is Stop for a test that killed a process: calls may have failed without
// an answer, with a 5xx or with a 429. Any other failure fails the test.
func (l *Load) StopAfterCrash(t testing.TB) []Registration {
	t.Helper()
	acknowledged := l.Stop()
	for _, a := range l.FailedSince(time.Time{}) {
		if a.Status != 0 && a.Status < http.StatusInternalServerError && a.Status != http.StatusTooManyRequests {
			t.Errorf("a call failed with a permanent error: %s", a)
			break
		}
	}
	t.Logf("%d registrations acknowledged; %s", len(acknowledged), l)
	return acknowledged
}

// CheckAcknowledged checks that no acknowledged registration is lost: each account exists,
// and its mail has arrived (durability). Accounts whose registration was not acknowledged,
// because the answer was lost, must have their mail too: an account and its mail are
// committed together or not at all. Duplicate mails are counted and logged, because
// delivery is at least once.
func (c *Client) CheckAcknowledged(t testing.TB, directory Object, acknowledged []Registration, limit time.Duration) {
	t.Helper()
	existing := map[string]string{}
	var addresses []string
	for _, account := range c.All(t, directory.Link(t, "accounts")) {
		existing[account.Href()] = account.Text("email")
		addresses = append(addresses, account.Text("email"))
	}
	for _, registration := range acknowledged {
		if existing[registration.Href] != registration.Email {
			t.Errorf("%s was acknowledged as %s and does not exist", registration.Email, registration.Href)
		}
	}
	began := time.Now()
	mails, err := c.MailCount(t.Context(), limit, addresses)
	if err != nil {
		t.Fatal(err)
	}
	duplicates := 0
	for _, count := range mails {
		duplicates += count - 1
	}
	t.Logf("%d accounts exist, %d of them acknowledged; the last mail arrived %s after the check began; %d duplicate mails",
		len(addresses), len(acknowledged), time.Since(began).Round(time.Millisecond), duplicates)
}
