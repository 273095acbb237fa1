package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

const (
	// requestTimeout is how long a client waits for an answer.
	requestTimeout = 15 * time.Second
	// pause is the time between two calls of a client. It is longer than a token that was
	// revoked may be accepted by another replica.
	pause = 60 * time.Millisecond
	// keyStaleness bounds how long an API key works after it was deleted, on a machine that
	// is not busy, and tokenStaleness how long a token works after the end of its account's
	// access, on any machine.
	keyStaleness, tokenStaleness = time.Second, 100 * time.Millisecond
)

// load is the clients that use the deployment during all faults: registrations with their
// mails, logins with right and wrong passwords, tokens, refreshes, reads, writes,
// revocations. It records in the checker what was acknowledged.
type load struct {
	*checker
	*e2e.Load

	client      *e2e.Client
	fixture     e2e.Fixture
	application string
	owner       string // account for which API keys are created and deleted
}

// outcome is what a client knows about the effect of a call.
type outcome int

const (
	unknown outcome = iota // no answer, or a 5xx: the call may have had its effect
	done
	refused
)

// startLoad starts the clients.
func startLoad(ctx context.Context, c *checker, client *e2e.Client, fixture e2e.Fixture, owner string, seed uint64, workers int) *load {
	l := &load{checker: c, Load: e2e.NewLoad(ctx), client: client, fixture: fixture, application: fixture.Application.Href(), owner: owner}
	for i := range workers {
		l.repeat(l.worker(seed, i), (*worker).newUser)
	}
	l.repeat(l.worker(seed, workers), (*worker).deletedKey)
	l.repeat(l.worker(seed, workers+1), (*worker).wrongPassword)
	return l
}

func (l *load) repeat(w *worker, work func(*worker, context.Context)) {
	l.Repeat(1, func(ctx context.Context) {
		work(w, ctx)
		w.client.HTTP.CloseIdleConnections() // the next call of work may go through either gateway
	})
}

// worker is one client, with connections of its own.
type worker struct {
	*load

	client *e2e.Client
	random *rand.Rand
}

func (l *load) worker(seed uint64, i int) *worker {
	client, transport := *l.client, l.client.HTTP.Transport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4
	client.HTTP = &http.Client{Timeout: requestTimeout, Transport: transport, CheckRedirect: l.client.HTTP.CheckRedirect}
	return &worker{load: l, client: &client, random: rand.New(rand.NewPCG(seed, uint64(i)))}
}

// do sends a request once and records it. An answer that has neither the expected nor an
// accepted status, and is no failure of the service, is a violation.
func (w *worker) do(ctx context.Context, kind string, r e2e.Request, want int, accept ...int) (outcome, e2e.Answer) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	began := time.Now()
	answer, err := w.client.Do(ctx, r)
	call := e2e.Attempt{Kind: kind, Began: began, Took: time.Since(began), Status: answer.Status}
	result := done
	switch {
	case err != nil && answer.Status == 0:
		result, call.Err = unknown, errors.New("no answer")
		if strings.Contains(err.Error(), "certificate") {
			call.Err = errors.New("certificate")
		}
	case answer.Status >= http.StatusInternalServerError || answer.Status == http.StatusTooManyRequests:
		result, call.Err = unknown, errors.New(fmt.Sprint(answer.Status))
	case err != nil:
		result, call.Err = unknown, errors.New("incomplete answer")
		if !strings.Contains(err.Error(), "read the answer") {
			w.violation("%s: %v", kind, err)
		}
	case slices.Contains(accept, answer.Status):
		result = refused
	case answer.Status != want:
		result, call.Err = refused, errors.New(fmt.Sprint(answer.Status))
		w.violation("%s: %s", kind, answer)
	}
	w.Record(call)
	return result, answer
}

func (w *worker) object(answer e2e.Answer) e2e.Object {
	object, err := answer.Object()
	if err != nil {
		w.violation("%v", err)
	}
	return object
}

// newUser is one new user: registration, an administrator's changes of the account, logins
// and tokens, and one of the ways in which access ends.
func (w *worker) newUser(ctx context.Context) {
	a := w.register(ctx)
	if a == nil {
		return
	}
	if w.random.IntN(4) == 0 {
		w.mustBeRefused(ctx, "login of an unverified account", 0, time.Now(), w.login(a, e2e.Password))
		return
	}
	if !w.enable(ctx, a) {
		return
	}
	w.do(ctx, "login", w.login(a, e2e.Password), http.StatusOK)
	w.mustBeRefused(ctx, "login with a wrong password", 0, time.Now(), w.login(a, "Wrong1234"))
	w.customData(ctx, a)
	w.read(ctx, a)
	result, answer := w.do(ctx, "token", w.grant(e2e.PasswordGrant(a.email)), http.StatusOK)
	if result != done {
		return
	}
	token := w.object(answer)
	w.checkUnique("access token", token.Text("service_access_token_href"))
	access, refresh := token.Text("access_token"), token.Text("refresh_token")
	w.do(ctx, "validation", w.validation(access), http.StatusFound)
	w.do(ctx, "refresh", w.refresh(refresh), http.StatusOK)
	switch w.random.IntN(6) {
	case 0:
		w.revoke(ctx, access, refresh)
	case 1:
		w.disable(ctx, a, access, refresh)
	case 2:
		w.deleteAccount(ctx, a, access, refresh)
	case 3:
		w.changePassword(ctx, a, refresh)
	}
}

