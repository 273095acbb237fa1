package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/services/agent/ldaptest"
)

// mirror is a directory whose accounts an agent brings from an LDAP server in this
// process.
type mirror struct {
	people          int
	application     string // address
	server          ldaptest.Server
	firstSearch     time.Time // of the agent
	synced          time.Time // when it had sent all accounts
	agent           *harness.Daemon
	status, metrics string      // addresses of the agent
	asks            *connection // for them
}

// startMirror makes a directory with an application, starts its agent, which looks for
// changes so often, and waits until it has sent all accounts.
func (r *run) startMirror(ctx context.Context, s *site, people int, poll time.Duration) (*mirror, error) {
	m := &mirror{people: people, asks: connect(nil, "")}
	m.server.Entries = func() iter.Seq[ldaptest.Entry] { return peopleOf(people) }
	m.server.Searched = sync.OnceValue(func() bool { m.firstSearch = time.Now(); return true })
	if err := m.server.Listen(); err != nil {
		return nil, err
	}
	r.atEnd(func(context.Context) error { m.server.Stop(); return nil })
	c := s.caller()
	defer c.close()
	m.application = c.create(s.base+"/applications", e2e.Object{"name": unique("ldap")}).Href()
	directory := s.addDirectory(c, m.application, e2e.Object{"providerId": "ldap", "agent": e2e.Object{"config": e2e.Object{
		"directoryHost": "127.0.0.1", "directoryPort": m.server.Port(), "baseDn": "dc=corp",
		"agentUserDn": "cn=agent", "agentUserDnPassword": "x",
		"accountConfig": e2e.Object{"objectClass": "inetOrgPerson", "emailRdn": "mail", "givenNameRdn": "givenName", "surnameRdn": "sn",
			"usernameRdn": "uid", "passwordRdn": "userPassword"},
		"groupConfig": e2e.Object{"objectClass": "groupOfNames", "nameRdn": "cn", "descriptionRdn": "description"},
	}}})
	agent := c.get(directory + "/provider").Object("agent")
	key := c.create(agent.Href()+"/keys", e2e.Object{"name": "bench"})
	page, pageErr := harness.FreeAddress()
	ops, opsErr := harness.FreeAddress()
	if err := errors.Join(c.err, pageErr, opsErr); err != nil {
		return nil, err
	}
	m.status, m.metrics = "http://"+page+"/status.json", "http://"+ops+"/metrics"
	m.agent = harness.NewDaemon("agent", filepath.Join(r.dir, unique("agent")+".log"), m.sent, filepath.Join(r.config.Bin, "agent"))
	m.agent.Setenv("DOORWARD_URL="+s.host, "DOORWARD_CA_FILE="+s.client.Key.CAFile, "DOORWARD_AGENT_ID="+agent.ID(),
		"DOORWARD_AGENT_KEY_ID="+key.Text("id"), "DOORWARD_AGENT_KEY_SECRET="+key.Text("secret"),
		"DOORWARD_AGENT_LISTEN="+page, "DOORWARD_OPS_LISTEN="+ops, "DOORWARD_AGENT_POLL="+poll.String())
	r.atEnd(m.agent.Stop)
	return m, m.agent.Start(ctx)
}

// peopleOf are the entries of a directory, which are made while they are read.
func peopleOf(count int) iter.Seq[ldaptest.Entry] {
	return func(yield func(ldaptest.Entry) bool) {
		for n := range count {
			name := "user" + strconv.Itoa(n)
			changed := time.Unix(int64(n), 0).UTC().Format("20060102150405Z")
			if !yield(ldaptest.Entry{DN: "uid=" + name + ",dc=corp", Attributes: map[string][]string{
				"objectClass": {"inetOrgPerson"}, "uid": {name}, "mail": {name + "@example.test"}, "givenName": {"Jo"}, "sn": {"Doe " + name},
				"entryUUID": {fmt.Sprintf("00000000-0000-4000-8000-%012x", n)}, "modifyTimestamp": {changed},
			}}) {
				return
			}
		}
	}
}

// user chooses the user name of the nth operation.
func (m *mirror) user(n uint64) string {
	return "user" + strconv.FormatUint(scattered(n)%uint64(m.people), 10)
}

// sent is an error until the agent has sent all accounts.
func (m *mirror) sent(context.Context) error {
	var status struct{ SyncedAt time.Time }
	err := m.asks.send(http.StatusOK, get(m.status))
	if err == nil {
		err = json.Unmarshal(m.asks.response.Body(), &status)
	}
	if m.synced = status.SyncedAt; err == nil && m.synced.IsZero() {
		err = errors.New("it has not")
	}
	return err
}

// syncs counts the agent's looks for changes.
var syncs = regexp.MustCompile(`(?m)^doorward_agent_syncs_total\{[^}]*result="ok"[^}]*\} (\d+)`)

func (m *mirror) polls() (int, error) {
	err := m.asks.send(http.StatusOK, get(m.metrics))
	if found := syncs.FindSubmatch(m.asks.response.Body()); err == nil && found != nil {
		return strconv.Atoi(string(found[1]))
	}
	return 0, errors.Join(err, errors.New("the agent counts no looks for changes"))
}

// sync measures a whole sync of a directory, the agent's memory after it, and its
// looks for changes where there are none.
func (r *run) sync(ctx context.Context) error {
	m, err := r.startMirror(ctx, r.standalone, r.people, 100*time.Millisecond)
	if err != nil {
		return err
	}
	agent := []int{m.agent.PID()}
	rate := float64(r.people) / m.synced.Sub(m.firstSearch).Seconds()
	r.report.add("directory agent", fmt.Sprintf("whole sync of %d accounts", r.people), "/s", ">= 5000", rate)
	r.memory("directory agent", "memory of the agent after it", "< 95", agent)
	r.memory("directory agent", "memory after it, standalone with PostgreSQL", "< 250", r.standalone.roots)

	waitUntil(ctx, time.Now().Add(2*time.Second)) // the second of the last change is over
	polls, pollsErr := m.polls()
	searches := m.server.Searches.Load()
	used := usedBetween(ctx, agent, time.Now(), time.Now().Add(r.idleFor))
	after, afterErr := m.polls()
	if err := errors.Join(pollsErr, afterErr, ctx.Err()); err != nil {
		return err
	}
	count := float64(max(after-polls, 1))
	w := r.report.add("directory agent", "searches of a look without a change", "", "= 1", float64(m.server.Searches.Load()-searches)/count)
	w.cpu = []float64{float64(used.server().Microseconds()) / count}
	return nil
}
