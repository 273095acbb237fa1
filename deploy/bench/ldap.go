package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/services/agent/ldaptest"
)

// ldapDirectory is a directory whose accounts an agent sends from an LDAP server in
// this process.
type ldapDirectory struct {
	accounts    int
	application string // address
	server      ldaptest.Server
	agent       *harness.Daemon
	firstSearch time.Time // of the agent
	synced      time.Time // when the agent had sent all accounts
}

// startLDAPDirectory makes a directory with an application and starts its agent, which
// polls for changes at an interval. It returns when the agent has sent all accounts.
func (r *run) startLDAPDirectory(
	ctx context.Context, s *system, accounts int, poll time.Duration,
) (*ldapDirectory, error) {
	d := &ldapDirectory{accounts: accounts}
	d.server.Entries = func() iter.Seq[ldaptest.Entry] { return ldapEntries(accounts) }
	d.server.Searched = sync.OnceValue(func() bool { d.firstSearch = time.Now(); return true })
	if err := d.server.Listen(); err != nil {
		return nil, err
	}
	r.atEnd(func(context.Context) error { d.server.Stop(); return nil })
	setup := s.client.Setup(ctx)
	d.application = setup.Post(s.base+"/applications", e2e.Object{"name": unique("ldap")}).Href()
	directory := s.addProviderDirectory(setup, d.application,
		e2e.Object{"providerId": "ldap", "agent": e2e.Object{"config": e2e.Object{
			"directoryHost": "127.0.0.1", "directoryPort": d.server.Port(), "baseDn": "dc=corp",
			"agentUserDn": "cn=agent", "agentUserDnPassword": "x",
			"accountConfig": e2e.Object{"objectClass": "inetOrgPerson", "emailRdn": "mail", "givenNameRdn": "givenName",
				"surnameRdn":  "sn",
				"usernameRdn": "uid", "passwordRdn": "userPassword"},
			"groupConfig": e2e.Object{"objectClass": "groupOfNames", "nameRdn": "cn", "descriptionRdn": "description"},
		}}})
	agent := setup.Get(directory + "/provider").Object("agent")
	key := setup.Post(agent.Href()+"/keys", e2e.Object{"name": "bench"})
	if setup.Err != nil {
		return nil, setup.Err
	}
	listen, browser := harness.FreeAddress(), s.client.Browser()
	ready := func(ctx context.Context) (err error) {
		d.synced, err = lastSync(ctx, browser, "http://"+listen+"/status.json")
		return err
	}
	d.agent = harness.NewDaemon("agent", filepath.Join(r.dir, unique("agent")+".log"), ready,
		filepath.Join(r.config.Bin, "agent"))
	d.agent.Setenv("DOORWARD_URL="+s.host, "DOORWARD_CA_FILE="+s.client.Key.CAFile, "DOORWARD_AGENT_ID="+agent.ID(),
		"DOORWARD_AGENT_KEY_ID="+key.Text("id"), "DOORWARD_AGENT_KEY_SECRET="+key.Text("secret"),
		"DOORWARD_AGENT_LISTEN="+listen, "DOORWARD_AGENT_POLL="+poll.String())
	d.agent.SetOps()
	r.atEnd(d.agent.Stop)
	return d, d.agent.Start(ctx)
}

// ldapEntries are the entries of the LDAP server, which are made while they are read.
func ldapEntries(count int) iter.Seq[ldaptest.Entry] {
	return func(yield func(ldaptest.Entry) bool) {
		for n := range count {
			name, changed := ldapUser(n), time.Unix(int64(n), 0).UTC().Format("20060102150405Z")
			if !yield(ldaptest.Entry{DN: "uid=" + name + ",dc=corp", Attributes: map[string][]string{
				"objectClass": {"inetOrgPerson"}, "uid": {name}, "mail": {name + "@example.test"}, "givenName": {"Jo"},
				"sn":        {"Doe " + name},
				"entryUUID": {fmt.Sprintf("00000000-0000-4000-8000-%012x", n)}, "modifyTimestamp": {changed},
			}}) {
				return
			}
		}
	}
}

func ldapUser(n int) string { return "user" + strconv.Itoa(n) }

// lastSync reads from the status page of an agent when it had sent all accounts; it is an error that it has not yet.
func lastSync(ctx context.Context, client *e2e.Client, statusPage string) (at time.Time, err error) {
	var status struct{ SyncedAt time.Time }
	answer, err := client.Do(ctx, e2e.Get(statusPage))
	if err == nil {
		err = json.Unmarshal(answer.Body, &status)
	}
	if err == nil && status.SyncedAt.IsZero() {
		err = errors.New("the agent has not sent all accounts")
	}
	return status.SyncedAt, err
}

// sync measures a whole sync of an LDAP directory, the memory of the agent after it, and
// the polls of the agent where nothing has changed.
func (r *run) sync(ctx context.Context) error {
	const section = "directory agent"
	d, err := r.startLDAPDirectory(ctx, r.standalone, r.people, 100*time.Millisecond)
	if err != nil {
		return err
	}
	agent := []int{d.agent.PID()}
	rate := float64(r.people) / d.synced.Sub(d.firstSearch).Seconds()
	r.report.add(section, fmt.Sprintf("whole sync of %d accounts", r.people), "/s", ">= 5000", rate)
	r.memory(section, "memory of the agent after it", "< 95", agent)
	r.memory(section, "memory after it, standalone with PostgreSQL", "< 250", r.standalone.processes)

	polls := func() (float64, error) { return d.agent.Metric(ctx, "doorward_agent_syncs_total", `result="ok"`) }
	waitUntil(ctx, time.Now().Add(2*time.Second)) // the second of the last change is over
	pollsBefore, beforeErr := polls()
	searchesBefore := d.server.Searches.Load()
	used := usageBetween(ctx, agent, time.Now(), time.Now().Add(r.idleFor))
	pollsAfter, afterErr := polls()
	if err := errors.Join(beforeErr, afterErr, ctx.Err()); err != nil {
		return err
	}
	count := max(pollsAfter-pollsBefore, 1)
	searches := float64(d.server.Searches.Load() - searchesBefore)
	w := r.report.add(section, "searches of a look without a change", "", "= 1", searches/count)
	w.cpu = []float64{float64(used.measured().Microseconds()) / count}
	return nil
}
