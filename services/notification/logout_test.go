package notification

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// relyingParty is a client with an address for back-channel logouts.
type relyingParty struct {
	*httptest.Server
	id     id.ID
	mu     sync.Mutex
	tokens []string // that it was sent
	faults []string // what was wrong with requests
}

// newRelyingParty starts a client, which answers as the test says; nil: 200.
func newRelyingParty(t testing.TB, answer http.HandlerFunc, change ...func(*httptest.Server)) *relyingParty {
	t.Helper()
	p := &relyingParty{id: id.New(clock)}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.take(r)
		if answer != nil {
			answer(w, r)
		}
	}))
	p.TLS, p.Config.ErrorLog = trusted.Clone(), log.New(io.Discard, "", 0)
	for _, c := range change {
		c(p.Server)
	}
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

// take checks a request by section 2.5 of the standard, and keeps its logout token.
func (p *relyingParty) take(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := r.ParseForm()
	switch kind := r.Header.Get("Content-Type"); {
	case err != nil, r.Method != http.MethodPost, kind != "application/x-www-form-urlencoded",
		r.TLS.Version < tls.VersionTLS12, r.URL.RawQuery != "", len(r.PostForm) != 1, len(r.PostForm["logout_token"]) != 1:
		p.faults = append(p.faults, fmt.Sprintf("%s %s %s %v", r.Method, r.URL, kind, r.PostForm))
	}
	p.tokens = append(p.tokens, r.PostForm.Get("logout_token"))
}

// received returns the logout tokens that the client was sent.
func (p *relyingParty) received(t testing.TB) []string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) > 0 {
		t.Errorf("the client got %v", p.faults)
	}
	return append([]string{}, p.tokens...)
}

// signer answers as the oauth service does: with a token of its own for each attempt.
type signer struct {
	oauthapi.OpenID
	mu        sync.Mutex
	addresses map[id.ID]string // of clients
	err       error
	asked     []oauthapi.AskLogoutToken
}

func (g *signer) LogoutToken(_ context.Context, in oauthapi.AskLogoutToken) (oauthapi.LogoutToken, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, in)
	if g.err != nil {
		return oauthapi.LogoutToken{}, g.err
	}
	address, ok := g.addresses[in.Client]
	if !ok {
		return oauthapi.LogoutToken{}, apierr.NotFound
	}
	return oauthapi.LogoutToken{Address: address, Token: secure.Secret(fmt.Sprintf("%s.%d", in.JTI, len(g.asked)))}, nil
}

// register gives clients an address.
func (g *signer) register(clients ...*relyingParty) *signer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.addresses == nil {
		g.addresses = map[id.ID]string{}
	}
	for _, p := range clients {
		g.addresses[p.id] = p.URL + "/logout"
	}
	return g
}

// fail makes the oauth service fail; nil: it works again.
func (g *signer) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *signer) requests() []oauthapi.AskLogoutToken {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]oauthapi.AskLogoutToken{}, g.asked...)
}

// newLogoutOffice returns an office, and a replica of the service with that oauth service.
func newLogoutOffice(t testing.TB, g *signer, change ...func(*Config)) (*office, *Service) {
	t.Helper()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service(change...)
	s.peers.OAuth = g
	return o, s
}

// endSession lets the service take the end of a session.
func (o *office) endSession(s *Service, tenant id.ID, clients ...id.ID) (events.Envelope, events.SessionEnded) {
	o.t.Helper()
	event := events.SessionEnded{Tenant: tenant, Account: id.New(o.now()), Session: id.New(o.now()), Clients: clients}
	e := events.Envelope{ID: id.New(o.now()), Tenant: tenant, Subject: event.Account, At: o.now(), RequestID: "request-1"}
	if err := s.sessionEnded(o.t.Context(), e, event); err != nil {
		o.t.Fatal(err)
	}
	return e, event
}

