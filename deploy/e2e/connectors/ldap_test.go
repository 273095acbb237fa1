package connectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// lastAddress is the number of the last address of an end user.
var lastAddress atomic.Uint32

// agentBin is the folder of the compiled agent.
var agentBin = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return harness.Build(ctx, shared.dir, "./services/agent/cmd/agent")
})

// agentDirectory is an application and its directory, whose accounts an agent synchronizes from
// an LDAP server.
type agentDirectory struct {
	application, directory e2e.Object
	agent                  string // its address
	key                    e2e.Object
}

// newAgentDirectory makes a directory of a kind (ldap or ad) for an LDAP server.
func newAgentDirectory(t *testing.T, kind string, config e2e.Object) agentDirectory {
	t.Helper()
	m := agentDirectory{application: client.NewApplication(t)}
	m.directory = client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("mirror"), "provider": e2e.Object{
		"providerId": kind, "agent": e2e.Object{"config": config},
	}})
	client.DeleteAtEnd(t, m.directory.Href())
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": m.application.Href()}, "accountStore": e2e.Object{"href": m.directory.Href()},
	})
	m.agent = client.Get(t, m.directory.Link(t, "provider")).Link(t, "agent")
	m.key = client.Create(t, m.agent+"/keys", e2e.Object{"name": t.Name()})
	return m
}

// process returns an agent of the directory, which is not started.
func (m agentDirectory) process(t *testing.T, name string, more ...string) *harness.Daemon {
	t.Helper()
	bin, err := agentBin()
	if err != nil {
		t.Fatal(err)
	}
	page, ops := address(t), address(t)
	agent := harness.NewDaemon(name, filepath.Join(t.TempDir(), name+".log"), func(ctx context.Context) error {
		return probe(ctx, "http://"+ops+"/healthz")
	}, filepath.Join(bin, "agent"))
	agent.Setenv(append([]string{
		"DOORWARD_URL=" + client.Key.HostURL(), "DOORWARD_CA_FILE=" + client.Key.CAFile, "DOORWARD_AGENT_ID=" + m.agent[strings.LastIndexByte(m.agent, '/')+1:],
		"DOORWARD_AGENT_KEY_ID=" + m.key.Text("id"), "DOORWARD_AGENT_KEY_SECRET=" + m.key.Text("secret"),
		"DOORWARD_AGENT_LDAP_CA_FILE=" + authority.CAFile, "DOORWARD_AGENT_LISTEN=" + page, "DOORWARD_OPS_LISTEN=" + ops,
		"DOORWARD_AGENT_POLL=200ms", "DOORWARD_AGENT_DELETIONS=1ms",
	}, more...)...)
	return agent
}

// start runs an agent until the test ends.
func (m agentDirectory) start(t *testing.T, name string, more ...string) *harness.Daemon {
	t.Helper()
	agent := m.process(t, name, more...)
	if err := agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(agent.Tail())
		}
		if agent.PID() != 0 {
			_ = agent.Kill()
		}
	})
	return agent
}

func address(t *testing.T) string {
	t.Helper()
	free := harness.FreeAddress()
	return free
}

