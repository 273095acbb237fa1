package distributed_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

const (
	// stalenessLimit is how long after the answer to a change a validation may still
	// succeed (services/oauth/README.md#limits).
	stalenessLimit = 100 * time.Millisecond

	// The caches are full when validations have succeeded for warmTime, of which the
	// gateway marks the first ones because of the changes before, and warmHits look-ups
	// in each cache of each replica were answered by it.
	warmTime = 500 * time.Millisecond
	warmHits = 5

	// lateRefusals is how many validations of a client have to be refused after
	// stalenessLimit: a few for each replica of the OAuth service.
	lateRefusals = 8

	// validators is how many clients validate.
	validators = 4

	// validateLimit bounds the validations before and after one change.
	validateLimit = 2 * time.Minute
)

// revocation is one way in which a token ceases to be valid: a request that changes something.
type revocation struct {
	validation e2e.Request
	by         e2e.Key // of the client that validates
	change     e2e.Request
}

// revocations are all ways in which a token ceases to be valid. make makes the token.
var revocations = []struct {
	name string
	make func(t *testing.T) revocation
}{
	{"the access token is deleted", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(remove(l.token.Text("service_access_token_href")))
	}},
	{"the token is revoked", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(post(l.fixture.Application.Href()+"/oauth/revoke", url.Values{"token": {l.token.Text("access_token")}}))
	}},
	{"the Client API logs out", revokedByLogout},
	{"the account is disabled", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(post(l.account.Href(), disabled))
	}},
	{"the account is deleted", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(remove(l.account.Href()))
	}},
	{"the password is changed by an administrator", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(post(l.account.Href(), e2e.Object{"password": "Changeme2!"}))
	}},
	{"the directory is disabled", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(post(l.fixture.Directory.Href(), disabled))
	}},
	{"the directory is deleted", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(remove(l.fixture.Directory.Href()))
	}},
	{"the mapping is removed", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(remove(l.fixture.Application.Link(t, "defaultAccountStoreMapping")))
	}},
	{"the application is disabled", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(post(l.fixture.Application.Href(), disabled))
	}},
	{"the application is deleted", func(t *testing.T) revocation {
		l := logIn(t, client)
		return l.revokedBy(remove(l.fixture.Application.Href()))
	}},
	{"the API key that signed it is disabled", func(t *testing.T) revocation {
		key, keyClient := newKey(t)
		return logIn(t, keyClient).revokedBy(post(key, disabled))
	}},
	{"the API key that signed it is deleted", func(t *testing.T) revocation {
		key, keyClient := newKey(t)
		return logIn(t, keyClient).revokedBy(remove(key))
	}},
	{"the API key that validates it is disabled", func(t *testing.T) revocation {
		key, keyClient := newKey(t)
		e := logIn(t, client).revokedBy(post(key, disabled))
		e.by = keyClient.Key
		return e
	}},
	{"the API key that validates it is deleted", func(t *testing.T) revocation {
		key, keyClient := newKey(t)
		e := logIn(t, client).revokedBy(remove(key))
		e.by = keyClient.Key
		return e
	}},
}

var disabled = e2e.Object{"status": "DISABLED"}

func post(address string, body any) e2e.Request {
	return e2e.Request{Method: http.MethodPost, URL: address, Body: body}
}

func remove(address string) e2e.Request { return e2e.Request{Method: http.MethodDelete, URL: address} }

func passwordGrant(account e2e.Object) url.Values {
	return url.Values{"grant_type": {"password"}, "username": {account.Text("email")}, "password": {e2e.Password}}
}

func validation(application e2e.Object, token string) e2e.Request {
	return e2e.Request{Method: http.MethodGet, URL: application.Href() + "/authTokens/" + token}
}

// login is the token of a new account of a new fixture.
type login struct {
	fixture e2e.Fixture
	account e2e.Object
	token   e2e.Object
}

func logIn(t *testing.T, keyClient *e2e.Client) login {
	t.Helper()
	l := login{fixture: client.NewFixture(t)}
	l.account = client.Register(t, l.fixture.Application.Link(t, "accounts"))
	l.token = keyClient.Token(t, l.fixture.Application.Href(), passwordGrant(l.account))
	return l
}

func (l login) revokedBy(change e2e.Request) revocation {
	return revocation{validation: validation(l.fixture.Application, l.token.Text("access_token")), by: client.Key, change: change}
}

