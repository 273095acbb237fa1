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
	// A login may fail pairLimit times at one address in pairWindow (docs/interface/limits.md).
	pairLimit, pairWindow = 20, 15 * time.Minute
	// maxReported is how many violations are printed.
	maxReported = 40
)

// account is one account, with the values that it may have: the value that was acknowledged
// last, and those that were sent since without an answer.
type account struct {
	email        string
	href         string // "" where the registration was not acknowledged
	status       []string
	givenName    []string
	number       []int  // member of its customData
	password     string // "" where it is not known
	maybeDeleted bool
	deleted      bool
}

// checker is the model of what the deployment has acknowledged to clients. It checks that
// nothing acknowledged is lost and no limit is exceeded (invariants), while faults happen
// and after the deployment has recovered.
type checker struct {
	began        time.Time
	lockoutLogin string        // login name that is tried with wrong passwords, up to the limit
	slack        time.Duration // is added to time limits that a busy machine exceeds

	mu             sync.Mutex
	accounts       []*account
	ids            map[string]bool
	delays         map[string]time.Duration // longest time for which access continued after its end
	wrongPasswords int                      // that were answered as wrong
	clockJumps     int
	violations     []string
}

func newChecker(lockoutLogin string, slack time.Duration) *checker {
	return &checker{began: time.Now(), lockoutLogin: lockoutLogin, slack: slack, ids: map[string]bool{}, delays: map[string]time.Duration{}}
}

// violation records that an invariant does not hold.
func (c *checker) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, time.Now().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// update changes the model.
func (c *checker) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *checker) addAccount(a *account) { c.update(func() { c.accounts = append(c.accounts, a) }) }

func (c *checker) registered(a *account, href string) *account {
	c.checkUnique("account", href)
	c.update(func() { a.href, a.password = href, e2e.Password })
	return a
}

func (c *checker) checkUnique(what, id string) {
	c.mu.Lock()
	known := id == "" || c.ids[id]
	c.ids[id] = true
	c.mu.Unlock()
	if known {
		c.violation("the id of a new %s is not unique: %q", what, id)
	}
}

func (c *checker) countWrongPassword() { c.update(func() { c.wrongPasswords++ }) }

// countClockJump records that a clock jumped, which may start another window of a limit.
func (c *checker) countClockJump() { c.update(func() { c.clockJumps++ }) }

func (c *checker) recordDelay(what string, after time.Duration) {
	c.update(func() { c.delays[what] = max(c.delays[what], after) })
}

// compareAccount checks that an account that was read has values that it may have.
func (c *checker) compareAccount(a *account, found e2e.Object) {
	var wrong string
	c.update(func() {
		switch {
		case found.Text("email") != a.email || !slices.Contains(a.status, found.Text("status")):
			wrong = fmt.Sprintf("%v", a.status)
		case len(a.givenName) > 0 && !slices.Contains(a.givenName, found.Text("givenName")) &&
			!(len(a.status) > 1 && found.Text("givenName") == ""):
			wrong = fmt.Sprintf("%v", a.givenName)
		}
	})
	if wrong != "" {
		c.violation("an account is not as it was acknowledged, %s %s: %v", a.email, wrong, found)
	}
}

func (c *checker) compareCustomData(a *account, found e2e.Object) {
	value, exists := found["n"].(float64)
	var wrong bool
	c.update(func() {
		acknowledged := len(a.number) == 1
		wrong = exists && !slices.Contains(a.number, int(value)) || !exists && acknowledged
	})
	if wrong {
		c.violation("the customData of %s is not as it was acknowledged, %v: %v", a.href, a.number, found)
	}
}

// check compares the deployment, after it has recovered, with the model.
func (c *checker) check(t *testing.T, client *e2e.Client, fixture e2e.Fixture) {
	t.Helper()
	found := map[string]e2e.Object{}
	for _, object := range client.All(t, fixture.Directory.Link(t, "accounts")+"?expand=customData") {
		if found[object.Text("email")] != nil {
			c.violation("%s exists twice", object.Text("email"))
		}
		found[object.Text("email")] = object
	}
	var acknowledged []e2e.Registration
	counts := map[string]int{}
	for _, a := range c.accounts {
		object := found[a.email]
		switch {
		case a.deleted && object != nil:
			c.violation("%s was deleted and exists", a.email)
		case a.href == "" || a.deleted:
			counts["not acknowledged or deleted"]++
		case object == nil && !a.maybeDeleted:
			c.violation("%s was acknowledged as %s and does not exist", a.email, a.href)
		case object != nil:
			counts["exist"]++
			c.compareAccount(a, object)
			c.compareCustomData(a, object.Object("customData"))
			acknowledged = append(acknowledged, e2e.Registration{Email: a.email, Href: a.href})
		}
	}
	t.Logf("accounts: %v", counts)
	c.checkLogins(t, client, fixture)
	client.CheckAcknowledged(t, fixture.Directory, acknowledged, mailLimit)
	c.checkTokens(t, client)
	if windows := 1 + c.clockJumps + int(time.Since(c.began)/pairWindow); c.wrongPasswords > windows*pairLimit {
		c.violation("%d wrong passwords of one login were answered as wrong at one address, in %d windows", c.wrongPasswords, windows)
	}
	t.Logf("%d wrong passwords of one login were answered as wrong at one address; ids: %d;"+
		" longest time for which access continued after its end: %v",
		c.wrongPasswords, len(c.ids), c.delays)
	for _, problem := range c.violations[:min(len(c.violations), maxReported)] {
		t.Error(problem)
	}
	if len(c.violations) > maxReported {
		t.Errorf("and %d more", len(c.violations)-maxReported)
	}
}

// checkLogins tries some logins of each kind again after all faults.
func (c *checker) checkLogins(t *testing.T, client *e2e.Client, fixture e2e.Fixture) {
	t.Helper()
	const each = 40
	tried := map[string]int{}
	for i, a := range slices.Backward(c.accounts) {
		kind, want := "enabled", http.StatusOK
		switch {
		case a.href == "" || a.password == "" || len(a.status) != 1 || a.maybeDeleted != a.deleted:
			continue
		case a.deleted:
			kind, want = "deleted", http.StatusBadRequest
		case a.status[0] != "ENABLED":
			kind, want = a.status[0], http.StatusBadRequest
		}
		if tried[kind]++; tried[kind] > each {
			continue
		}
		from := fmt.Sprintf("2001:db8:ffff:%x::1", i%(1<<16))
		answer, err := client.Do(t.Context(), e2e.Login(fixture.Application, a.email, a.password).From(from))
		if err != nil || answer.Status != want {
			c.violation("the login of an account that is %s: %s, %v", kind, answer, err)
		}
	}
}

// checkTokens uses the tokens of some verification mails twice at the same time: each may succeed once.
func (c *checker) checkTokens(t *testing.T, client *e2e.Client) {
	t.Helper()
	used := 0
	for _, a := range slices.Backward(c.accounts) {
		if a.href == "" || a.deleted || len(a.status) != 1 || a.status[0] != "UNVERIFIED" {
			continue
		}
		if used++; used > 10 {
			return
		}
		messages, err := client.Mailbox(t.Context(), url.Values{"to": {a.email}})
		if err != nil || len(messages) == 0 {
			c.violation("no mail to %s: %v", a.email, err)
			continue
		}
		token, err := messages[0].Sptoken()
		if err != nil {
			c.violation("%v", err)
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
			c.violation("the token of a mail, used twice at once, answers %v", statuses)
		}
	}
}
