package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/providertest"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/agent/ldaptest"
)

// samlProvider is a SAML identity provider whose responses the generator signs
// itself, and what it knows of the directory that trusts it.
type samlProvider struct {
	pair     saml.KeyPair
	entityID string // of the directory
	consumer string // where its responses go
}

// openIDProvider is an OpenID provider in this process, and the directory that
// trusts it.
type openIDProvider struct {
	*providertest.Provider
	directory string // address
}

const (
	samlName      = "https://idp.localhost"
	providerUsers = 64 // of each provider; few, so that most logins make no account
)

// startOpenID serves an OpenID provider over TLS, which what is started afterwards
// asks.
func (r *run) startOpenID() error {
	r.openID = providertest.New()
	server := httptest.NewTLSServer(r.openID)
	r.atEnd(func(context.Context) error { server.Close(); return nil })
	r.openID.URL = server.URL
	for n := range providerUsers {
		id := strconv.Itoa(n)
		r.openID.AddUser(id, map[string]any{
			"sub": id, "email": id + "@openid.test", "email_verified": true, "given_name": "Jo", "family_name": "Doe",
		})
	}
	authority := filepath.Join(r.dir, "openid.pem")
	r.config.Settings = append(r.config.Settings, "DOORWARD_OUTBOUND_CA_FILE="+authority)
	return os.WriteFile(authority, []byte(providertest.Authority(server)), 0o600)
}

// addSAML makes a SAML directory of the application.
func (s *site) addSAML(c *e2e.Setup) {
	pair, err := saml.NewKeyPair(samlName, time.Now())
	if err != nil {
		c.Err = err
	}
	directory := s.addDirectory(c, s.application, e2e.Object{
		"providerId": "saml", "ssoLoginUrl": samlName + "/login", "ssoLogoutUrl": samlName + "/logout",
		"entityId": samlName, "encodedX509SigningCert": pair.Certificate,
	})
	provider := c.Get(directory + "/provider")
	metadata := c.Get(provider.Object("serviceProviderMetadata").Href())
	s.saml = samlProvider{pair, metadata.Text("entityId"), metadata.Object("assertionConsumerServicePostEndpoint").Href()}
}

// addOpenID makes a directory of the application that is known by its issuer.
func (s *site) addOpenID(c *e2e.Setup) {
	s.openID.directory = s.addDirectory(c, s.application, e2e.Object{
		"providerId": unique("openid"), "discoveryUrl": s.openID.URL, "scope": []string{"openid", "email", "profile"},
		"clientId": providertest.ClientID, "clientSecret": providertest.ClientSecret,
	})
}

// addDirectory makes a directory of a provider, maps it to an application and
// returns its address.
func (s *site) addDirectory(c *e2e.Setup, application string, provider e2e.Object) string {
	directory := c.Post(s.base+"/directories", e2e.Object{"name": unique("provider"), "provider": provider})
	c.Post(s.base+"/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": application}, "accountStore": e2e.Object{"href": directory.Href()},
	})
	return directory.Href()
}

// silentLogin makes a directory of a provider at an address that never answers, in an
// application of its own, and returns a login there: it is refused, and tried again
// after a second.
func (s *site) silentLogin(ctx context.Context, address string) (action, error) {
	c, name := s.client.Setup(ctx), unique("silent")
	application := c.Post(s.base+"/applications", e2e.Object{"name": name}).Href()
	s.addDirectory(c, application, e2e.Object{
		"providerId": name, "providerType": "oauth2", "clientId": "c", "clientSecret": "s",
		"authorizationEndpoint": address, "tokenEndpoint": address, "resourceEndpoint": address,
	})
	body := e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": "token"}}
	return func(_ *site, c *connection, _ uint64) error {
		err := c.send(http.StatusBadRequest, e2e.Post(application+"/accounts", body))
		time.Sleep(time.Second)
		return err
	}, c.Err
}

// samlLogin is a whole login at the SAML provider: the signed request, and a
// response with two signatures that leads on to the callback.
func (s *site) samlLogin(c *connection, n uint64) error {
	if err := c.send(http.StatusFound, page(s.application+"/saml/sso/idpRedirect?accessToken="+s.loginRequest(), "")); err != nil {
		return err
	}
	asked := c.redirect()
	login, err := saml.ParseRequest(asked.Get("SAMLRequest"))
	if err != nil {
		return fmt.Errorf("%.200s: %w", c.answered("Location"), err)
	}
	email := fmt.Sprintf("saml%d-%s@example.test", scattered(n)%providerUsers, thisRun)
	signed, err := saml.Response{
		Issuer: samlName, Audience: s.saml.entityID, ConsumerURL: s.saml.consumer, InResponseTo: login.ID,
		NameID: email, NameIDFormat: saml.EmailNameID, Now: time.Now(), Attributes: []saml.Attribute{
			{Name: "mail", Values: []string{email}}, {Name: "givenName", Values: []string{"Jo"}}, {Name: "sn", Values: []string{"Doe"}},
		},
	}.Sign(s.saml.pair, saml.SHA256)
	if err != nil {
		return err
	}
	response := e2e.Post(s.saml.consumer, url.Values{
		"SAMLResponse": {base64.StdEncoding.EncodeToString(signed)}, "RelayState": {asked.Get("RelayState")},
	})
	response.Anonymous = true
	return c.logsIn(response)
}