// revokedByLogout ends a token of the Client API.
func revokedByLogout(t *testing.T) revocation {
	l := login{fixture: client.NewFixture(t)}
	l.account = client.Register(t, l.fixture.Application.Link(t, "accounts"))
	config := client.Get(t, l.fixture.Application.Link(t, "webConfig"))
	at := client.Key.HostURL() + "/client/" + config.Text("dnsLabel")
	l.token = client.WantObject(t, http.StatusOK, e2e.Request{
		Method: http.MethodPost, URL: at + "/oauth/token", Body: passwordGrant(l.account), Anonymous: true,
	})
	return l.revokedBy(e2e.Request{
		Method: http.MethodPost, URL: at + "/logout", Anonymous: true,
		Header: http.Header{"Authorization": {"Bearer " + l.token.Text("access_token")}},
	})
}

// newKey makes another API key of the client's account.
func newKey(t *testing.T) (href string, keyClient *e2e.Client) {
	t.Helper()
	own := client.Get(t, "/apiKeys/"+client.Key.ID)
	key := client.Create(t, own.Link(t, "account")+"/apiKeys", e2e.Object{})
	client.DeleteAtEnd(t, key.Href())
	return key.Href(), client.With(key.Text("id"), key.Text("secret"))
}

// throughGateway is a client whose connections all go to one gateway.
func throughGateway(i int) *e2e.Client {
	own, transport := *client, client.HTTP.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, deployment.Address("gateway", i))
	}
	own.HTTP = &http.Client{Timeout: client.HTTP.Timeout, Transport: transport, CheckRedirect: client.HTTP.CheckRedirect}
	return &own
}

// TestTheEndOfATokenTakesEffectOnEveryReplica changes something through one gateway while
// clients validate in loops, so that every replica has it in its caches, and holds each
// validation that is sent stalenessLimit after the answer to the change to be refused. All
// times are the client's, so that a slow machine does not fail the test.
func TestTheEndOfATokenTakesEffectOnEveryReplica(t *testing.T) {
	gateways := []*e2e.Client{throughGateway(0), throughGateway(1)}
	load := startLoad(t)
	for _, each := range revocations {
		t.Run(each.name, func(t *testing.T) {
			e := each.make(t)
			w := watch(t, e, gateways...)
			w.end(gateways[0], e.change)
			w.wantRefusedInTime()
		})
	}
	load.wantServed(t)
}

// No process is notified of a change: events wait for Kafka, marks of changes for Redis, and
// notifications for PostgreSQL. A cache is used for as long as it may be, and then what
// it was read from is asked. Clients validate at the other gateway, because requests at
// the one that has changed something are read past the caches for a moment, which are
// then up to date.
func TestTheEndOfATokenTakesEffectOnAReplicaWithoutNotifications(t *testing.T) {
	gateways := []*e2e.Client{throughGateway(0), throughGateway(1)}
	for _, server := range []interface{ Signal(os.Signal) error }{deployment.Kafka, deployment.Redis} {
		if err := server.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Signal(syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		})
	}
	load := startLoad(t)
	for _, each := range revocations {
		t.Run(each.name, func(t *testing.T) {
			e := each.make(t)
			w, before := watch(t, e, gateways[1]), lookups(t, "stale")
			restore, err := deployment.FreezeNotifications(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := restore(); err != nil {
					t.Error(err)
				}
			})
			w.end(gateways[0], e.change)
			w.wantRefusedInTime()
			asked := 0.0
			for i, after := range lookups(t, "stale") {
				asked += after - before[i]
			}
			if asked == 0 {
				t.Error("no look-up asked PostgreSQL, which has not shown that nothing changed")
			}
		})
	}
	load.wantServed(t)
}

// load is clients that log in, validate and refresh, of another application than the
// revocations.
type load struct {
	rounds, failures atomic.Int64
}

const loadClients = 3

func startLoad(t *testing.T) *load {
	t.Helper()
	l, fixture := &load{}, client.NewFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	t.Cleanup(func() {
		stop()
		clients.Wait()
	})
	for range loadClients {
		account := client.Register(t, fixture.Application.Link(t, "accounts"))
		clients.Go(func() {
			for ctx.Err() == nil {
				if l.round(ctx, fixture.Application, account) {
					l.rounds.Add(1)
				} else if ctx.Err() == nil {
					l.failures.Add(1)
				}
			}
		})
	}
	return l
}

