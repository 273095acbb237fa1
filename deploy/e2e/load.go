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

// Load is clients that use a deployment without a pause while other things happen to
// it. It keeps every call, and what it was promised: every account for which it got a
// 201.
type Load struct {
	ctx     context.Context // of the visits: until Stop
	stop    context.CancelFunc
	workers sync.WaitGroup

	mu       sync.Mutex
	attempts []Attempt
	promised []Registration
}

// Attempt is one call of a load.
type Attempt struct {
	Kind   string
	Began  time.Time
	Took   time.Duration
	Status int   // 0 where no whole answer came: whether the call had its effect is open
	Err    error // nil where the answer was the wanted one
}

// Registration is one account that the service has acknowledged.
type Registration struct {
	Email string
	Href  string
}

// rest keeps a load from spinning while the service is unavailable.
const rest = 20 * time.Millisecond

// NewLoad is a load without workers, which ends with ctx at the latest.
func NewLoad(ctx context.Context) *Load {
	l := &Load{}
	l.ctx, l.stop = context.WithCancel(ctx)
	return l
}

// Repeat lets so many workers do something again and again until Stop. A visit that
// has begun is not cut off: its answers count.
func (l *Load) Repeat(workers int, visit func(context.Context)) {
	for range workers {
		l.workers.Go(func() {
			for l.ctx.Err() == nil {
				visit(context.WithoutCancel(l.ctx))
			}
		})
	}
}

// StartRegistrations lets so many workers register accounts through a collection until
// Stop, or until the test ends.
func (c *Client) StartRegistrations(t testing.TB, accounts string, workers int) *Load {
	l := NewLoad(t.Context())
	l.Repeat(workers, func(ctx context.Context) { l.register(ctx, c, accounts) })
	t.Cleanup(func() { l.Stop() })
	return l
}

// StartVisits lets so many workers be one new user after another: registrations, each
// with a mail, logins, refreshes, and the calls of an administrator about the users.
// The answers are not checked against the description of the interface, which is that
// of one release where two are deployed.
func (c *Client) StartVisits(ctx context.Context, site Site, workers int) *Load {
	l, unchecked := NewLoad(ctx), c.Unchecked()
	l.Repeat(workers, func(ctx context.Context) { l.visit(ctx, unchecked, site) })
	return l
}

func (l *Load) register(ctx context.Context, c *Client, accounts string) (Registration, bool) {
	email := Unique("load") + "@example.test"
	account, ok := l.call(ctx, c, "registration", http.StatusCreated, Post(accounts, Object{"email": email, "password": Password}))
	made := Registration{Email: email, Href: account.Href()}
	if ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.promised = append(l.promised, made)
	}
	return made, ok
}

func (l *Load) visit(ctx context.Context, c *Client, site Site) {
	account, ok := l.register(ctx, c, site.Directory.Href()+"/accounts")
	if !ok {
		return
	}
	// The account has to be verified before it logs in; an administrator may do it.
	l.call(ctx, c, "update", http.StatusOK, Post(account.Href, Object{"status": "ENABLED", "givenName": "Jo"}))
	l.call(ctx, c, "login", http.StatusOK, Login(site.Application, account.Email, Password))
	grants := site.Application.Href() + "/oauth/token"
	if token, ok := l.call(ctx, c, "token", http.StatusOK, Post(grants, PasswordGrant(account.Email))); ok {
		l.call(ctx, c, "refresh", http.StatusOK, Post(grants, RefreshGrant(token.Text("refresh_token"))))
	}
	for _, path := range []string{"", "/customData", "/groups", "/applications"} {
		l.call(ctx, c, "read", http.StatusOK, Get(account.Href+path))
	}
}

// call sends a request once and notes it: as failed where the answer is no object with
// the wanted status.
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
	l.Note(a)
	if a.Err != nil {
		<-time.After(rest)
	}
	return object, a.Err == nil
}

// Note adds a call that was made otherwise.
func (l *Load) Note(a Attempt) {
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

// FailedSince are those of them that failed.
func (l *Load) FailedSince(at time.Time) (failed []Attempt) {
	for _, a := range l.Since(at) {
		if a.Err != nil {
			failed = append(failed, a)
		}
	}
	return failed
}

// Ended is when the call was answered, or given up.
func (a Attempt) Ended() time.Time { return a.Began.Add(a.Took) }

// String is the call for a message.
func (a Attempt) String() string {
	return fmt.Sprintf("%s %s after %s: %v", a.Began.Format(time.TimeOnly), a.Kind, a.Took.Round(time.Millisecond), a.Err)
}

// String says what was done.
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

// AwaitMore waits until so many further accounts are promised.
func (l *Load) AwaitMore(t testing.TB, more int, limit time.Duration) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.promised)
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

// Stop ends the load when its calls are answered, and returns what was promised.
func (l *Load) Stop() []Registration {
	l.stop()
	l.workers.Wait()
	return l.promised
}

// StopWithoutFailure is Stop for a test in which every call has to succeed.
func (l *Load) StopWithoutFailure(t testing.TB) []Registration {
	t.Helper()
	promised, failed := l.Stop(), l.FailedSince(time.Time{})
	for _, a := range failed[:min(len(failed), 20)] {
		t.Error(a)
	}
	if len(failed) > 0 {
		t.Errorf("%d requests failed; %s", len(failed), l)
	}
	return promised
}

// StopAfterCrash is Stop for a test that killed something: calls may have been cut off
// or turned away, with a 5xx or a 429. It fails the test for any other answer.
func (l *Load) StopAfterCrash(t testing.TB) []Registration {
	t.Helper()
	promised := l.Stop()
	for _, a := range l.FailedSince(time.Time{}) {
		if a.Status != 0 && a.Status < http.StatusInternalServerError && a.Status != http.StatusTooManyRequests {
			t.Errorf("a call was refused for good: %s", a)
			break
		}
	}
	t.Logf("%d registrations promised; %s", len(promised), l)
	return promised
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