func TestEachClientOfASessionIsToldOfItsEndOnce(t *testing.T) {
	t.Parallel()
	shop, forum := newRelyingParty(t, nil), newRelyingParty(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	g := new(signer).register(shop, forum)
	o, s := newLogoutOffice(t, g)
	e, event := o.endSession(s, o.tenant, shop.id, forum.id)
	if err := s.sessionEnded(t.Context(), e, event); err != nil { // the event comes twice
		t.Fatal(err)
	}
	o.run(s)
	rows := o.await("sent", all(store.Sent))
	if len(rows) != 2 || rows[0].HasToken || rows[1].HasToken || rows[0].LastError != "" {
		t.Errorf("the deliveries are %+v", rows)
	}
	sent := map[string]int{}
	for _, token := range append(shop.received(t), forum.received(t)...) {
		jti, _, _ := strings.Cut(token, ".")
		sent[jti]++
	}
	if len(shop.received(t)) != 1 || len(forum.received(t)) != 1 || sent[rows[0].ID.String()] != 1 ||
		sent[rows[1].ID.String()] != 1 {
		t.Errorf("the clients were sent %v", sent)
	}
	for _, in := range g.requests() {
		if in.Tenant != o.tenant || in.Account != event.Account || in.Session != event.Session.String() {
			t.Errorf("the oauth service was asked for %+v", in)
		}
	}
}

// The client verifies what the oauth service has signed, by section 2.6 of the standard, and refuses it otherwise.
func TestAClientAcceptsTheLogoutTokenOfItsProvider(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	var clientID string
	session := id.New(clock)
	verify := func(text string) error {
		keys, err := d.Service.OpenID.Keys(t.Context(), d.Application)
		if err != nil {
			return err
		}
		document, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		header, claims, err := verifyToken(document, text)
		if err != nil {
			return err
		}
		issued, _ := claims["iat"].(float64)
		expires, _ := claims["exp"].(float64)
		_, hasNonce := claims["nonce"]
		switch {
		case header["typ"] != "logout+jwt", claims["aud"] != clientID, claims["sub"] != d.Account.String(),
			claims["iss"] != oauthtest.Base.Host()+"/oidc/"+d.Application.String(), claims["sid"] != session.String(),
			claims["jti"] == "", hasNonce, int64(issued) != d.Clock.Now().Unix(), expires != issued+120,
			!reflect.DeepEqual(claims["events"],
				map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}):
			return fmt.Errorf("the token has %v and %v", header, claims)
		}
		return nil
	}
	party := newRelyingParty(t, func(w http.ResponseWriter, r *http.Request) {
		if err := verify(r.PostForm.Get("logout_token")); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	client, err := d.Service.OpenID.CreateClient(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application}, relyingparty.Change{
		Name: field.Some("Shop"), RedirectURIs: field.Some([]string{"https://shop.example.test/callback"}),
		BackchannelLogoutURI: field.Some(party.URL + "/logout"),
	})
	if err != nil {
		t.Fatal(err)
	}
	clientID = client.ClientID
	o, s := newLogoutOffice(t, nil)
	s.peers.OAuth = d.Service
	e := events.Envelope{ID: id.New(clock), Tenant: d.Tenant, Subject: d.Account, At: clock}
	if err := s.sessionEnded(t.Context(), e, events.SessionEnded{Tenant: d.Tenant, Account: d.Account, Session: session,
		Clients: []id.ID{client.ID, id.New(clock)}}); err != nil {
		t.Fatal(err)
	}
	o.run(s)
	rows := o.await("done", func(rows []row) bool {
		return len(rows) == 2 && rows[0].FinishedAt != nil && rows[1].FinishedAt != nil
	})
	if states := []store.State{rows[0].State, rows[1].State}; !slices.Contains(states, store.Sent) ||
		!slices.Contains(states, store.Obsolete) || len(party.received(t)) != 1 {
		t.Errorf("of a client and one that is not there the deliveries are %v", states)
	}
}

// verifyToken verifies a JWT by a key set, and returns its header and its claims.
func verifyToken(keySet []byte, text string) (header, claims map[string]any, err error) {
	parts := strings.Split(text, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err == nil {
		err = json.Unmarshal(decoded, &header)
	}
	if err != nil {
		return nil, nil, err
	}
	keys, err := secure.ParseKeySet(keySet)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		if key.ID() == header["kid"] {
			claims, err = key.Verify(secure.Secret(text), header["alg"].(string))
			return header, claims, err
		}
	}
	return nil, nil, fmt.Errorf("no key has the id %v", header["kid"])
}

func TestTheAnswerOfAClientDecidesOnARetry(t *testing.T) {
	t.Parallel()
	elsewhere := newRelyingParty(t, nil)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		state  store.State
		says   string
	}{
		{"200", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, store.Sent, ""},
		{"400 with a reason", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_request","error_description":"jo@example.test is unknown"}`)
		}, store.Failed, "it answered 400 with the error invalid_request"},
		{"400 with a page", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"jo@example.test"}`)
		}, store.Failed, "it answered 400"},
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, store.Pending,
			"it answered 500"},
		{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, store.Pending,
			"it answered 404"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, store.Pending, "it answered 307"},
		{"a connection that breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, store.Pending,
			"EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := newRelyingParty(t, c.answer)
			o, s := newLogoutOffice(t, new(signer).register(client))
			o.endSession(s, o.tenant, client.id)
			o.run(s)
			rows := o.await(string(c.state), func(rows []row) bool {
				return len(rows) == 1 && rows[0].State == c.state && !rows[0].Leased &&
					(c.state == store.Sent || rows[0].LastError != "")
			})
			if r := rows[0]; !strings.HasSuffix(r.LastError, c.says) || strings.Contains(r.LastError, "example.test") ||
				strings.Contains(r.LastError, "127.0.0.1") {
				t.Errorf("the delivery says %q", r.LastError)
			}
			if r := rows[0]; c.state == store.Pending && (r.Failures != 1 || !r.NextTryAt.Equal(o.now().Add(5*time.Second))) {
				t.Errorf("the retry is %+v", r)
			}
			if got := client.received(t); len(got) != 1 {
				t.Errorf("the client was sent %v", got)
			}
		})
	}
	t.Cleanup(func() { // after the parallel parts
		if got := elsewhere.received(t); len(got) > 0 {
			t.Errorf("a redirect was followed with %v", got)
		}
	})
}

// A retry has a token of its own with the same jti.
func TestALogoutIsRetriedForADay(t *testing.T) {
	t.Parallel()
	client := newRelyingParty(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	o, s := newLogoutOffice(t, new(signer).register(client))
	o.endSession(s, o.tenant, client.id)
	o.run(s)
	const tries = 10
	for n := 1; n <= tries; n++ {
		rows := o.await("retried", func(rows []row) bool { return tried(rows) && rows[0].Failures == n })
		o.turn(rows[0].NextTryAt.Sub(o.now()))
	}
	o.await("retried", func(rows []row) bool { return tried(rows) && rows[0].Failures == tries+1 })
	tokens := client.received(t)
	if len(tokens) != tries+1 || tokens[0] == tokens[tries] || tokens[0][:22] != tokens[tries][:22] {
		t.Errorf("the client was sent %v", tokens)
	}
	o.turn(maxLogoutAge)
	rows := o.await("given up", all(store.Failed))
	if !strings.HasSuffix(rows[0].LastError, "it answered 503") || rows[0].FinishedAt == nil {
		t.Errorf("the delivery is %+v", rows[0])
	}
}

func TestAClientWithoutAnAddressIsNotTold(t *testing.T) {
	t.Parallel()
	o, s := newLogoutOffice(t, new(signer))
	o.endSession(s, o.tenant, id.New(clock))
	o.run(s)
	o.await("obsolete", all(store.Obsolete))
}

// The outage of the oauth service is no failure of the client.
func TestALogoutWaitsForTheOAuthService(t *testing.T) {
	t.Parallel()
	client, g := newRelyingParty(t, nil), new(signer)
	g.register(client).fail(apierr.Unavailable)
	o, s := newLogoutOffice(t, g)
	o.endSession(s, o.tenant, client.id)
	stop := o.run(s)
	rows := o.await("postponed", tried)
	stop()
	if rows[0].Failures != 0 || !rows[0].NextTryAt.Equal(o.now().Add(unavailableRetryDelay)) {
		t.Errorf("the delivery is %+v", rows[0])
	}
	g.fail(nil)
	o.turn(unavailableRetryDelay)
	o.run(s)
	o.await("sent", all(store.Sent))
}

// The process ends after the client was told, and before that is recorded.
func TestALogoutOfAProcessThatDiesIsSentAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	client := newRelyingParty(t, nil)
	g := new(signer).register(client)
	o, s := newLogoutOffice(t, g)
	o.endSession(s, o.tenant, client.id)
	d, err := s.lease(t.Context(), s.logouts)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := s.logouts.newSender()
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.send(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	other := o.service()
	other.peers.OAuth = g
	o.turn(leaseTime)
	o.run(other)
	o.await("sent", all(store.Sent))
	tokens := client.received(t)
	if len(tokens) != 2 || tokens[0] == tokens[1] || tokens[0][:22] != tokens[1][:22] {
		t.Errorf("the client was sent %v", tokens)
	}
}

func TestALogoutGoesToAPublicAddressByHTTPSAlone(t *testing.T) {
	t.Parallel()
	client, plain := newRelyingParty(t, nil), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	g := new(signer).register(client)
	g.addresses[o0] = plain.URL
	o, s := newLogoutOffice(t, g, func(c *Config) { c.Outbound = outbound.Guard{} })
	o.endSession(s, o.tenant, client.id)
	o.run(s)
	if rows := o.await("retried", tried); !strings.HasSuffix(rows[0].LastError, outbound.ErrForbidden.Error()) {
		t.Errorf("a private address says %q", rows[0].LastError)
	}
	if got := client.received(t); len(got) > 0 {
		t.Errorf("a private address was sent %v", got)
	}
	o, s = newLogoutOffice(t, g)
	o.endSession(s, o.tenant, o0)
	o.run(s)
	o.await("given up", all(store.Failed))
}

// o0 is a client.
var o0 = id.New(clock)

func TestALogoutNeedsTLSThatIsSafe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*httptest.Server){
		"a certificate that is not trusted": func(s *httptest.Server) { s.TLS = nil },
		"an old version": func(s *httptest.Server) {
			s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newRelyingParty(t, nil, change)
			o, s := newLogoutOffice(t, new(signer).register(client))
			o.endSession(s, o.tenant, client.id)
			o.run(s)
			o.await("retried", tried)
			if got := client.received(t); len(got) > 0 {
				t.Errorf("the client was sent %v", got)
			}
		})
	}
}

// Neither an answer that does not come nor one that does not end takes a worker for long.
func TestAnAttemptIsBounded(t *testing.T) {
	t.Parallel()
	silent := newRelyingParty(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	endless := newRelyingParty(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1024)); err != nil {
				return
			}
		}
	})
	_, s := newLogoutOffice(t, new(signer))
	made, err := s.logouts.newSender()
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*logoutSender)
	if c.client.Timeout != 5*time.Second {
		t.Errorf("the timeout is %s", c.client.Timeout)
	}
	if err := c.post(t.Context(), endless.URL, "token"); err != nil {
		t.Errorf("an endless answer of 200 says %v", err)
	}
	c.client.Timeout = 50 * time.Millisecond
	var timeout interface{ Timeout() bool }
	if err := c.post(t.Context(), silent.URL, "token"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("no answer says %v", err)
	}
}

// Clients of one tenant that do not answer leave workers for those of others.
func TestClientsThatDoNotAnswerDelayNoOtherTenant(t *testing.T) {
	t.Parallel()
	o, s := newLogoutOffice(t, new(signer))
	other := id.New(clock)
	for range 2 {
		o.endSession(s, o.tenant, o0)
		o.endSession(s, other, o0)
	}
	for range logoutShare {
		if !s.logoutLimit.acquire(o.tenant) {
			t.Fatal("a tenant gets fewer workers than its share")
		}
	}
	for range 2 {
		if d, err := s.lease(t.Context(), s.logouts); err != nil || d.TenantID != other {
			t.Errorf("a worker leased a logout of %s, %v; want one of the other tenant", d.TenantID, err)
		}
	}
	if d, err := s.lease(t.Context(), s.logouts); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a worker leased %+v, %v", d, err)
	}
	sender := &logoutSender{s, newLogoutClient(loopback)}
	if err := sender.send(t.Context(), store.Delivery{TenantID: o.tenant}); !errors.Is(err, errServerInUse) {
		t.Errorf("a worker too many sends: %v", err)
	}
	s.logoutLimit.release(o.tenant)
	if d, err := s.lease(t.Context(), s.logouts); err != nil || d.TenantID != o.tenant {
		t.Errorf("a worker leased %+v, %v", d, err)
	}
}

func TestTheEndOfAnAccountLeavesItsLogouts(t *testing.T) {
	t.Parallel()
	o, s := newLogoutOffice(t, new(signer))
	e, event := o.endSession(s, o.tenant, o0)
	e.ID = id.New(clock)
	if err := s.accountDeleted(t.Context(), e,
		events.AccountDeleted{Tenant: o.tenant, Account: event.Account}); err != nil {
		t.Fatal(err)
	}
	if rows := o.rows(); len(rows) != 1 || rows[0].State != store.Pending {
		t.Errorf("the deliveries are %+v", rows)
	}
	mails, _, err := s.store.Waiting(t.Context(), 10, store.Mail, store.SMS)
	logouts, _, err2 := s.store.Waiting(t.Context(), 10, store.Logout)
	if mails != 0 || logouts != 1 || err != nil || err2 != nil {
		t.Errorf("%d mails and %d logouts wait, %v, %v", mails, logouts, err, err2)
	}
}

// The row of a logout names the session and the client, and nothing that only they may know.
func TestTheRowOfALogoutHasNoSecret(t *testing.T) {
	t.Parallel()
	o, s := newLogoutOffice(t, new(signer))
	_, event := o.endSession(s, o.tenant, o0)
	text, err := pg.Value[string](t.Context(), o.db, `SELECT to_jsonb(d) - 'trace' FROM deliveries d WHERE tenant_id = $1`,
		o.tenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"kind": "LOGOUT"`, `"token_sealed": null`, `"message": ""`, `"number": ""`} {
		if !strings.Contains(text, part) {
			t.Errorf("the row lacks %s: %s", part, text)
		}
	}
	if d, err := s.lease(t.Context(), s.logouts); err != nil || d.ClientID != o0 || d.SessionID != event.Session ||
		d.AccountID != event.Account || d.Workflow != directoryapi.Workflow(o0.String()) {
		t.Errorf("the delivery is %+v, %v", d, err)
	}
}