// socialLogin is a whole login at the OpenID provider: the way there, the code that
// its page would hand out, and the way back, on which the product asks the provider
// for the tokens and the user.
func (s *site) socialLogin(c *connection, n uint64) error {
	query := url.Values{
		"response_type": {"service_token"}, "account_store_href": {s.openID.directory}, "redirect_uri": {callback}, "state": {"s"},
	}
	if err := c.send(http.StatusFound, page(s.clientAPI+"/authorize?"+query.Encode(), "")); err != nil {
		return err
	}
	asked := c.redirect()
	code := s.openID.Code(strconv.FormatUint(scattered(n)%providerUsers, 10), asked.Get("redirect_uri"), asked.Get("nonce"))
	back := url.Values{"state": {asked.Get("state")}, "code": {code}}
	return c.logsIn(page(asked.Get("redirect_uri")+"?"+back.Encode(), c.cookies()))
}

// logsIn sends the last request of a login. The answer must redirect with its
// assertion.
func (c *connection) logsIn(r e2e.Request) error {
	if err := c.send(http.StatusFound, r); err != nil {
		return err
	}
	if assertion, err := e2e.ReadClaims(c.redirect().Get("jwtResponse")); err != nil || assertion.Text("status") != "AUTHENTICATED" {
		return refusal{http.StatusBadRequest, "the login redirects to " + c.answered("Location")}
	}
	return nil
}

// mirror is a directory whose accounts an agent brings from an LDAP server in this
// process.
type mirror struct {
	people      int
	application string // address
	server      ldaptest.Server
	firstSearch time.Time // of the agent
	synced      time.Time // when it had sent all accounts
	agent       *harness.Daemon
	status      string // address of the agent's
	client      *e2e.Client
}

// startMirror makes a directory with an application, starts its agent, which looks for
// changes so often, and waits until it has sent all accounts.
func (r *run) startMirror(ctx context.Context, s *site, people int, poll time.Duration) (*mirror, error) {
	m := &mirror{people: people, client: s.client.Browser()}
	m.server.Entries = func() iter.Seq[ldaptest.Entry] { return peopleOf(people) }
	m.server.Searched = sync.OnceValue(func() bool { m.firstSearch = time.Now(); return true })
	if err := m.server.Listen(); err != nil {
		return nil, err
	}
	r.atEnd(func(context.Context) error { m.server.Stop(); return nil })
	c := s.client.Setup(ctx)
	m.application = c.Post(s.base+"/applications", e2e.Object{"name": unique("ldap")}).Href()
	directory := s.addDirectory(c, m.application, e2e.Object{"providerId": "ldap", "agent": e2e.Object{"config": e2e.Object{
		"directoryHost": "127.0.0.1", "directoryPort": m.server.Port(), "baseDn": "dc=corp",
		"agentUserDn": "cn=agent", "agentUserDnPassword": "x",
		"accountConfig": e2e.Object{"objectClass": "inetOrgPerson", "emailRdn": "mail", "givenNameRdn": "givenName", "surnameRdn": "sn",
			"usernameRdn": "uid", "passwordRdn": "userPassword"},
		"groupConfig": e2e.Object{"objectClass": "groupOfNames", "nameRdn": "cn", "descriptionRdn": "description"},
	}}})
	agent := c.Get(directory + "/provider").Object("agent")
	key := c.Post(agent.Href()+"/keys", e2e.Object{"name": "bench"})
	if c.Err != nil {
		return nil, c.Err
	}
	page := harness.FreeAddress()
	m.status = "http://" + page + "/status.json"
	m.agent = harness.NewDaemon("agent", filepath.Join(r.dir, unique("agent")+".log"), m.sent, filepath.Join(r.config.Bin, "agent"))
	m.agent.Setenv("DOORWARD_URL="+s.host, "DOORWARD_CA_FILE="+s.client.Key.CAFile, "DOORWARD_AGENT_ID="+agent.ID(),
		"DOORWARD_AGENT_KEY_ID="+key.Text("id"), "DOORWARD_AGENT_KEY_SECRET="+key.Text("secret"),
		"DOORWARD_AGENT_LISTEN="+page, "DOORWARD_AGENT_POLL="+poll.String())
	m.agent.SetOps()
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
func (m *mirror) sent(ctx context.Context) error {
	answer, err := m.client.Do(ctx, e2e.Get(m.status))
	var status struct{ SyncedAt time.Time }
	if err == nil {
		err = json.Unmarshal(answer.Body, &status)
	}
	if m.synced = status.SyncedAt; err == nil && m.synced.IsZero() {
		err = errors.New("it has not")
	}
	return err
}

// polls counts the agent's looks for changes.
func (m *mirror) polls(ctx context.Context) (float64, error) {
	return m.agent.Metric(ctx, "doorward_agent_syncs_total", `result="ok"`)
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
	polls, pollsErr := m.polls(ctx)
	searches := m.server.Searches.Load()
	used := usedBetween(ctx, agent, time.Now(), time.Now().Add(r.idleFor))
	after, afterErr := m.polls(ctx)
	if err := errors.Join(pollsErr, afterErr, ctx.Err()); err != nil {
		return err
	}
	count := max(after-polls, 1)
	w := r.report.add("directory agent", "searches of a look without a change", "", "= 1", float64(m.server.Searches.Load()-searches)/count)
	w.cpu = []float64{float64(used.server().Microseconds()) / count}
	return nil
}
