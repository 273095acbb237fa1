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
	// answerLimit is how long a client waits for an answer.
	answerLimit = 15 * time.Second
	// pause is between two calls of a client. It is longer than a token that was
	// revoked may be valid elsewhere.
	pause = 60 * time.Millisecond
	// keyLife bounds how long an API key works after it was deleted, on a machine that is
	// not busy, and endedLife how long a token does after its account, on any machine.
	keyLife, endedLife = time.Second, 100 * time.Millisecond
)

// load is what clients do at all times: registrations with their mails, logins
// with right and wrong passwords, tokens, refreshes, reads, writes, revocations.
// It hands what was promised to promises.
type load struct {
	*promises
	*e2e.Load

	client      *e2e.Client
	site        e2e.Site
	application string
	owner       string // account whose API keys come and go
}

// outcome is what a client knows of a call.
type outcome int

const (
	unknown outcome = iota // no answer, or a failure: it may have had its effect
	done
	refused
)

// startLoad starts the clients.
func startLoad(ctx context.Context, p *promises, client *e2e.Client, site e2e.Site, owner string, seed uint64, workers int) *load {
	l := &load{promises: p, Load: e2e.NewLoad(ctx), client: client, site: site, application: site.Application.Href(), owner: owner}
	for i := range workers {
		l.repeat(l.worker(seed, i), (*worker).visit)
	}
	l.repeat(l.worker(seed, workers), (*worker).deletedKey)
	l.repeat(l.worker(seed, workers+1), (*worker).wrongPassword)
	return l
}

func (l *load) repeat(w *worker, visit func(*worker, context.Context)) {
	l.Repeat(1, func(ctx context.Context) {
		visit(w, ctx)
		w.client.HTTP.CloseIdleConnections() // the next visit may go through either gateway
	})
}

// worker is one client, with connections of its own.
type worker struct {
	*load

	client *e2e.Client
	random *rand.Rand
}

func (l *load) worker(seed uint64, i int) *worker {
	own, transport := *l.client, l.client.HTTP.Transport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4
	own.HTTP = &http.Client{Timeout: answerLimit, Transport: transport, CheckRedirect: l.client.HTTP.CheckRedirect}
	return &worker{load: l, client: &own, random: rand.New(rand.NewPCG(seed, uint64(i)))}
}

// do sends a request once and counts it. Another answer than the wanted statuses,
// the accepted ones and a failure of the service breaks a promise.
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
		result, call.Err = unknown, errors.New("half an answer")
		if !strings.Contains(err.Error(), "read the answer") {
			w.broken("%s: %v", kind, err)
		}
	case slices.Contains(accept, answer.Status):
		result = refused
	case answer.Status != want:
		result, call.Err = refused, errors.New(fmt.Sprint(answer.Status))
		w.broken("%s: %s", kind, answer)
	}
	w.Note(call)
	return result, answer
}

func (w *worker) object(answer e2e.Answer) e2e.Object {
	object, err := answer.Object()
	if err != nil {
		w.broken("%v", err)
	}
	return object
}

// visit is a user's first visit, an administrator's work about the account, and
// one of the ways in which access ends.
func (w *worker) visit(ctx context.Context) {
	a := w.register(ctx)
	if a == nil {
		return
	}
	if w.random.IntN(4) == 0 {
		w.mustBeRefused(ctx, "login of an unverified account", 0, time.Now(), w.login(a, e2e.Password))
		return
	}
	if !w.update(ctx, a) {
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
	w.unique("access token", token.Text("service_access_token_href"))
	access, refresh := token.Text("access_token"), token.Text("refresh_token")
	w.do(ctx, "validation", w.validation(access), http.StatusFound)
	w.do(ctx, "refresh", w.refresh(refresh), http.StatusOK)
	switch w.random.IntN(6) {
	case 0:
		w.revoke(ctx, access, refresh)
	case 1:
		w.disable(ctx, a, access, refresh)
	case 2:
		w.remove(ctx, a, access, refresh)
	case 3:
		w.changePassword(ctx, a, refresh)
	}
}

// from is an address that no other login comes from.
func (w *worker) from() string {
	return fmt.Sprintf("2001:db8:%x:%x::1", w.random.IntN(1<<16), w.random.IntN(1<<16))
}

func (w *worker) login(a *account, password string) e2e.Request {
	return e2e.Login(w.site.Application, a.email, password).From(w.from())
}

func (w *worker) grant(form url.Values) e2e.Request {
	return e2e.Post(w.application+"/oauth/token", form).From(w.from())
}

func (w *worker) refresh(token string) e2e.Request { return w.grant(e2e.RefreshGrant(token)) }

func (w *worker) validation(token string) e2e.Request {
	return e2e.Get(w.application + "/authTokens/" + token)
}

// register creates an account, now and then by two requests at once, of which one
// may succeed.
func (w *worker) register(ctx context.Context) *account {
	a := &account{email: e2e.Unique("fault") + "@example.test", status: []string{"UNVERIFIED"}}
	w.attempted(a)
	request := e2e.Post(w.site.Directory.Href()+"/accounts", e2e.Object{"email": a.email, "password": e2e.Password})
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
		w.broken("%s was registered twice: %s and %s", a.email, answers[0], answers[1])
	}
	if results[0] == refused && results[1] == refused {
		w.broken("%s was registered by neither of two: %s and %s", a.email, answers[0], answers[1])
	}
	if i := slices.Index(results, done); i >= 0 {
		return w.registered(a, w.object(answers[i]).Href())
	}
	return nil
}

