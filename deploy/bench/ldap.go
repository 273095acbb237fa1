package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	people      int
	application string // address
	server      ldaptest.Server
	firstSearch time.Time // of the agent
	agent       *harness.Daemon
	status, ops string // addresses of the agent
}

// startMirror makes a directory with an application and starts its agent, which
// looks for changes so often.
func (r *run) startMirror(ctx context.Context, s *site, people int, poll time.Duration) (*mirror, error) {
	m := &mirror{people: people, server: ldaptest.Server{Entries: func() iter.Seq[ldaptest.Entry] { return peopleOf(people) }}}
	m.server.Searched = sync.OnceValue(func() bool { m.firstSearch = time.Now(); return true })
	if err := m.server.Listen(); err != nil {
		return nil, err
	}
	r.atEnd(m.stop)
	c := caller{ctx: ctx, client: s.client}
	m.application = c.create("/applications", e2e.Object{"name": unique("ldap", s.run)}).Href()
	directory := addDirectory(&c, m.application, e2e.Object{"providerId": "ldap", "agent": e2e.Object{"config": e2e.Object{
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
	m.status, m.ops = "http://"+page, "http://"+ops
	m.agent = harness.NewDaemon("agent", filepath.Join(r.dir, unique("agent", s.run)+".log"), func(ctx context.Context) error {
		_, err := read(ctx, m.status+"/status.json")
		return err
	}, filepath.Join(r.config.Bin, "agent"))
	m.agent.Setenv("DOORWARD_URL="+s.host, "DOORWARD_CA_FILE="+s.client.Key.CAFile, "DOORWARD_AGENT_ID="+agent.ID(),
		"DOORWARD_AGENT_KEY_ID="+key.Text("id"), "DOORWARD_AGENT_KEY_SECRET="+key.Text("secret"),
		"DOORWARD_AGENT_LISTEN="+page, "DOORWARD_OPS_LISTEN="+ops, "DOORWARD_AGENT_POLL="+poll.String())
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

// synced waits until the agent has sent all accounts and returns when it had.
func (m *mirror) synced(ctx context.Context) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for at.IsZero() && err == nil {
		waitUntil(ctx, time.Now().Add(20*time.Millisecond))
		var status struct{ SyncedAt time.Time }
		raw, readErr := read(ctx, m.status+"/status.json")
		err = errors.Join(ctx.Err(), readErr, json.Unmarshal(raw, &status))
		at = status.SyncedAt
	}
	if err != nil {
		err = fmt.Errorf("wait for the agent to send all accounts: %w\n%s", err, m.agent.Tail())
	}
	return at, err
}

// syncs counts the agent's looks for changes.
var syncs = regexp.MustCompile(`(?m)^doorward_agent_syncs_total\{[^}]*result="ok"[^}]*\} (\d+)`)

func (m *mirror) polls(ctx context.Context) (int, error) {
	metrics, err := read(ctx, m.ops+"/metrics")
	if found := syncs.FindSubmatch(metrics); found != nil {
		return strconv.Atoi(string(found[1]))
	}
	return 0, errors.Join(err, errors.New("the agent counts no looks for changes"))
}

func (m *mirror) stop(ctx context.Context) (err error) {
	if m.agent != nil && m.agent.PID() != 0 {
		err = m.agent.Stop(ctx)
	}
	m.server.Stop()
	return err
}

func read(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(address + " answered " + response.Status)
	}
	return io.ReadAll(response.Body)
}

// sync measures a whole sync of a directory, the agent's memory after it, and its
// looks for changes where there are none.
func (r *run) sync(ctx context.Context) error {
	s, err := openSite("", r.standalone.key, nil)
	if err != nil {
		return err
	}
	m, err := r.startMirror(ctx, s, r.People, 100*time.Millisecond)
	if err != nil {
		return err
	}
	done, err := m.synced(ctx)
	if err != nil {
		return err
	}
	agent := []int{m.agent.PID()}
	rate := float64(r.People) / done.Sub(m.firstSearch).Seconds()
	r.report.add("directory agent", fmt.Sprintf("whole sync of %d accounts", r.People), "/s", ">= 5000", rate)
	r.memory("directory agent", "memory of the agent after it", "< 95", agent)
	r.memory("directory agent", "memory after it, standalone with PostgreSQL", "< 250", r.standalone.roots)

	waitUntil(ctx, time.Now().Add(2*time.Second)) // the second of the last change is over
	polls, pollsErr := m.polls(ctx)
	searches := m.server.Searches.Load()
	used := usedBetween(ctx, agent, time.Now(), time.Now().Add(r.idleFor))
	after, afterErr := m.polls(ctx)
	if err := errors.Join(pollsErr, afterErr, ctx.Err()); err != nil {
		return err
	}
	count := float64(max(after-polls, 1))
	w := r.report.add("directory agent", "searches of a look without a change", "", "= 1", float64(m.server.Searches.Load()-searches)/count)
	w.cpu = []float64{float64(used.server().Microseconds()) / count}
	return nil
}
