package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

const (
	// mailLimit bounds the wait for the last mail.
	mailLimit = 5 * time.Minute
	// A login may fail so often at one address in so much time (docs/interface/limits.md).
	pairLimit, pairWindow = 20, 15 * time.Minute
	// reported is how many broken promises are printed.
	reported = 40
)

// account is one account, with the values that it may have: the last that was
// acknowledged, and those that were sent since without an answer.
type account struct {
	email     string
	href      string // "" where the registration was not acknowledged
	status    []string
	given     []string
	data      []int
	password  string // "" where it is not known
	mayBeGone bool
	gone      bool
}

// promises is what clients were promised.
type promises struct {
	began  time.Time
	victim string        // login that nobody may try more often than the limit allows
	slack  time.Duration // that is added to bounds that a busy machine breaks

	lock     sync.Mutex
	accounts []*account
	ids      map[string]bool
	delays   map[string]time.Duration // longest time for which access went on
	tried    int
	jumps    int
	problems []string
}

func newPromises(victim string, slack time.Duration) *promises {
	return &promises{began: time.Now(), victim: victim, slack: slack, ids: map[string]bool{}, delays: map[string]time.Duration{}}
}

// broken records a promise that was not kept.
func (p *promises) broken(format string, args ...any) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.problems = append(p.problems, time.Now().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// may changes what an account may be.
func (p *promises) may(change func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	change()
}

func (p *promises) attempted(a *account) { p.may(func() { p.accounts = append(p.accounts, a) }) }

func (p *promises) registered(a *account, href string) *account {
	p.unique("account", href)
	p.may(func() { a.href, a.password = href, e2e.Password })
	return a
}

func (p *promises) unique(what, id string) {
	p.lock.Lock()
	known := id == "" || p.ids[id]
	p.ids[id] = true
	p.lock.Unlock()
	if known {
		p.broken("the id of a new %s is not new: %q", what, id)
	}
}

func (p *promises) triedPassword() { p.may(func() { p.tried++ }) }

// jumped records that a clock jumped, which may end the window of a limit.
func (p *promises) jumped() { p.may(func() { p.jumps++ }) }

func (p *promises) delayed(what string, after time.Duration) {
	p.may(func() { p.delays[what] = max(p.delays[what], after) })
}

// compare holds an account that was read to what it may be.
func (p *promises) compare(a *account, found e2e.Object) {
	var wrong string
	p.may(func() {
		switch {
		case found.Text("email") != a.email || !slices.Contains(a.status, found.Text("status")):
			wrong = fmt.Sprintf("%v", a.status)
		case len(a.given) > 0 && !slices.Contains(a.given, found.Text("givenName")) && !(len(a.status) > 1 && found.Text("givenName") == ""):
			wrong = fmt.Sprintf("%v", a.given)
		}
	})
	if wrong != "" {
		p.broken("an account is not as it was acknowledged, %s %s: %v", a.email, wrong, found)
	}
}

func (p *promises) compareData(a *account, found e2e.Object) {
	value, there := found["n"].(float64)
	var wrong bool
	p.may(func() {
		acknowledged := len(a.data) == 1
		wrong = there && !slices.Contains(a.data, int(value)) || !there && acknowledged
	})
	if wrong {
		p.broken("the customData of %s is not as it was acknowledged, %v: %v", a.href, a.data, found)
	}
}

// check holds the deployment, which has recovered, to all that was promised.
func (p *promises) check(t *testing.T, client *e2e.Client, site e2e.Site) {
	t.Helper()
	found := map[string]e2e.Object{}
	for _, object := range client.All(t, site.Directory.Link(t, "accounts")+"?expand=customData") {
		if found[object.Text("email")] != nil {
			p.broken("%s is there twice", object.Text("email"))
		}
		found[object.Text("email")] = object
	}
	var promised []e2e.Registration
	counts := map[string]int{}
	for _, a := range p.accounts {
		object := found[a.email]
		switch {
		case a.gone && object != nil:
			p.broken("%s was deleted and is there", a.email)
		case a.href == "" || a.gone:
			counts["not acknowledged or deleted"]++
		case object == nil && !a.mayBeGone:
			p.broken("%s was acknowledged as %s and is not there", a.email, a.href)
		case object != nil:
			counts["there"]++
			p.compare(a, object)
			p.compareData(a, object.Object("customData"))
			promised = append(promised, e2e.Registration{Email: a.email, Href: a.href})
		}
	}
	t.Logf("accounts: %v", counts)
	p.checkLogins(t, client, site)
	client.CheckPromises(t, site.Directory, promised, mailLimit)
	p.checkTokens(t, client)
	if windows := 1 + p.jumps + int(time.Since(p.began)/pairWindow); p.tried > windows*pairLimit {
		p.broken("%d wrong passwords of one login were answered as wrong at one address, in %d windows", p.tried, windows)
	}
	t.Logf("%d wrong passwords of one login were answered as wrong at one address; ids: %d; longest life of what had ended: %v",
		p.tried, len(p.ids), p.delays)
	for _, problem := range p.problems[:min(len(p.problems), reported)] {
		t.Error(problem)
	}
	if len(p.problems) > reported {
		t.Errorf("and %d more", len(p.problems)-reported)
	}
}

// checkLogins tries some logins of each kind again, when nothing is broken any more.
func (p *promises) checkLogins(t *testing.T, client *e2e.Client, site e2e.Site) {
	t.Helper()
	const each = 40
	tried := map[string]int{}
	for i, a := range slices.Backward(p.accounts) {
		kind, want := "enabled", http.StatusOK
		switch {
		case a.href == "" || a.password == "" || len(a.status) != 1 || a.mayBeGone != a.gone:
			continue
		case a.gone:
			kind, want = "deleted", http.StatusBadRequest
		case a.status[0] != "ENABLED":
			kind, want = a.status[0], http.StatusBadRequest
		}
		if tried[kind]++; tried[kind] > each {
			continue
		}
		from := fmt.Sprintf("2001:db8:ffff:%x::1", i%(1<<16))
		answer, err := client.Do(t.Context(), e2e.Login(site.Application, a.email, a.password).From(from))
		if err != nil || answer.Status != want {
			p.broken("the login of an account that is %s: %s, %v", kind, answer, err)
		}
	}
}

// checkTokens uses the tokens of some mails twice at once: each is good once.
func (p *promises) checkTokens(t *testing.T, client *e2e.Client) {
	t.Helper()
	used := 0
	for _, a := range slices.Backward(p.accounts) {
		if a.href == "" || a.gone || len(a.status) != 1 || a.status[0] != "UNVERIFIED" {
			continue
		}
		if used++; used > 10 {
			return
		}
		messages, err := client.Mailbox(t.Context(), url.Values{"to": {a.email}})
		if err != nil || len(messages) == 0 {
			p.broken("no mail to %s: %v", a.email, err)
			continue
		}
		token, err := messages[0].Sptoken()
		if err != nil {
			p.broken("%v", err)
			continue
		}
		statuses := make([]int, 2)
		var both sync.WaitGroup
		for i := range statuses {
			both.Go(func() {
				answer, _ := client.Do(context.WithoutCancel(t.Context()),
					e2e.Post("/accounts/emailVerificationTokens/"+token, nil))
				statuses[i] = answer.Status
			})
		}
		both.Wait()
		slices.Sort(statuses)
		if statuses[0] != http.StatusOK || statuses[1] < http.StatusBadRequest {
			p.broken("the token of a mail, used twice at once, answers %v", statuses)
		}
	}
}
