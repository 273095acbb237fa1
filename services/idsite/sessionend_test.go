package idsite_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/store"
	rules "github.com/doorward/doorward/services/oauth/relyingparty"
)

// envelopes are the events in the outbox of a service, which no relay sends.
func envelopes(t *testing.T, db *pg.DB) []events.Envelope {
	t.Helper()
	texts, err := pg.Values[[]byte](t.Context(), db, `SELECT envelope FROM outbox ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]events.Envelope, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// deliver hands all events of the directory and the application service to this one, as its consumer does,
// also those that it has handled before.
func (l *login) deliver(t *testing.T) error {
	t.Helper()
	var failures []error
	for _, e := range append(envelopes(t, l.peers.Directories.DB), envelopes(t, l.peers.Applications.DB)...) {
		for _, handler := range l.Handlers() {
			if handler.Event == e.Type {
				failures = append(failures, handler.Handle(e.Context(t.Context()), e))
			}
		}
	}
	return errors.Join(failures...)
}

// ended are the ends of sessions that this service has told of.
func (l *login) ended(t *testing.T) (all []events.SessionEnded) {
	t.Helper()
	for _, e := range envelopes(t, l.peers.DB) {
		if e.Type == "SiteDomainChanged" {
			continue
		}
		var event events.SessionEnded
		if err := json.Unmarshal(e.Data, &event); err != nil || e.Type != "SessionEnded" || e.Tenant != l.tenant.ID {
			t.Fatalf("the service has emitted %+v, %v", e, err)
		}
		all = append(all, event)
	}
	return all
}

// Whatever ends a session, its clients are told, once.
func TestTheEndOfASessionNamesItsClients(t *testing.T) {
	offline, all := []bool{true}, []bool{false} // whether the tokens with offline_access are kept
	for what, c := range map[string]struct {
		end         func(*party, idsite.BrowserRequest) error
		keepOffline []bool // of each request to end tokens
	}{
		"a logout of a client": {func(p *party, in idsite.BrowserRequest) error {
			asked, err := p.OpenID.Logout(p.Context(), p.app.ID, nil, "", in)
			if err != nil {
				return err
			}
			_, err = p.OpenID.Logout(p.Context(), p.app.ID, nil, asked.Secret, in)
			return err
		}, offline},
		"a hosted logout": {func(p *party, in idsite.BrowserRequest) error {
			_, err := p.Logout(p.Context(), idsite.BrowserRequest{Token: p.sign(p.T, nil, nil), Session: in.Session})
			return err
		}, offline},
		"its deletion": {func(p *party, _ idsite.BrowserRequest) error {
			return p.Journey.DeleteSessions(p.Context(), p.userRef())
		}, all},
		"a new password": {func(p *party, _ idsite.BrowserRequest) error {
			p.setPassword(p.T)
			return p.deliver(p.T)
		}, nil},
		"a new password, at the next use": {func(p *party, in idsite.BrowserRequest) error {
			p.setPassword(p.T)
			p.wantError("login_required", p.authorize(in, url.Values{"prompt": {"none"}}))
			return nil
		}, nil},
		"a disabled account": {func(p *party, _ idsite.BrowserRequest) error {
			p.setStatus(p.T, directoryapi.Disabled)
			return p.deliver(p.T)
		}, all},
		"a disabled account, at the next use": {func(p *party, in idsite.BrowserRequest) error {
			p.setStatus(p.T, directoryapi.Disabled)
			p.wantError("login_required", p.authorize(in, url.Values{"prompt": {"none"}}))
			return nil
		}, all},
		"a deleted account": {func(p *party, _ idsite.BrowserRequest) error {
			p.peers.Directories.DeleteAccount(p.T, p.userRef())
			return p.deliver(p.T)
		}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t)
			p, other, stranger := newParty(t, l, nil), newParty(t, l, nil), newParty(t, l, nil)
			_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
			other.wantCode(other.authorize(in, url.Values{"prompt": {"none"}}))
			_, elsewhere := stranger.land(stranger.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
			stranger.logOut(elsewhere)
			before, name := len(fault.Requests[oauthapi.EndTokens](t, &l.peers.OAuth.Injector, "EndTokens")), p.sessions()[0]
			l.clock.Move(time.Second)
			if err := c.end(p, in); err != nil {
				t.Fatal(err)
			}
			if err := l.deliver(t); err != nil { // again
				t.Fatal(err)
			}
			found := l.ended(t)
			if len(found) != 2 || found[1].Account != l.user.ID || found[1].Session != name {
				t.Fatalf("the ends are %+v, the session was %s", found, name)
			}
			if told := found[1].Clients; len(told) != 2 || !slices.Contains(told, p.client) || !slices.Contains(told, other.client) {
				t.Errorf("the clients are %v, want %s and %s", told, p.client, other.client)
			}
			if left, err := l.data.SessionClients(t.Context(), l.tenant.ID, []id.ID{name}); err != nil || len(left) > 0 {
				t.Errorf("the ended session has clients %+v, %v", left, err)
			}
			var kept []bool
			for _, request := range fault.Requests[oauthapi.EndTokens](t, &l.peers.OAuth.Injector, "EndTokens")[before:] {
				kept = append(kept, request.KeepOffline)
				if request.Account != l.user.ID || !slices.Equal(request.Sessions, []string{name.String()}) {
					t.Errorf("tokens are ended by %+v", request)
				}
			}
			if !slices.Equal(kept, c.keepOffline) {
				t.Errorf("the tokens that are kept are %v, want %v", kept, c.keepOffline)
			}
		})
	}
}

// setStatus sets the status of the account.
func (l *login) setStatus(t *testing.T, status string) {
	t.Helper()
	l.peers.Directories.Change(t, l.userRef(), directoryapi.NewAccount{Status: field.Some(status)})
}

// logOut ends the session of a browser.
func (p *party) logOut(in idsite.BrowserRequest) {
	p.Helper()
	asked, err := p.OpenID.Logout(p.Context(), p.app.ID, nil, "", in)
	if err == nil {
		_, err = p.OpenID.Logout(p.Context(), p.app.ID, nil, asked.Secret, in)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// An event that comes late ends no session that began after it.
func TestALateEventEndsNoLaterSession(t *testing.T) {
	for what, change := range map[string]func(*login, *testing.T){
		"a new password": func(l *login, t *testing.T) { l.setPassword(t) },
		"a disabled account": func(l *login, t *testing.T) {
			l.setStatus(t, directoryapi.Disabled)
			l.setStatus(t, directoryapi.Enabled)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t)
			p := newParty(t, l, nil)
			p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
			former := p.sessions()
			l.clock.Move(time.Minute)
			change(l, t)
			_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
			if err := l.deliver(t); err != nil {
				t.Fatal(err)
			}
			if left := p.sessions(); len(left) != 1 || left[0] == former[0] {
				t.Errorf("the sessions are %v, of before %v", left, former)
			}
			p.wantCode(p.authorize(in, url.Values{"prompt": {"none"}}))
		})
	}
}

// Another user who logs in at the same browser ends the session of the former one; the same user keeps it.
func TestALoginInASessionKeepsItForTheSameUserAlone(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	name := p.sessions()[0]
	l.clock.Move(20 * time.Minute)
	_, in = p.land(p.authorize(in, url.Values{"prompt": {"login"}}), in)
	clients, err := l.data.SessionClients(t.Context(), l.tenant.ID, []id.ID{name})
	if err != nil || len(clients) != 1 || !clients[0].ExpiresAt.Equal(l.clock.Now().Add(12*time.Hour)) || len(l.ended(t)) > 0 {
		t.Errorf("after another login the clients are %+v, the ends %+v, %v", clients, l.ended(t), err)
	}
	owner := l.user
	account, err := l.peers.Directories.Account(t.Context(), l.userRef())
	if err != nil {
		t.Fatal(err)
	}
	l.user = l.peers.Directories.NewAccount(l.tenant.ID, account.DirectoryID,
		directoryapi.NewAccount{Username: field.Some("al"), Email: field.Some("al@example.test")})
	p.land(p.authorize(in, url.Values{"prompt": {"login"}}), in)
	if ends := l.ended(t); len(ends) != 1 || ends[0].Session != name || ends[0].Account != owner.ID || len(ends[0].Clients) != 1 {
		t.Errorf("after the login of another user the ends are %+v", ends)
	}
}

func TestConsentsEndWithTheirAccountOrApplication(t *testing.T) {
	for what, end := range map[string]func(*login, *testing.T){
		"the account":     func(l *login, t *testing.T) { l.peers.Directories.DeleteAccount(t, l.userRef()) },
		"the application": func(l *login, _ *testing.T) { l.peers.Applications.Delete(l.appRef()) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t)
			p := newParty(t, l, func(in *rules.Change) { in.Consent = field.Some("REQUIRED") })
			landed, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
			flow := p.flowOf(landed)
			asked, err := l.OpenID.Consent(t.Context(), l.app.ID, flow, in)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.OpenID.Decide(t.Context(), l.app.ID, flow, true, asked.Secret, in); err != nil {
				t.Fatal(err)
			}
			given := func() int {
				page, err := l.data.ListConsents(t.Context(), l.userRef(), list.Query{Limit: 25})
				if err != nil {
					t.Fatal(err)
				}
				return len(page.Items)
			}
			if err := l.deliver(t); err != nil || given() != 1 {
				t.Fatalf("before the end of %s there are %d consents, %v", what, given(), err)
			}
			end(l, t)
			if err := l.deliver(t); err != nil || given() != 0 {
				t.Errorf("after the end of %s there are %d consents, %v", what, given(), err)
			}
		})
	}
}

// Without the oauth service a session does not end, so that its tokens are ended by the retry.
func TestTheEndOfADisabledAccountWaitsForItsTokens(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	l.clock.Move(time.Second)
	l.setStatus(t, directoryapi.Disabled)
	isDown := true
	l.peers.OAuth.Break("EndTokens", fault.Before, func() error {
		if isDown {
			return apierr.Unavailable
		}
		return nil
	})
	if err := l.deliver(t); !errors.Is(err, apierr.Unavailable) || len(l.ended(t)) > 0 {
		t.Errorf("without the oauth service the ends are %+v, %v", l.ended(t), err)
	}
	isDown = false
	if err := l.deliver(t); err != nil || len(l.ended(t)) != 1 {
		t.Errorf("after the outage the ends are %+v, %v", l.ended(t), err)
	}
}

// A session of the release before has no name: it ends without an event. Of a pair of ends one is told.
func TestASessionWithoutANameEndsSilently(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	sessions, err := l.data.SessionsOfAccounts(t.Context(), l.tenant.ID, []id.ID{l.user.ID})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("the sessions are %+v, %v", sessions, err)
	}
	if _, err := pg.Exec(t.Context(), l.peers.DB, `UPDATE sso_sessions SET session_id = NULL WHERE tenant_id = $1`,
		l.tenant.ID); err != nil {
		t.Fatal(err)
	}
	end := func() {
		t.Helper()
		if err := l.data.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.EndSessions(t.Context(), l.tenant.ID, sessions...)
		}); err != nil {
			t.Fatal(err)
		}
	}
	end()
	left, err := l.data.SessionsOfAccounts(t.Context(), l.tenant.ID, []id.ID{l.user.ID})
	if err != nil || len(left) > 0 || len(l.ended(t)) > 0 {
		t.Errorf("the sessions are %+v, the ends %+v, %v", left, l.ended(t), err)
	}
	p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	if sessions, err = l.data.SessionsOfAccounts(t.Context(), l.tenant.ID, []id.ID{l.user.ID}); err != nil {
		t.Fatal(err)
	}
	end()
	end()
	if ends := l.ended(t); len(ends) != 1 {
		t.Errorf("the second end of a session is told too: %+v", ends)
	}
}

func TestTheClientsOfExpiredSessionsArePurged(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	name := p.sessions()
	for _, age := range []struct {
		after time.Duration
		left  int
	}{{11 * time.Hour, 1}, {2 * time.Hour, 0}} {
		l.clock.Move(age.after)
		if err := l.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, err := l.data.SessionClients(t.Context(), l.tenant.ID, name); err != nil || len(left) != age.left {
			t.Errorf("after another %s the clients are %+v, %v", age.after, left, err)
		}
	}
}