func probe(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// state is the accounts and groups of the directory: "user STATUS surname" and "group: user user". An
// account that the LDAP server no longer has is ABSENT, and not named among the members of groups.
func (m agentDirectory) state(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, a := range client.All(t, m.directory.Link(t, "accounts")) {
		status := a.Text("status")
		if a["absentSince"] != nil {
			status = "ABSENT"
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Text("username"), status, a.Text("surname"))))
	}
	for _, g := range client.All(t, m.directory.Link(t, "groups")) {
		answer := client.Call(t, e2e.Request{Method: http.MethodGet, URL: g.Link(t, "accounts") + "?limit=100"})
		if answer.Status == http.StatusNotFound { // deleted since the list was read
			continue
		}
		page, err := answer.Object()
		if err != nil {
			t.Fatal(err)
		}
		members := []string{}
		for _, a := range page.Items(t) {
			if a["absentSince"] == nil {
				members = append(members, a.Text("username"))
			}
		}
		slices.Sort(members)
		lines = append(lines, strings.TrimSpace(g.Text("name")+": "+strings.Join(members, " ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// await waits until the directory has the lines of state, in any order, and no others.
func (m agentDirectory) await(t *testing.T, what string, lines ...string) {
	t.Helper()
	slices.Sort(lines)
	want := strings.Join(lines, "\n")
	err := e2e.AwaitFor(t.Context(), time.Minute, what, func(context.Context) error {
		if got := m.state(t); got != want {
			return fmt.Errorf("the mirror has\n%s\nwant\n%s", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// login returns the error code of a login, 0 for success, and its developerMessage.
func (m agentDirectory) login(t *testing.T, name, password string) (code int, reason string) {
	t.Helper()
	// Each login comes from another address, so that the rate limit does not apply.
	answer := client.Call(t, e2e.Login(m.application, name, password).From(fmt.Sprintf("2001:db8:0:%x::1", lastAddress.Add(1))))
	o, err := answer.Object()
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status == http.StatusOK {
		return 0, ""
	}
	return o.Number(t, "code"), o.Text("developerMessage")
}

func (m agentDirectory) wantLogin(t *testing.T, name, password string, want int) string {
	t.Helper()
	code, reason := m.login(t, name, password)
	if code != want {
		t.Errorf("the login of %q has the code %d (%s), want %d", name, code, reason, want)
	}
	return reason
}

func (m agentDirectory) awaitLogin(t *testing.T, name, password string, want int) {
	t.Helper()
	err := e2e.AwaitFor(t.Context(), time.Minute, "the login of "+name, func(context.Context) error {
		if code, reason := m.login(t, name, password); code != want {
			return fmt.Errorf("code %d: %s", code, reason)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// attacks are login names and passwords for LDAP injection, into a filter or a name.
var attacks = []string{
	"*", "jo*", "jo)(uid=*", "*)(objectClass=*", "jo)(|(uid=*", "jo\\2a", "\\6a\\6f", "(uid=jo)", "uid=jo,ou=people,dc=example,dc=test",
	"jo\x00", "jo)\x00", "&", "|", "!(uid=al)", "jo*", "jo\u0000admin", "cn=admin,dc=example,dc=test", strings.Repeat("(", 500), "jo\r\nadmin",
}

func slapdConfig(s *connectors.Slapd) e2e.Object {
	return e2e.Object{
		"directoryHost": s.Host, "directoryPort": s.TLSPort, "sslRequired": true, "agentUserDn": connectors.SlapdAdmin,
		"agentUserDnPassword": connectors.SlapdPassword, "baseDn": connectors.SlapdBase, "pollInterval": 1,
		"accountConfig": e2e.Object{"dnSuffix": "ou=people", "objectClass": "inetOrgPerson", "emailRdn": "mail", "givenNameRdn": "givenName",
			"surnameRdn": "sn", "usernameRdn": "uid", "passwordRdn": "userPassword"},
		"groupConfig": e2e.Object{"objectClass": "groupOfNames", "nameRdn": "cn", "descriptionRdn": "description", "membersRdn": "member"},
	}
}

func ldapPerson(uid, sn, more string) string {
	return fmt.Sprintf("dn: uid=%[1]s,ou=people,dc=example,dc=test\nobjectClass: inetOrgPerson\nuid: %[1]s\ncn: %[1]s\nsn: %[2]s\n"+
		"userPassword: secret-%[1]s\n%[3]s\n", uid, sn, more)
}

func ldapGroup(cn string, members ...string) string {
	text := "dn: cn=" + cn + ",dc=example,dc=test\nobjectClass: groupOfNames\ncn: " + cn + "\n"
	for _, member := range members {
		text += "member: " + member + ",dc=example,dc=test\n"
	}
	return text + "\n"
}

const people = "dn: ou=people,dc=example,dc=test\nobjectClass: organizationalUnit\nou: people\n\n" +
	"dn: ou=away,dc=example,dc=test\nobjectClass: organizationalUnit\nou: away\n\n"

func TestOpenLDAP(t *testing.T) {
	server := connectors.StartSlapd(t, authority, people+
		ldapPerson("jo", "Doe", "mail: jo@example.test\n")+ldapPerson("zoë", "Ærø-Ødegård", "mail: zoe@example.test\n")+
		ldapPerson("nomail", "Nobody", "")+ldapPerson("al", "Low", "mail: al@example.test\n"))
	server.Add(t, ldapGroup("staff", "uid=jo,ou=people", "cn=inner")+ldapGroup("inner", "uid=al,ou=people", "cn=staff"))
	m := newAgentDirectory(t, "ldap", slapdConfig(server))
	agent := m.start(t, "agent")

	t.Run("the first sync", func(t *testing.T) {
		m.await(t, "the first sync", "al ENABLED Low", "jo ENABLED Doe", "zoë ENABLED Ærø-Ødegård", "inner: al jo", "staff: al jo")
		refused := client.All(t, m.agent+"/refusals")
		if len(refused) != 1 || refused[0].Text("name") != "nomail" || !strings.Contains(refused[0].Text("reason"), "email") {
			t.Errorf("the sync refused %v", refused)
		}
		err := e2e.AwaitFor(t.Context(), time.Minute, "the end of the sync", func(context.Context) error {
			last := client.Get(t, m.agent).Object("lastSync")
			if last.Number(t, "accounts") != 3 || last.Number(t, "refused") != 1 {
				return fmt.Errorf("the last sync is %v", last)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("logins", func(t *testing.T) {
		m.wantLogin(t, "jo", "secret-jo", 0)
		m.wantLogin(t, "JO@example.test", "secret-jo", 0)
		m.wantLogin(t, "jo ", "secret-jo", 0) // white space around a login name is no part of it
		m.wantLogin(t, "zoë", "secret-zoë", 0)
		m.wantLogin(t, "jo", "secret-al", 7100)
		m.wantLogin(t, "nobody", "secret-jo", 7104)
		m.wantLogin(t, "jo", "", 7100)
		for _, attack := range attacks {
			for _, login := range [][2]string{{attack, "secret-jo"}, {"jo", attack}, {attack, attack}} {
				if code, _ := m.login(t, login[0], login[1]); code != 7100 && code != 7104 && code != 2000 && code != 2006 && code != 2008 {
					t.Errorf("%q is answered with %d", login, code)
				}
			}
		}
	})
	t.Run("changes", func(t *testing.T) {
		server.Modify(t, "dn: uid=jo,ou=people,dc=example,dc=test\nchangetype: modify\nreplace: sn\nsn: Dough\n\n"+
			"dn: uid=al,ou=people,dc=example,dc=test\nchangetype: modrdn\nnewrdn: uid=albert\ndeleteoldrdn: 1\n\n"+
			"dn: cn=inner,dc=example,dc=test\nchangetype: modrdn\nnewrdn: cn=inside\ndeleteoldrdn: 1\nnewsuperior: ou=away,dc=example,dc=test\n")
		m.await(t, "a change, a rename and a move", "albert ENABLED Low", "jo ENABLED Dough", "zoë ENABLED Ærø-Ødegård", "inside: albert jo",
			"staff: albert jo")
		m.wantLogin(t, "albert", "secret-al", 0)
		server.Modify(t, "dn: uid=nomail,ou=people,dc=example,dc=test\nchangetype: modify\nadd: mail\nmail: now@example.test\n")
		server.Delete(t, "uid=zoë,ou=people,dc=example,dc=test")
		m.await(t, "a deletion and a repair", "albert ENABLED Low", "jo ENABLED Dough", "nomail ENABLED Nobody", "zoë ABSENT Ærø-Ødegård",
			"inside: albert jo", "staff: albert jo")
		server.Modify(t, "dn: uid=albert,ou=people,dc=example,dc=test\nchangetype: modrdn\nnewrdn: uid=albert\ndeleteoldrdn: 1\n"+
			"newsuperior: ou=away,dc=example,dc=test\n\n"+
			"dn: uid=nomail,ou=people,dc=example,dc=test\nchangetype: modify\nadd: pwdAccountLockedTime\npwdAccountLockedTime: 000001010000Z\n")
		m.await(t, "one that moves away and one that is disabled", "albert ABSENT Low", "jo ENABLED Dough", "nomail DISABLED Nobody",
			"zoë ABSENT Ærø-Ødegård", "inside: jo", "staff: jo")
		m.wantLogin(t, "albert", "secret-al", 7100)
	})
	t.Run("an expired password", func(t *testing.T) {
		server.Add(t, "dn: cn=short,dc=example,dc=test\nobjectClass: device\nobjectClass: pwdPolicy\ncn: short\npwdAttribute: userPassword\npwdMaxAge: 1\n\n"+
			ldapPerson("old", "Old", "mail: old@example.test\npwdPolicySubentry: cn=short,dc=example,dc=test\n"))
		m.await(t, "a new account", "albert ABSENT Low", "jo ENABLED Dough", "nomail DISABLED Nobody", "old ENABLED Old",
			"zoë ABSENT Ærø-Ødegård", "inside: jo", "staff: jo")
		m.awaitLogin(t, "old", "secret-old", 7100)
		if reason := m.wantLogin(t, "old", "secret-old", 7100); !strings.Contains(reason, "expired") {
			t.Errorf("the login with an expired password is refused because of %q", reason)
		}
	})
	t.Run("a server that does not answer", func(t *testing.T) {
		signal(t, server.Daemon, syscall.SIGSTOP)
		m.wantLogin(t, "jo", "secret-jo", 9003)
		signal(t, server.Daemon, syscall.SIGCONT)
		m.awaitLogin(t, "jo", "secret-jo", 0)
	})
	t.Run("a server that is away", func(t *testing.T) {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		m.wantLogin(t, "jo", "secret-jo", 9001)
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.awaitLogin(t, "jo", "secret-jo", 0)
	})
	t.Run("a second agent takes over", func(t *testing.T) {
		m.start(t, "second")
		for range 20 {
			m.wantLogin(t, "jo", "secret-jo", 0)
		}
		if err := agent.Kill(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		m.awaitLogin(t, "jo", "secret-jo", 0)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the second agent took over after %s", took)
		}
	})
}

// An agent is killed during a login, and the network between another agent and Doorward
// fails: logins fail with an error code of delegated logins or succeed, and afterwards the
// directory is as the LDAP server has it.
func TestAnAgentIsLost(t *testing.T) {
	server := connectors.StartSlapd(t, authority, people+ldapPerson("jo", "Doe", "mail: jo@example.test\n"))
	toServer := newTCPProxy(t, net.JoinHostPort(server.Host, strconv.Itoa(server.TLSPort)))
	config := slapdConfig(server)
	_, port, err := net.SplitHostPort(toServer.address)
	if err != nil {
		t.Fatal(err)
	}
	if config["directoryPort"], err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	m := newAgentDirectory(t, "ldap", config)
	// inFlight is a login that begins now; the function waits for its end.
	inFlight := func() func() {
		var login sync.WaitGroup
		login.Go(func() {
			switch code, reason := m.login(t, "jo", "secret-jo"); code {
			case 0, 9001, 9002, 9003:
			default:
				t.Errorf("the login has the code %d (%s)", code, reason)
			}
		})
		return login.Wait
	}

	first := m.start(t, "killed", "DOORWARD_AGENT_POLL=1h")
	m.await(t, "the first sync", "jo ENABLED Doe")
	m.awaitLogin(t, "jo", "secret-jo", 0)
	arrived := toServer.cut()
	wait := inFlight()
	<-arrived
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	toServer.restore()
	gateway, err := url.Parse(client.Key.HostURL())
	if err != nil {
		t.Fatal(err)
	}
	toGateway := newTCPProxy(t, gateway.Host)
	_, port, err = net.SplitHostPort(toGateway.address)
	if err != nil {
		t.Fatal(err)
	}
	m.start(t, "agent", "DOORWARD_URL=https://"+net.JoinHostPort(gateway.Hostname(), port))
	wait()
	m.awaitLogin(t, "jo", "secret-jo", 0)

	arrived = toGateway.cut()
	server.Modify(t, "dn: uid=jo,ou=people,dc=example,dc=test\nchangetype: modify\nreplace: sn\nsn: Dough\n")
	wait = inFlight()
	<-arrived
	if got := m.state(t); got != "jo ENABLED Doe" {
		t.Errorf("while the network is cut the mirror has\n%s", got)
	}
	toGateway.restore()
	wait()
	m.await(t, "the change", "jo ENABLED Dough")
	m.awaitLogin(t, "jo", "secret-jo", 0)
}

func signal(t *testing.T, daemon *harness.Daemon, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(daemon.PID(), s); err != nil {
		t.Fatal(err)
	}
}

// The API key of an agent has access to nothing but that agent.
func TestTheKeyOfAnAgent(t *testing.T) {
	config := e2e.Object{
		"directoryHost": "ldap.internal", "agentUserDn": "cn=x", "agentUserDnPassword": "p", "baseDn": "dc=x",
		"accountConfig": e2e.Object{"objectClass": "person", "emailRdn": "mail", "givenNameRdn": "givenName", "surnameRdn": "sn", "usernameRdn": "uid",
			"passwordRdn": "userPassword"},
		"groupConfig": e2e.Object{"objectClass": "group", "nameRdn": "cn", "descriptionRdn": "description"},
	}
	m, other := newAgentDirectory(t, "ldap", config), newAgentDirectory(t, "ldap", config)
	key := client.With(m.key.Text("id"), m.key.Text("secret"))
	if got := key.Get(t, m.agent+"/configuration"); got.Text("agentUserDnPassword") != "p" || got.Text("providerId") != "ldap" {
		t.Errorf("the configuration is %v", got)
	}
	for _, path := range []string{
		other.agent + "/configuration", m.agent, m.agent + "/keys", m.directory.Href(), m.directory.Link(t, "accounts"), "/tenants/current",
	} {
		key.Refused(t, http.StatusUnauthorized, 401, e2e.Request{Method: http.MethodGet, URL: path})
	}
	key.Refused(t, http.StatusUnauthorized, 401, e2e.Login(m.application, "jo", "x"))
	client.Delete(t, m.agent+"/keys/"+m.key.Text("id"))
	err := e2e.AwaitFor(t.Context(), 10*time.Second, "the end of the key", func(context.Context) error {
		if answer := key.Call(t, e2e.Request{Method: http.MethodGet, URL: m.agent + "/configuration"}); answer.Status != http.StatusUnauthorized {
			return errors.New(answer.String())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func sambaConfig(s *connectors.Samba) e2e.Object {
	return e2e.Object{
		"directoryHost": s.Host, "directoryPort": s.Port, "sslRequired": true, "agentUserDn": connectors.SambaAdmin,
		"agentUserDnPassword": connectors.SambaPassword, "baseDn": connectors.SambaBase, "pollInterval": 1, "referralMode": "ignore",
		"accountConfig": e2e.Object{"objectClass": "user", "objectFilter": "(&(objectCategory=person)(mail=*))", "emailRdn": "mail",
			"givenNameRdn": "givenName", "surnameRdn": "sn", "usernameRdn": "sAMAccountName"},
		"groupConfig": e2e.Object{"dnSuffix": "ou=teams", "objectClass": "group", "nameRdn": "cn", "descriptionRdn": "description"},
	}
}

func TestActiveDirectory(t *testing.T) {
	base := connectors.SambaBase
	server := connectors.StartSamba(t, authority, "dn: ou=staff,"+base+"\nobjectClass: organizationalUnit\n\ndn: ou=teams,"+base+
		"\nobjectClass: organizationalUnit\n")
	const password = "Secret-4711!"
	user := func(name, surname string) {
		server.NewUser(t, name, password, "--mail-address="+name+"@example.test", "--surname="+surname, "--userou=ou=staff")
	}
	user("jo", "Doe")
	user("al", "Økonom")
	server.Tool(t, "group", "add", "inner", "--groupou=ou=teams")
	server.Tool(t, "group", "add", "outer", "--groupou=ou=teams")
	server.Tool(t, "group", "addmembers", "inner", "al")
	server.Tool(t, "group", "addmembers", "outer", "inner,jo")
	m := newAgentDirectory(t, "ad", sambaConfig(server))
	m.start(t, "agent")
	m.await(t, "the first sync", "al ENABLED Økonom", "jo ENABLED Doe", "inner: al", "outer: al jo")
	m.wantLogin(t, "jo", password, 0)
	m.wantLogin(t, "al@example.test", password, 0)
	m.wantLogin(t, "jo", "wrong", 7100)
	for _, attack := range attacks {
		if code, _ := m.login(t, attack, attack); code != 7100 && code != 7104 && code != 2000 && code != 2006 && code != 2008 {
			t.Errorf("%q is answered with %d", attack, code)
		}
	}
	t.Run("changes", func(t *testing.T) {
		server.Tool(t, "user", "disable", "al")
		server.Tool(t, "user", "rename", "jo", "--surname=Dough")
		server.Tool(t, "group", "removemembers", "outer", "jo")
		m.await(t, "a disabled user and a rename", "al DISABLED Økonom", "jo ENABLED Dough", "inner: al", "outer: al")
		m.wantLogin(t, "al", password, 7100) // the server does not let it in, and says so whatever the password
		server.Tool(t, "user", "enable", "al")
		server.Tool(t, "user", "delete", "jo")
		server.Tool(t, "group", "delete", "outer")
		m.await(t, "deletions", "al ENABLED Økonom", "jo ABSENT Dough", "inner: al")
	})
	t.Run("an expired password", func(t *testing.T) {
		server.Tool(t, "user", "setpassword", "al", "--newpassword="+password+"2", "--must-change-at-next-login")
		if reason := m.wantLogin(t, "al", password+"2", 7100); !strings.Contains(reason, "expired") {
			t.Errorf("the login with an expired password is refused because of %q", reason)
		}
	})
}

// The agent and then Doorward are killed in the middle of a sync: no account is lost or
// duplicated. The figures are logged.
func TestALargeLDAPDirectory(t *testing.T) {
	const size, groups = 20_000, 1000
	var ldif strings.Builder
	ldif.WriteString(people)
	everybody := make([]string, size)
	for i := range size {
		uid := fmt.Sprintf("user%06d", i)
		everybody[i] = "uid=" + uid + ",ou=people"
		ldif.WriteString(ldapPerson(uid, "Näme "+uid, "mail: "+uid+"@example.test\n"))
	}
	ldif.WriteString(ldapGroup("everybody", everybody...))
	for i := range groups {
		ldif.WriteString(ldapGroup(fmt.Sprintf("group%04d", i), everybody[0]))
	}
	server := connectors.StartSlapd(t, authority, ldif.String())
	m := newAgentDirectory(t, "ldap", slapdConfig(server))
	size0 := func() int { return client.Get(t, m.directory.Link(t, "accounts")+"?limit=1").Number(t, "size") }
	first := m.start(t, "killed")
	err := e2e.AwaitFor(t.Context(), time.Minute, "a part of the sync", func(context.Context) error {
		if n := size0(); n < size/10 {
			return fmt.Errorf("the sync has made %d accounts", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.start(t, "agent", "DOORWARD_AGENT_DELETIONS=15m")
	err = e2e.AwaitFor(t.Context(), 3*time.Minute, "more of the sync", func(context.Context) error {
		if n := size0(); n < size/2 {
			return fmt.Errorf("the sync has made %d accounts", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	killDoorward(t)
	err = e2e.AwaitFor(t.Context(), 3*time.Minute, "the sync", func(context.Context) error {
		agent := client.Get(t, m.agent)
		if last, _ := json.Marshal(agent["lastSync"]); !strings.Contains(string(last), fmt.Sprintf(`"accounts":%d`, size)) {
			return errors.New(string(last))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d accounts and %d groups in %s after the first kill", size, groups+1, time.Since(began))
	if n := size0(); n != size {
		t.Errorf("the directory has %d accounts", n)
	}
	everyone := client.Get(t, m.directory.Link(t, "groups")+"?name=everybody").Items(t)
	if len(everyone) != 1 || client.Get(t, everyone[0].Link(t, "accounts")+"?limit=1").Number(t, "size") != size {
		t.Errorf("the group of all is %v", everyone)
	}
	account := client.Get(t, m.directory.Link(t, "accounts")+"?username=user000000").Items(t)[0]
	if n := client.Get(t, account.Link(t, "groups")+"?limit=1").Number(t, "size"); n != groups+1 {
		t.Errorf("one account has %d groups", n)
	}
	m.wantLogin(t, "user000007", "secret-user000007", 0)
}