// from is an IP address that no other login comes from.
func (w *worker) from() string {
	return fmt.Sprintf("2001:db8:%x:%x::1", w.random.IntN(1<<16), w.random.IntN(1<<16))
}

func (w *worker) login(a *account, password string) e2e.Request {
	return e2e.Login(w.fixture.Application, a.email, password).From(w.from())
}

func (w *worker) grant(form url.Values) e2e.Request {
	return e2e.Post(w.application+"/oauth/token", form).From(w.from())
}

func (w *worker) refresh(token string) e2e.Request { return w.grant(e2e.RefreshGrant(token)) }

func (w *worker) validation(token string) e2e.Request {
	return e2e.Get(w.application + "/authTokens/" + token)
}

// register creates an account, sometimes by two concurrent requests, of which only one may
// succeed.
func (w *worker) register(ctx context.Context) *account {
	a := &account{email: e2e.Unique("fault") + "@example.test", status: []string{"UNVERIFIED"}}
	w.addAccount(a)
	request := e2e.Post(w.fixture.Directory.Href()+"/accounts", e2e.Object{"email": a.email, "password": e2e.Password})
	if w.random.IntN(8) > 0 {
		result, answer := w.do(ctx, "registration", request, http.StatusCreated)
		if result == done {
			return w.registered(a, w.object(answer).Href())
		}
		return nil
	}
	answers := make([]e2e.Answer, 2)
	results := make([]outcome, 2)
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() {
			results[i], answers[i] = w.do(ctx, "registration", request, http.StatusCreated, http.StatusConflict)
		})
	}
	both.Wait()
	if results[0] == done && results[1] == done {
		w.violation("%s was registered twice: %s and %s", a.email, answers[0], answers[1])
	}
	if results[0] == refused && results[1] == refused {
		w.violation("%s was registered by neither of two: %s and %s", a.email, answers[0], answers[1])
	}
	if i := slices.Index(results, done); i >= 0 {
		return w.registered(a, w.object(answers[i]).Href())
	}
	return nil
}

// enable lets the account log in, which an administrator may do without the verification mail.
func (w *worker) enable(ctx context.Context, a *account) bool {
	name := e2e.Unique("name")
	w.update(func() { a.status, a.givenName = append(a.status, "ENABLED"), append(a.givenName, name) })
	result, _ := w.do(ctx, "update", e2e.Post(a.href, e2e.Object{"status": "ENABLED", "givenName": name}), http.StatusOK)
	if result == done {
		w.update(func() { a.status, a.givenName = []string{"ENABLED"}, []string{name} })
	}
	return result == done
}

func (w *worker) customData(ctx context.Context, a *account) {
	for range 2 {
		value := w.random.IntN(1 << 30)
		w.update(func() { a.number = append(a.number, value) })
		if result, _ := w.do(ctx, "update", e2e.Post(a.href+"/customData", e2e.Object{"n": value}), http.StatusOK); result == done {
			w.update(func() { a.number = []int{value} })
		}
	}
}

// read reads the values that only this worker writes.
func (w *worker) read(ctx context.Context, a *account) {
	if result, answer := w.do(ctx, "read", e2e.Get(a.href), http.StatusOK); result == done {
		w.compareAccount(a, w.object(answer))
	}
	if result, answer := w.do(ctx, "read", e2e.Get(a.href+"/customData"), http.StatusOK); result == done {
		w.compareCustomData(a, w.object(answer))
	}
	w.do(ctx, "read", e2e.Get(w.fixture.Directory.Href()+"/accounts?limit=5&email="+url.QueryEscape(a.email)), http.StatusOK)
}