// round is a login, validations of its token, and refreshes.
func (l *load) round(ctx context.Context, application, account e2e.Object) bool {
	grant := func(form url.Values) (token e2e.Object, ok bool) {
		answer, err := client.Do(ctx, post(application.Href()+"/oauth/token", form))
		if err != nil || answer.Status != http.StatusOK {
			return nil, false
		}
		token, err = answer.Object()
		return token, err == nil
	}
	token, ok := grant(passwordGrant(account))
	for range 3 {
		for range 10 {
			if !ok {
				return false
			}
			answer, err := client.Do(ctx, validation(application, token.Text("access_token")))
			ok = err == nil && answer.Status == http.StatusFound
		}
		token, ok = grant(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")}})
	}
	return ok
}

// wantServed wants the clients to have been served.
func (l *load) wantServed(t *testing.T) {
	t.Helper()
	t.Logf("beside it %d logins, each with 30 validations and 3 refreshes; %d failed", l.rounds.Load(), l.failures.Load())
	if l.rounds.Load() <= l.failures.Load() {
		t.Error("the load is not served")
	}
}

// lookups are the look-ups with a result in the caches that validations use, of each
// replica.
func lookups(t *testing.T, result string) (counts []float64) {
	t.Helper()
	for _, cache := range []struct{ service, name string }{
		{"oauth", "oauth.accessTokens"}, {"oauth", "oauth.accesses"},
	} {
		for i := range 2 {
			count, err := deployment.Replica(cache.service, i).Metric(t.Context(), "doorward_cache_requests_total",
				`cache="`+cache.name+`"`, `result="`+result+`"`)
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, count)
		}
	}
	return counts
}

// watchedToken is a token that clients validate in loops.
type watchedToken struct {
	t       *testing.T
	ctx     context.Context
	clients sync.WaitGroup

	mu       sync.Mutex
	good     []time.Time     // when validations that succeeded were sent
	ended    time.Time       // when the answer to the change was there; zero before that
	refusals [validators]int // sent stalenessLimit after that, by client
	failures map[string]int  // by status or error
}

// watch validates until the end of the token takes effect, and returns when the caches of
// every replica are in use.
func watch(t *testing.T, e revocation, gateways ...*e2e.Client) *watchedToken {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), validateLimit)
	w := &watchedToken{t: t, ctx: ctx, failures: map[string]int{}}
	t.Cleanup(func() {
		cancel()
		w.clients.Wait()
	})
	before := lookups(t, "hit")
	for i := range validators {
		validator := gateways[i%len(gateways)].With(e.by.ID, e.by.Secret)
		w.clients.Go(func() {
			for w.mustContinue(i) {
				w.validate(i, validator, e.validation)
			}
		})
	}
	err := e2e.Await(ctx, "every replica to use its caches", func(context.Context) error {
		if !w.isWarm() {
			return fmt.Errorf("too few validations came from caches: %s", w)
		}
		after := lookups(t, "hit")
		for i := range after {
			if after[i] < before[i]+warmHits {
				return fmt.Errorf("look-ups that caches answered: %v, then %v; %s", before, after, w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// isWarm reports whether validations have succeeded for warmTime.
func (w *watchedToken) isWarm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.good) > 0 && w.good[len(w.good)-1].Sub(w.good[0]) > warmTime
}

// mustContinue reports whether a client has to validate once more.
func (w *watchedToken) mustContinue(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ctx.Err() == nil && w.refusals[i] < lateRefusals
}

func (w *watchedToken) validate(i int, validator *e2e.Client, request e2e.Request) {
	sent := time.Now()
	answer, err := validator.Do(w.ctx, request)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
	case err != nil:
		w.failures[err.Error()]++
	case answer.Status == http.StatusFound:
		w.good = append(w.good, sent)
	case answer.Status == http.StatusTooManyRequests || answer.Status >= http.StatusInternalServerError:
		w.failures[fmt.Sprint(answer.Status)]++
	case !w.ended.IsZero() && sent.After(w.ended.Add(stalenessLimit)):
		w.refusals[i]++
	}
}

// end makes the change.
func (w *watchedToken) end(through *e2e.Client, change e2e.Request) {
	w.t.Helper()
	answer := through.Call(w.t, change)
	ended := time.Now()
	if answer.Status >= http.StatusBadRequest {
		w.t.Fatalf("the change is answered with %s", answer)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = ended
}

// wantRefusedInTime wants the validations that are sent stalenessLimit after the change to be refused.
func (w *watchedToken) wantRefusedInTime() {
	w.t.Helper()
	w.clients.Wait()
	var longest time.Duration
	for _, sent := range w.good {
		longest = max(longest, sent.Sub(w.ended))
	}
	w.t.Logf("without effect for %s; %s", longest.Round(100*time.Microsecond), w)
	if longest > stalenessLimit {
		w.t.Errorf("a validation that was sent %s after the answer to the change succeeded", longest)
	}
	for i := range validators {
		if w.refusals[i] < lateRefusals {
			w.t.Errorf("client %d was refused %d times: %s", i, w.refusals[i], w)
		}
	}
}

func (w *watchedToken) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d validations succeeded, refused were %v, failed %v", len(w.good), w.refusals, w.failures)
}
