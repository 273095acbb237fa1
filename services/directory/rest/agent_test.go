package rest_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// agent makes a directory with an agent and returns the agent's address.
func (b *bench) agent(name, provider string) string {
	b.Helper()
	return b.Get(b.mirror(name, provider) + "/provider").Want(200).Href("agent")
}

func TestAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ldap := b.agent("L", ldapProvider(`,"sslRequired":"true"`))
	b.clock.Move(time.Millisecond) // for their order
	ad := b.agent("A", adProvider(`,"referralMode":"Follow","directoryPort":"3268","pollInterval":5`))
	b.Get(ldap).Want(200).Golden("agent")
	b.Get(ad).Want(200).Golden("agent_ad")
	b.clock.Move(time.Minute)
	b.Post(
		ldap, `{"id":"ignored","status":"ONLINE","config":{"baseDn":"dc=new","agentUserDnPassword":"new","directoryPort":null,"sslRequired":false,
		"accountConfig":{"dnSuffix":"ou=staff","middleNameRdn":"initials"},"groupConfig":{"membersRdn":"uniqueMember","objectFilter":"(ou=*)"}}}`).
		Want(200).Golden("agent_updated")
	b.Post(ldap, `{"config":{"accountConfig":{"dnSuffix":null}}}`).Want(200)
	b.Post(ldap, `{}`).Want(200)
	if answer := b.Post(ldap, string(b.Get(ldap).Body)).Want(200); answer.Text("status") != "OFFLINE" {
		t.Errorf("a body changed the status: %s", answer.Body)
	}
	b.Post(ad, `{"config":{"referralMode":null,"ignoreReferralIssues":"true","pollInterval":null}}`).Want(200).
		Golden("agent_ad_updated")
	b.Get(b.tenant() + "/agents?limit=1").Want(200).Golden("tenant_agents")
	b.Delete(ldap).WantError(405, 1100)
	b.Get("/v1/agents/"+id.New(b.clock.Now()).String()).WantError(404, 404)
	if archive := b.Get(ldap + "/download").
		Want(200); archive.Header.Get("Content-Type") != "application/zip" || !bytes.HasPrefix(archive.Body, []byte("PK")) {
		t.Errorf("the download is %q", archive.Header.Get("Content-Type"))
	}
}

func TestAgentRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agents := map[string]string{"ldap": b.agent("L", ldapProvider(``)), "ad": b.agent("A", adProvider(``))}
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		kind, config string
		code         int
	}{
		{"ldap", `null`, 2000}, {"ldap", `"x"`, 2004}, {"ldap", `{"host":"x"}`, 2015},
		{"ldap", `{"accountConfig":null}`, 2000}, {"ldap", `{"groupConfig":null}`, 2000},
		{"ldap", `{"accountConfig":[]}`, 2004},
		{"ldap", `{"accountConfig":{"usernameRnd":"uid"}}`, 2015}, {"ldap", `{"groupConfig":{"emailRdn":"mail"}}`, 2015},
		{"ldap", `{"directoryHost":""}`, 2000}, {"ldap", `{"directoryHost":"` + long(256) + `"}`, 2008},
		{"ldap", `{"baseDn":"` + long(1001) + `"}`, 2008},
		{"ldap", `{"directoryPort":"many"}`, 2004}, {"ldap", `{"directoryPort":0}`, 2009},
		{"ldap", `{"directoryPort":65536}`, 2010},
		{"ldap", `{"pollInterval":0}`, 2009}, {"ldap", `{"pollInterval":10081}`, 2010},
		{"ldap", `{"sslRequired":"perhaps"}`, 2004},
		{"ldap", `{"agentUserDnPassword":null}`, 2000}, {"ldap", `{"referralMode":"follow"}`, 2017},
		{"ldap", `{"ignoreReferralIssues":false}`, 2017},
		{"ad", `{"referralMode":"throw"}`, 2003}, {"ad", `{"ignoreReferralIssues":1}`, 2004},
		{"ad", `{"accountConfig":{"passwordRdn":"userPassword"}}`, 2017},
		{"ldap", `{"accountConfig":{"passwordRdn":null}}`, 2000},
		{"ldap", `{"accountConfig":{"objectFilter":"` + long(1001) + `"}}`, 2008},
		{"ldap", `{"accountConfig":{"emailRdn":"` + long(256) + `"}}`, 2008},
		{"ldap", `{"groupConfig":{"membersRdn":"` + long(256) + `"}}`, 2008},
	} {
		before := string(b.Get(agents[c.kind]).Body)
		b.Post(agents[c.kind], `{"config":`+c.config+`}`).WantError(400, c.code)
		if after := string(b.Get(agents[c.kind]).Body); after != before {
			t.Errorf("%s made of %s: %s", c.config, before, after)
		}
	}
	b.Post(agents["ldap"], `{"colour":"red"}`).WantError(400, 2015)
	b.Post(agents["ldap"], `{"config":{"directoryHost":"`+long(255)+`","baseDn":"`+long(1000)+
		`","directoryPort":65535,"pollInterval":"10080"}}`).Want(200)
	b.Post(agents["ad"], `{"config":{"directoryPort":1,"pollInterval":1,"accountConfig":{"passwordRdn":null}}}`).Want(200)
}

