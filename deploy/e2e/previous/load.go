package previous

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// Load is what clients of a deployment do at all times: registrations, each with a
// mail, logins, refreshes and calls of the API. Each worker does one after another.
type Load struct {
	client  *e2e.Client
	site    e2e.Site
	stop    context.CancelFunc
	workers sync.WaitGroup

	mu         sync.Mutex
	done       map[string]int
	failures   []error
	failed     []time.Time // when the calls of failures were answered
	registered []e2e.Registration
	slowest    time.Duration
}

// StartLoad begins the load of so many workers.
func StartLoad(ctx context.Context, client *e2e.Client, site e2e.Site, workers int) *Load {
	ctx, stop := context.WithCancel(ctx)
	l := &Load{client: client, site: site, stop: stop, done: map[string]int{}}
	for range workers {
		l.workers.Go(func() {
			for ctx.Err() == nil {
				l.round(context.WithoutCancel(ctx))
			}
		})
	}
	return l
}

// round is a new user's first visit, and the calls of an administrator about them.
func (l *Load) round(ctx context.Context) {
	email := e2e.Unique("up") + "@example.test"
	application := l.site.Application.Href()
	account, ok := l.call(ctx, "registration", http.StatusCreated, e2e.Request{
		Method: http.MethodPost, URL: l.site.Directory.Href() + "/accounts", Body: e2e.Object{"email": email, "password": e2e.Password},
	})
	if !ok {
		return
	}
	l.mu.Lock()
	l.registered = append(l.registered, e2e.Registration{Email: email, Href: account.Href()})
	l.mu.Unlock()
	// The account has to be verified before it logs in; an administrator may do it.
	l.call(ctx, "update", http.StatusOK, e2e.Request{
		Method: http.MethodPost, URL: account.Href(), Body: e2e.Object{"status": "ENABLED", "givenName": "Jo"},
	})
	l.call(ctx, "login", http.StatusOK, e2e.Login(l.site.Application, email, e2e.Password))
	token, ok := l.call(ctx, "token", http.StatusOK, e2e.Request{Method: http.MethodPost, URL: application + "/oauth/token", Body: url.Values{
		"grant_type": {"password"}, "username": {email}, "password": {e2e.Password},
	}})
	if ok {
		l.call(ctx, "refresh", http.StatusOK, e2e.Request{Method: http.MethodPost, URL: application + "/oauth/token", Body: url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")},
		}})
	}
	for _, path := range []string{"", "/customData", "/groups", "/applications"} {
		l.call(ctx, "read", http.StatusOK, e2e.Request{Method: http.MethodGet, URL: account.Href() + path})
	}
}

// call sends a request once and counts it: as done, or as failed where its answer is
// another than wanted.
func (l *Load) call(ctx context.Context, kind string, want int, r e2e.Request) (e2e.Object, bool) {
	began := time.Now()
	object, err := l.send(ctx, want, r)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	if err != nil {
		l.failed = append(l.failed, time.Now())
		l.failures = append(l.failures, fmt.Errorf("%s %s after %s: %w", began.Format(time.TimeOnly), kind, took.Round(time.Millisecond), err))
		return nil, false
	}
	l.done[kind]++
	return object, true
}

// send is without the check against the description of the interface, which is that
// of one of the two releases.
func (l *Load) send(ctx context.Context, want int, r e2e.Request) (object e2e.Object, err error) {
	var body io.Reader
	contentType := "application/json"
	switch b := r.Body.(type) {
	case nil:
	case url.Values:
		body, contentType = strings.NewReader(b.Encode()), "application/x-www-form-urlencoded"
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.SetBasicAuth(l.client.Key.ID, l.client.Key.Secret)
	response, err := l.client.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != want {
		return nil, fmt.Errorf("status %d instead of %d: %s", response.StatusCode, want, content)
	}
	return object, json.Unmarshal(content, &object)
}

// Await waits until the load has registered so many more accounts.
func (l *Load) Await(ctx context.Context, more int, limit time.Duration) error {
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.registered)
	}
	target := count() + more
	return e2e.AwaitFor(ctx, limit, fmt.Sprintf("%d more registrations", more), func(context.Context) error {
		if n := count(); n < target {
			return fmt.Errorf("%d are missing", target-n)
		}
		return nil
	})
}

// Stop ends the load when its calls are answered, and returns the accounts that were
// acknowledged and the calls that failed.
func (l *Load) Stop() (registered []e2e.Registration, failures []error) {
	l.stop()
	l.workers.Wait()
	return l.registered, l.failures
}

// FailedSince returns the calls that were answered with a failure since a time, and
// when the last of them was.
func (l *Load) FailedSince(since time.Time) (failures []error, last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, at := range l.failed {
		if at.After(since) {
			failures, last = append(failures, l.failures[i]), at
		}
	}
	return failures, last
}

// String says what was done.
func (l *Load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("done %v, failed %d, slowest %s", l.done, len(l.failures), l.slowest.Round(time.Millisecond))
}