// update lets the account log in, which an administrator may do without the mail.
func (w *worker) update(ctx context.Context, a *account) bool {
	name := e2e.Unique("name")
	w.may(func() { a.status, a.given = append(a.status, "ENABLED"), append(a.given, name) })
	result, _ := w.do(ctx, "update", e2e.Post(a.href, e2e.Object{"status": "ENABLED", "givenName": name}), http.StatusOK)
	if result == done {
		w.may(func() { a.status, a.given = []string{"ENABLED"}, []string{name} })
	}
	return result == done
}

func (w *worker) customData(ctx context.Context, a *account) {
	for range 2 {
		value := w.random.IntN(1 << 30)
		w.may(func() { a.data = append(a.data, value) })
		if result, _ := w.do(ctx, "update", e2e.Post(a.href+"/customData", e2e.Object{"n": value}), http.StatusOK); result == done {
			w.may(func() { a.data = []int{value} })
		}
	}
}

// read reads what was written, which nobody else writes.
func (w *worker) read(ctx context.Context, a *account) {
	if result, answer := w.do(ctx, "read", e2e.Get(a.href), http.StatusOK); result == done {
		w.compare(a, w.object(answer))
	}
	if result, answer := w.do(ctx, "read", e2e.Get(a.href+"/customData"), http.StatusOK); result == done {
		w.compareData(a, w.object(answer))
	}
	w.do(ctx, "read", e2e.Get(w.site.Directory.Href()+"/accounts?limit=5&email="+url.QueryEscape(a.email)), http.StatusOK)
}

// mustBeRefused sends a request that must not succeed, until it is refused. One that is
// sent later than life after the time that access ended must not succeed.
func (w *worker) mustBeRefused(ctx context.Context, what string, life time.Duration, ended time.Time, r e2e.Request) {
	for giveUp := ended.Add(life + answerLimit); time.Now().Before(giveUp); {
		sent := time.Now().Add(pause) // or later, as do waits for that
		result, answer := w.do(ctx, what, r, -1, http.StatusOK, http.StatusFound,
			http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound)
		if result != refused {
			continue
		}
		if answer.Status >= http.StatusBadRequest {
			return
		}
		after := sent.Sub(ended)
		w.delayed(what, after)
		if after > life {
			w.broken("%s succeeds %s after access ended: %s", what, after.Round(time.Millisecond), answer)
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
	w.may(func() { a.status = append(a.status, "DISABLED") })
	result, _ := w.do(ctx, "update", e2e.Post(a.href, e2e.Object{"status": "DISABLED"}), http.StatusOK)
	if ended := time.Now(); result == done {
		w.may(func() { a.status = []string{"DISABLED"} })
		w.mustHaveEnded(ctx, "a disabled account", ended, a, access, refresh)
	}
}

func (w *worker) remove(ctx context.Context, a *account, access, refresh string) {
	w.may(func() { a.mayBeGone = true })
	result, _ := w.do(ctx, "deletion", e2e.Delete(a.href), http.StatusNoContent)
	if ended := time.Now(); result == done {
		w.may(func() { a.gone = true })
		w.mustHaveEnded(ctx, "a deleted account", ended, a, access, refresh)
	}
}

func (w *worker) mustHaveEnded(ctx context.Context, what string, ended time.Time, a *account, access, refresh string) {
	w.mustBeRefused(ctx, "login of "+what, 0, ended, w.login(a, e2e.Password))
	w.mustBeRefused(ctx, "validation of "+what+"'s token", endedLife, ended, w.validation(access))
	w.mustBeRefused(ctx, "refresh of "+what, endedLife, ended, w.refresh(refresh))
}

func (w *worker) changePassword(ctx context.Context, a *account, refresh string) {
	const other = "Changeme2!"
	w.may(func() { a.password = "" })
	result, _ := w.do(ctx, "update", e2e.Post(a.href, e2e.Object{"password": other}), http.StatusOK)
	if ended := time.Now(); result == done {
		w.may(func() { a.password = other })
		w.mustBeRefused(ctx, "login with the password before", 0, ended, w.login(a, e2e.Password))
		w.mustBeRefused(ctx, "refresh after a change of the password", endedLife, ended, w.refresh(refresh))
		w.do(ctx, "login", w.login(a, other), http.StatusOK)
	}
}

// deletedKey creates an API key, uses it and deletes it.
func (w *worker) deletedKey(ctx context.Context) {
	result, answer := w.do(ctx, "key", e2e.Post(w.owner+"/apiKeys", e2e.Object{}), http.StatusCreated)
	if result != done {
		return
	}
	key := w.object(answer)
	w.unique("API key", key.Text("id"))
	holder := *w
	holder.client = w.client.With(key.Text("id"), key.Text("secret"))
	for range 3 {
		holder.do(ctx, "read", e2e.Get("/tenants/current"), http.StatusFound)
		w.client.HTTP.CloseIdleConnections()
	}
	if result, _ := w.do(ctx, "key", e2e.Delete(key.Href()), http.StatusNoContent); result != done {
		return
	}
	ended := time.Now()
	for range 4 {
		holder.mustBeRefused(ctx, "request with a deleted API key", keyLife+w.slack, ended, e2e.Get("/tenants/current"))
		w.client.HTTP.CloseIdleConnections()
	}
}

// wrongPassword tries one password after another for one login at one address.
func (w *worker) wrongPassword(ctx context.Context) {
	request := e2e.Login(w.site.Application, w.victim, fmt.Sprint("Wrong", w.random.IntN(1<<30))).From("2001:db8::dead")
	<-time.After(5 * pause)
	answer, err := w.client.Do(ctx, request)
	if err != nil {
		return
	}
	switch answer.Status {
	case http.StatusOK:
		w.broken("a wrong password is accepted: %s", answer)
	case http.StatusBadRequest:
		w.triedPassword()
	}
}