func TestANewAgentNeedsAllOfItsParts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, member := range []string{
		`"directoryHost":"ldap.internal",`, `"agentUserDn":"cn=agent,dc=corp",`, `"agentUserDnPassword":"agent password",`,
		`"baseDn":"dc=corp",`,
		`"objectClass":"person",`, `"emailRdn":"mail",`, `"givenNameRdn":"givenName",`, `"surnameRdn":"sn",`,
		`,"passwordRdn":"userPassword"`,
		`"usernameRdn":"uid",`, `"objectClass":"groupOfUniqueNames",`, `"nameRdn":"cn",`, `,"descriptionRdn":"description"`,
	} {
		provider := strings.Replace(ldapProvider(``), member, "", 1)
		if provider == ldapProvider(``) {
			t.Fatalf("no %s to leave out", member)
		}
		b.Post("/v1/directories", `{"name":"L","provider":`+provider+`}`).WantError(400, 2000)
	}
	for agent, code := range map[string]int{
		`{}`: 2000, `null`: 2000, `{"config":null}`: 2000, `{"config":{}}`: 2000, `{"colour":"red"}`: 2015,
		`{"href":"https://localhost:8443/v1/agents/x"}`: 2000,
	} {
		b.Post("/v1/directories", `{"name":"L","provider":{"providerId":"ldap","agent":`+agent+`}}`).WantError(400, code)
	}
	b.Post("/v1/directories", `{"name":"L","provider":`+ldapProvider(`,"referralMode":"follow"`)+`}`).WantError(400, 2017)
	b.Post("/v1/directories", `{"name":"A","provider":`+strings.Replace(ldapProvider(``), `"ldap"`, `"ad"`, 1)+`}`).
		WantError(400, 2017)
	b.mirror("Full", ldapProvider(`,"agentUserDnPassword":"`+strings.Repeat("x", 1000)+`"`))
}

func TestPing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	status := func(want string) {
		t.Helper()
		if got := b.Get(agent).Text("status"); got != want {
			t.Errorf("the agent is %s, want %s", got, want)
		}
		for _, other := range []string{"online", "OFFLINE", "ERROR"} {
			size := 0
			if strings.EqualFold(other, want) {
				size = 1
			}
			if found := b.Get(b.tenant() + "/agents?status=" + other).Want(200).Int("size"); found != size {
				t.Errorf("%d agents are found as %s while it is %s", found, other, want)
			}
		}
	}
	ping := func(body string) { t.Helper(); b.Post(agent+"/ping", body).Want(200) }
	status("OFFLINE")
	b.Post(agent+"/ping", `{"status":"online"}`).Want(200).Golden("agent_pinged")
	status("ONLINE")
	b.clock.Move(2 * time.Minute)
	status("ONLINE")
	b.clock.Move(time.Millisecond)
	status("OFFLINE")
	ping(`{"status":"ONLINE"}`)
	b.Post(agent, `{"config":{"baseDn":"dc=new"}}`).Want(200)
	status("ONLINE")
	ping(fmt.Sprintf(`{"status":"ERROR","message":%q}`, strings.Repeat("x", 1000)))
	status("ERROR")
	b.clock.Move(time.Hour)
	status("ERROR")
	ping(`{"status":"ONLINE","message":null}`)
	status("ONLINE")
	for body, code := range map[string]int{
		`{}`: 2000, `{"status":null}`: 2000, `{"status":"OFFLINE"}`: 2003, `{"status":1}`: 2004,
		`{"status":"ONLINE","mood":"good"}`:                                2015,
		`{"status":"ERROR","message":"` + strings.Repeat("x", 1001) + `"}`: 2008,
	} {
		b.Post(agent+"/ping", body).WantError(400, code)
	}
	b.Get(b.tenant()+"/agents?status=IDLE").WantError(400, 2105)
	b.Get(b.tenant()+"/agents?name=x").WantError(400, 2105)
	b.Get(b.tenant() + "/agents?createdAt=2026-11&orderBy=modifiedAt%20desc,status,id").Want(200)
}

func TestConcurrentChangesOfAnAgentAreAllKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	members := []string{
		"emailRdn", "givenNameRdn", "middleNameRdn", "surnameRdn", "usernameRdn", "passwordRdn", "dnSuffix", "objectFilter",
	}
	var group sync.WaitGroup
	statuses := make(chan int, len(members))
	for _, member := range members {
		group.Go(func() {
			statuses <- b.Post(agent, fmt.Sprintf(`{"config":{"accountConfig":{%q:"new"}}}`, member)).Status
		})
	}
	group.Wait()
	close(statuses)
	for status := range statuses {
		if status != 200 {
			t.Errorf("a change was answered with %d", status)
		}
	}
	config, _ := b.Get(agent).Object()["config"].(map[string]any)
	accounts, _ := config["accountConfig"].(map[string]any)
	for _, member := range members {
		if accounts[member] != "new" {
			t.Errorf("%s is %v", member, accounts[member])
		}
	}
}
