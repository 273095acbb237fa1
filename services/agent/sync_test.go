package agent

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/agent/ldaptest"
)

// peer is a Doorward that takes pages of syncs into a mirror of its own.
type peer struct {
	*httptest.Server
	mu       sync.Mutex
	fail     func(page Page) bool // nil, or whether a call fails and its connection breaks
	hold     bool                 // whether what makes accounts absent is held
	seen     map[string]map[string]bool
	accounts map[string]Account
	groups   map[string]Group
	pages    int
	count    int
}

func newPeer(t testing.TB) *peer {
	t.Helper()
	p := &peer{seen: map[string]map[string]bool{}, accounts: map[string]Account{}, groups: map[string]Group{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/agents/a/sync", p.sync)
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *peer) sync(w http.ResponseWriter, r *http.Request) {
	var in Page
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil && p.fail(in) {
		panic(http.ErrAbortHandler)
	}
	if p.hold && (in.Complete || len(in.DeletedAccounts) > 0) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"status":409,"code":9007,"developerMessage":"the sync would make 1 accounts absent"}`))
		return
	}
	p.pages++
	p.count += len(in.Accounts)
	w.WriteHeader(http.StatusAccepted)
	if p.seen[in.SyncID] == nil {
		p.seen[in.SyncID] = map[string]bool{}
	}
	for _, a := range in.Accounts {
		p.accounts[a.ExternalID], p.seen[in.SyncID][a.ExternalID] = a, true
	}
	for _, g := range in.Groups {
		p.groups[g.ExternalID], p.seen[in.SyncID][g.ExternalID] = g, true
	}
	for _, gone := range in.DeletedAccounts {
		delete(p.accounts, gone)
	}
	for _, gone := range in.DeletedGroups {
		delete(p.groups, gone)
	}
	if in.Complete {
		absent := func(external string) bool { return !p.seen[in.SyncID][external] }
		maps.DeleteFunc(p.accounts, func(external string, _ Account) bool { return absent(external) })
		maps.DeleteFunc(p.groups, func(external string, _ Group) bool { return absent(external) })
	}
}

// names are the user names of the mirror, sorted.
func (p *peer) names() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, a := range p.accounts {
		names = append(names, *a.Username)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// doorward is the client of the peer.
func (p *peer) doorward(t testing.TB, cfg Config) *Doorward {
	t.Helper()
	cfg.URL, cfg.ID, cfg.KeyID, cfg.KeySecret = p.URL, "a", "k", "s"
	cfg.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
	d, err := NewDoorward(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tree is a directory that a test changes.
type tree struct {
	mu      sync.Mutex
	entries []ldaptest.Entry
}

func (d *tree) all() iter.Seq[ldaptest.Entry] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Values(slices.Clone(d.entries))
}

func (d *tree) set(entries ...ldaptest.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = entries
}

func uuid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func personEntry(n int, changed string) ldaptest.Entry {
	name := fmt.Sprintf("user%d", n)
	return ldaptest.Entry{DN: "uid=" + name + ",dc=corp", Attributes: map[string][]string{
		"objectClass": {"inetOrgPerson"}, "uid": {name}, "mail": {name + "@example.test"}, "givenName": {"Jo"}, "sn": {"Doe " + name},
		"entryUUID": {uuid(n)}, "modifyTimestamp": {changed},
	}}
}

func groupEntry(n int, changed string, members ...string) ldaptest.Entry {
	name := fmt.Sprintf("group%d", n)
	return ldaptest.Entry{DN: "cn=" + name + ",dc=corp", Attributes: map[string][]string{
		"objectClass": {"groupOfNames"}, "cn": {name}, "member": members, "entryUUID": {uuid(1<<40 + n)}, "modifyTimestamp": {changed},
	}}
}

func corp(s *ldaptest.Server) Settings {
	return Settings{
		ProviderID: "ldap", DirectoryHost: "127.0.0.1", DirectoryPort: s.Port(), AgentUserDN: "cn=agent", AgentUserDNPassword: secure.Secret("x"), BaseDN: "dc=corp",
		Accounts: AccountSettings{ObjectClass: "inetOrgPerson", EmailRDN: "mail", GivenNameRDN: "givenName", SurnameRDN: "sn", UsernameRDN: "uid"},
		Groups:   GroupSettings{ObjectClass: "groupOfNames", NameRDN: "cn", DescriptionRDN: "description"},
	}
}

// mirrorOf is the sync of an agent between a directory server and a peer.
func mirrorOf(t testing.TB, p *peer, settings Settings, cfg Config) *syncState {
	t.Helper()
	cfg.LDAPTLS, cfg.Full = "auto", 24*time.Hour
	if cfg.Deletions == 0 {
		cfg.Deletions = time.Hour
	}
	s, err := newServer(cfg, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return newSyncState(s, p.doorward(t, cfg))
}

func start(t testing.TB, entries ...ldaptest.Entry) (*tree, *ldaptest.Server) {
	t.Helper()
	d := &tree{entries: entries}
	s := &ldaptest.Server{Entries: d.all}
	s.Start(t)
	return d, s
}

func poll(t *testing.T, m *syncState) {
	t.Helper()
	if err := m.incrementalSync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestAPollOfAnUnchangedDirectoryIsOneSearch(t *testing.T) {
	d, server := start(t, personEntry(1, "20260101000000Z"), personEntry(2, "20260101000001Z"), groupEntry(1, "20260101000000Z", "uid=user1,dc=corp"))
	p := newPeer(t)
	m := mirrorOf(t, p, corp(server), Config{})
	poll(t, m)
	want(t, "the first sync", p.names(), "user1 user2")
	m.highWaterReadAt = time.Now().Add(-time.Minute) // no further entry can have changed in that second
	poll(t, m)
	before, count := server.Searches.Load(), p.count
	for range 3 {
		poll(t, m)
	}
	if n := server.Searches.Load() - before; n != 3 || p.count != count {
		t.Errorf("3 polls made %d searches and sent %d accounts", n, p.count-count)
	}
	changed := personEntry(2, "20260102000000Z")
	changed.Attributes["uid"] = []string{"renamed"}
	d.set(personEntry(1, "20260101000000Z"), changed)
	poll(t, m)
	want(t, "after a change", p.names(), "renamed user1")
	if p.count != count+1 || server.Searches.Load() != before+4 {
		t.Errorf("a change sent %d accounts in %d searches", p.count-count, server.Searches.Load()-before-3)
	}
}

func TestDeletionsAreFound(t *testing.T) {
	d, server := start(t, personEntry(1, "20260101000000Z"), personEntry(2, "20260101000000Z"), groupEntry(1, "20260101000000Z", "uid=user1,dc=corp"))
	p := newPeer(t)
	m := mirrorOf(t, p, corp(server), Config{Deletions: time.Nanosecond})
	poll(t, m)
	d.set(personEntry(1, "20260101000000Z"))
	poll(t, m)
	want(t, "after a deletion", p.names(), "user1")
	if len(p.groups) != 0 {
		t.Errorf("the groups are %v", p.groups)
	}
	d.set()
	if err := m.incrementalSync(t.Context()); err == nil {
		t.Error("a search that finds nobody is no error")
	}
	want(t, "after an empty answer", p.names(), "user1")
}

// A sync that Doorward holds is reported, and is no reason to stop: changes are sent, and each search
// for deletions tries again.
func TestAHeldSyncIsReportedAndChangesGoOn(t *testing.T) {
	const at = "20260101000000Z"
	d, server := start(t, personEntry(1, at), personEntry(2, at), personEntry(3, at))
	p := newPeer(t)
	m := mirrorOf(t, p, corp(server), Config{Deletions: time.Nanosecond})
	var h health
	look := func(what, names string, held bool) {
		t.Helper()
		poll(t, m)
		h.recordSync(m, nil)
		want(t, what, p.names(), names)
		if problem := h.firstProblem(); (problem != nil) != held || held && !strings.Contains(problem.Error(), "would make 1 accounts absent") {
			t.Errorf("%s: the problem is %v", what, problem)
		}
	}
	look("the first sync", "user1 user2 user3", false)
	p.hold = true
	d.set(personEntry(1, at), personEntry(2, at))
	look("a deletion that is held", "user1 user2 user3", true)
	d.set(personEntry(1, at), personEntry(2, at), personEntry(4, "20260102000000Z"))
	look("a change while it is held", "user1 user2 user3 user4", true)
	p.hold = false
	look("a deletion that is confirmed", "user1 user2 user4", false)
}

func TestTheTimeBetweenSearchesForDeletionsIsBounded(t *testing.T) {
	if _, err := New(Config{URL: "https://id.example.test", Deletions: 16 * time.Minute}); err == nil || !strings.Contains(err.Error(), "DOORWARD_AGENT_DELETIONS") {
		t.Errorf("deletions every 16 minutes: %v", err)
	}
	if _, err := New(Config{URL: "https://id.example.test", Deletions: 15 * time.Minute}); err != nil {
		t.Errorf("deletions every 15 minutes: %v", err)
	}
}

func TestASyncThatBreaksOffDeletesNothing(t *testing.T) {
	var all []ldaptest.Entry
	for i := range 2500 {
		all = append(all, personEntry(i, "20260101000000Z"))
	}
	t.Run("the network to Doorward is cut for a while", func(t *testing.T) {
		_, server := start(t, all...)
		p := newPeer(t)
		failures := 0
		p.fail = func(Page) bool { failures++; return failures == 2 }
		poll(t, mirrorOf(t, p, corp(server), Config{}))
		if len(p.accounts) != 2500 || failures < 3 {
			t.Errorf("%d accounts after %d calls", len(p.accounts), failures)
		}
	})
	t.Run("the agent ends in the middle", func(t *testing.T) {
		d, server := start(t, all...)
		p := newPeer(t)
		poll(t, mirrorOf(t, p, corp(server), Config{}))
		d.set(all[:2200]...)
		ctx, end := context.WithCancel(t.Context())
		p.fail = func(in Page) bool {
			if in.Complete || len(in.Accounts) < maxAccounts {
				end()
				return true
			}
			return false
		}
		if err := mirrorOf(t, p, corp(server), Config{}).incrementalSync(ctx); err == nil {
			t.Error("the sync of an agent that ends returned no error")
		}
		if len(p.accounts) != 2500 {
			t.Errorf("%d accounts are left", len(p.accounts))
		}
		p.fail = nil
		poll(t, mirrorOf(t, p, corp(server), Config{}))
		if len(p.accounts) != 2200 {
			t.Errorf("after the next sync %d accounts are left", len(p.accounts))
		}
	})
	t.Run("the directory server goes away in the middle", func(t *testing.T) {
		d, server := start(t, all...)
		p := newPeer(t)
		poll(t, mirrorOf(t, p, corp(server), Config{}))
		d.set(all[:10]...)
		searches := 0
		server.Searched = func() bool { searches++; return searches < 2 } // of the accounts, and of the groups
		if err := mirrorOf(t, p, corp(server), Config{}).incrementalSync(t.Context()); err == nil {
			t.Error("the sync without its directory server returned no error")
		}
		if len(p.accounts) != 2500 {
			t.Errorf("%d accounts are left", len(p.accounts))
		}
	})
}

func TestReferralsAreFollowedWhereTheConfigurationSaysSo(t *testing.T) {
	_, other := start(t, personEntry(2, "20260101000000Z"))
	_, server := start(t, personEntry(1, "20260101000000Z"),
		ldaptest.Entry{DN: "ou=away,dc=corp", Referral: "ldap://" + other.Address() + "/dc=corp??sub"})
	for _, c := range []struct {
		what, mode, listed string
		ignore             bool
		want               string // user names; empty for an error
		searches           int64  // of the other server
	}{
		{"without a mode", "", other.Address(), false, "user1", 0},
		{"ignore", "ignore", other.Address(), false, "user1", 0},
		{"follow to a host that is listed", "follow", other.Address(), false, "user1 user2", 2},
		{"follow to a host that is not", "follow", "", false, "", 0},
		{"follow to a host that is not, with ignoreReferralIssues", "follow", "", true, "user1", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := newPeer(t)
			settings, cfg := corp(server), Config{}
			settings.ReferralMode, settings.IgnoreReferralIssues = c.mode, c.ignore
			if c.listed != "" {
				cfg.ReferralHosts = []string{c.listed}
			}
			searches, binds := other.Searches.Load(), other.Binds.Load()
			err := mirrorOf(t, p, settings, cfg).incrementalSync(t.Context())
			if (err == nil) != (c.want != "") {
				t.Errorf("the sync returned %v", err)
			}
			if c.want != "" {
				want(t, "accounts", p.names(), c.want)
			}
			if n := other.Searches.Load() - searches; n != c.searches {
				t.Errorf("%d searches of the other server", n)
			}
			if c.searches == 0 && other.Binds.Load() != binds {
				t.Error("the password of the agent was sent to the other server")
			}
		})
	}
}

// One group of 50,000, and one account in 1,000 groups.
func TestLargeGroups(t *testing.T) {
	const people, memberships = 50_000, 1000
	members := make([]string, people)
	for i := range members {
		members[i] = fmt.Sprintf("uid=user%d,dc=corp", i)
	}
	server := &ldaptest.Server{Entries: func() iter.Seq[ldaptest.Entry] {
		return func(yield func(ldaptest.Entry) bool) {
			for i := range people {
				if !yield(personEntry(i, "20260101000000Z")) {
					return
				}
			}
			for i := range memberships {
				of := members[:1]
				if i == 0 {
					of = members
				}
				if !yield(groupEntry(i, "20260101000000Z", of...)) {
					return
				}
			}
		}
	}}
	server.Start(t)
	p := newPeer(t)
	poll(t, mirrorOf(t, p, corp(server), Config{}))
	of := 0
	for _, g := range p.groups {
		if slices.Contains(g.Members, uuid(0)) {
			of++
		}
	}
	if n := len(p.groups[uuid(1<<40)].Members); len(p.accounts) != people || n != people || of != memberships {
		t.Errorf("%d accounts, %d members, one account in %d groups", len(p.accounts), n, of)
	}
}