// mustBeRefused repeats a request until it is refused. A request that is sent later than
// staleness after the end of access must not succeed.
func (w *worker) mustBeRefused(ctx context.Context, what string, staleness time.Duration, ended time.Time, r e2e.Request) {
	for giveUp := ended.Add(staleness + requestTimeout); time.Now().Before(giveUp); {
		sent := time.Now().Add(pause) // at the earliest, because do pauses first
		result, answer := w.do(ctx, what, r, -1, http.StatusOK, http.StatusFound,
			http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound)
		if result != refused {
			continue
		}
		if answer.Status >= http.StatusBadRequest {
			return
		}
		after := sent.Sub(ended)
		w.recordDelay(what, after)
		if after > staleness {
			w.violation("%s succeeds %s after access ended: %s", what, after.Round(time.Millisecond), answer)
			return
		}
	}
}

func (w *worker) revoke(ctx context.Context, access, refresh string) {
	result, _ := w.do(ctx, "revocation", e2e.Post(w.application+"/oauth/revoke", url.Values{"token": {refresh}}), http.StatusOK)
	if ended := time.Now(); result == done {
		w.mustBeRefused(ctx, "refresh with a revoked token", 0, ended, w.refresh(refresh))
		w.mustBeRefused(ctx, "validation of a revoked token", 0, ended, w.validation(access))
	}
}

func (w *worker) disable(ctx context.Context, a *account, access, refresh string) {
	w.update(func() { a.status = append(a.status, "DISABLED") })
	result, _ := w.do(ctx, "update", e2e.Post(a.href, e2e.Object{"status": "DISABLED"}), http.StatusOK)
	if ended := time.Now(); result == done {
		w.update(func() { a.status = []string{"DISABLED"} })
		w.accessMustEnd(ctx, "a disabled account", ended, a, access, refresh)
	}
}

func (w *worker) deleteAccount(ctx context.Context, a *account, access, refresh string) {
	w.update(func() { a.maybeDeleted = true })
	result, _ := w.do(ctx, "deletion", e2e.Delete(a.href), http.StatusNoContent)
	if ended := time.Now(); result == done {
		w.update(func() { a.deleted = true })
		w.accessMustEnd(ctx, "a deleted account", ended, a, access, refresh)
	}
}

func (w *worker) accessMustEnd(ctx context.Context, what string, ended time.Time, a *account, access, refresh string) {
	w.mustBeRefused(ctx, "login of "+what, 0, ended, w.login(a, e2e.Password))
	w.mustBeRefused(ctx, "validation of "+what+"'s token", tokenStaleness, ended, w.validation(access))
	w.mustBeRefused(ctx, "refresh of "+what, tokenStaleness, ended, w.refresh(refresh))
}

func (w *worker) changePassword(ctx context.Context, a *account, refresh string) {
	const other = "Changeme2!"
	w.update(func() { a.password = "" })
	result, _ := w.do(ctx, "update", e2e.Post(a.href, e2e.Object{"password": other}), http.StatusOK)
	if ended := time.Now(); result == done {
		w.update(func() { a.password = other })
		w.mustBeRefused(ctx, "login with the password before", 0, ended, w.login(a, e2e.Password))
		w.mustBeRefused(ctx, "refresh after a change of the password", tokenStaleness, ended, w.refresh(refresh))
		w.do(ctx, "login", w.login(a, other), http.StatusOK)
	}
}

// deletedKey creates an API key, uses it, deletes it, and checks that it does not work any more.
func (w *worker) deletedKey(ctx context.Context) {
	result, answer := w.do(ctx, "key", e2e.Post(w.owner+"/apiKeys", e2e.Object{}), http.StatusCreated)
	if result != done {
		return
	}
	key := w.object(answer)
	w.checkUnique("API key", key.Text("id"))
	keyHolder := *w
	keyHolder.client = w.client.With(key.Text("id"), key.Text("secret"))
	for range 3 {
		keyHolder.do(ctx, "read", e2e.Get("/tenants/current"), http.StatusFound)
		w.client.HTTP.CloseIdleConnections()
	}
	if result, _ := w.do(ctx, "key", e2e.Delete(key.Href()), http.StatusNoContent); result != done {
		return
	}
	ended := time.Now()
	for range 4 {
		keyHolder.mustBeRefused(ctx, "request with a deleted API key", keyStaleness+w.slack, ended, e2e.Get("/tenants/current"))
		w.client.HTTP.CloseIdleConnections()
	}
}

// wrongPassword tries wrong passwords for one login from one address, again and again (lockout).
func (w *worker) wrongPassword(ctx context.Context) {
	request := e2e.Login(w.fixture.Application, w.lockoutLogin, fmt.Sprint("Wrong", w.random.IntN(1<<30))).From("2001:db8::dead")
	<-time.After(5 * pause)
	answer, err := w.client.Do(ctx, request)
	if err != nil {
		return
	}
	switch answer.Status {
	case http.StatusOK:
		w.violation("a wrong password is accepted: %s", answer)
	case http.StatusBadRequest:
		w.countWrongPassword()
	}
}
