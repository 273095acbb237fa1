package main

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/loadgen"
)

// operation is one kind of request, or of a sequence of requests, that a client sends.
type operation struct {
	name           string
	ratioTo        string // operation whose figures of the same round divide those of this one; empty: none
	rateAim        string // what the ratio of the rates is meant to be; without ratioTo the rate itself
	cpuAim         string // what the ratio of the processor times is meant to be
	distributedAim string // what the processor time distributed over that in standalone is meant to be

	prepare func(s *system, l loadgen.Load) // runs before each measurement; nil: nothing
	do      action
}

// productOperations are the operations of the product, in the order of the report (README.md says more):
//
//   - login: a login attempt with a password
//   - validate: the validation of an access token
//   - refresh, client: the grants refresh_token and client_credentials
//   - get, signed: an account is read with an API key as Basic, and with a signature (SAuthc1)
//   - create, import: a new account with a password, and with the hash of one
//   - sso: the redirect that begins a hosted login
//   - session, hosted: a call of a hosted page with its session token, and that with the password
//   - journey: a whole hosted login, from the request to the callback
//   - saml, social: a login at a SAML and at an OpenID Connect provider
//   - me: GET /me of the Client API
//   - delegated: a login whose password an LDAP agent checks
//   - openid-…: the endpoints of an OpenID provider (openid.go)
var productOperations = slices.Concat([]operation{
	{name: "login", ratioTo: "hash", rateAim: ">= 0.85", do: sends(http.StatusOK, (*system).login)},
	{name: "validate", ratioTo: "follow", cpuAim: "<= 1.25", distributedAim: "<= 1.5",
		do: follows((*system).validateToken)},
	{name: "refresh", ratioTo: "pair", cpuAim: "<= 1", do: sends(http.StatusOK, (*system).refreshToken)},
	{name: "client", ratioTo: "pair", cpuAim: "<= 1.1", distributedAim: "<= 1.2",
		do: sends(http.StatusOK, (*system).clientCredentials)},
	{name: "get", ratioTo: "row", cpuAim: "<= 1.25", distributedAim: "<= 1.2",
		do: sends(http.StatusOK, (*system).getAccount)},
	{name: "signed", ratioTo: "get", cpuAim: "<= 1.2", do: sends(http.StatusOK, (*system).getAccountSigned)},
	{name: "create", ratioTo: "hash", do: sends(http.StatusCreated, (*system).createAccount)},
	{name: "import", ratioTo: "insert", rateAim: ">= 0.5", do: sends(http.StatusCreated, (*system).importAccount)},
	{name: "sso", ratioTo: "row", do: (*system).openSession},
	{name: "session", ratioTo: "row", do: inSequence((*system).keepSession, (*system).showPage)},
	{name: "hosted", ratioTo: "login", cpuAim: "<= 1.15", prepare: (*system).openSessions,
		do: inSequence((*system).takeSession, (*system).hostedLogin)},
	{name: "journey", ratioTo: "login",
		do: inSequence((*system).openSession, (*system).showPage, (*system).hostedLogin, (*system).returnToApplication)},
	{name: "saml", ratioTo: "sso", do: (*system).samlLogin},
	{name: "social", ratioTo: "sso", do: (*system).openIDLogin},
	{name: "me", ratioTo: "row", rateAim: ">= 0.5", do: sends(http.StatusOK, (*system).currentUser)},
	{name: delegated, rateAim: ">= 500", do: sends(http.StatusOK, (*system).delegatedLogin)},
}, openIDOperations)

// delegated is the operation for which an agent has to run.
const delegated = "delegated"

// baselineOperations are those of the bare handlers in baseline.go.
var baselineOperations = []operation{
	{name: "bare", do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request { return e2e.Get(s.host + "/bare") })},
	{name: "row", do: sends(http.StatusOK, func(s *system, n uint64) e2e.Request { return e2e.Get(s.host + "/row/" + pick(s.accounts, n)) })},
	{name: "follow", do: follows(func(s *system, n uint64) e2e.Request { return e2e.Get(s.host + "/follow/" + pick(s.accounts, n)) })},
	{name: "insert", do: sends(http.StatusCreated, func(s *system, _ uint64) e2e.Request {
		return e2e.Post(s.host+"/insert", importedAccount())
	})},
	{name: "pair", do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request {
		return e2e.Post(s.host+"/pair", url.Values{"grant_type": {"refresh_token"}})
	})},
	{name: "hash", do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request { return e2e.Get(s.host + "/hash") })},
	{name: "es256", do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request { return e2e.Get(s.host + "/sign/ES256") })},
	{name: "rs256", do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request { return e2e.Get(s.host + "/sign/RS256") })},
}

// sends is the action that sends one request, which must be answered with the status.
func sends(status int, request func(s *system, n uint64) e2e.Request) action {
	return func(s *system, c *connection, n uint64) error { return c.send(status, request(s, n)) }
}

// follows is the action that sends a request which is redirected, and then a GET of its Location.
func follows(request func(s *system, n uint64) e2e.Request) action {
	return inSequence(sends(http.StatusFound, request), func(_ *system, c *connection, _ uint64) error {
		return c.send(http.StatusOK, e2e.Get(c.header("Location")))
	})
}

// inSequence is the action that does all of these until one fails.
func inSequence(actions ...action) action {
	return func(s *system, c *connection, n uint64) (err error) {
		for i := 0; i < len(actions) && err == nil; i++ {
			err = actions[i](s, c, n)
		}
		return err
	}
}

// inTurns is the action on all these systems in turns, each with its own API key.
func inTurns(systems []*system, do action) action {
	return func(_ *system, c *connection, n uint64) error {
		s := pick(systems, n)
		c.authorization = s.authorization
		return do(s, c, n)
	}
}

// productOperation finds an operation of the product by its name.
func productOperation(name string) operation {
	return productOperations[slices.IndexFunc(productOperations, func(o operation) bool { return o.name == name })]
}

func productOperationNames() (names []string) {
	for _, o := range productOperations {
		names = append(names, o.name)
	}
	return names
}

// pick chooses a value for the nth operation, in the same pseudo-random order in every run.
func pick[T any](values []T, n uint64) T { return values[pseudoRandom(n)%uint64(len(values))] }

// pseudoRandom is the finalizer of splitmix64.
func pseudoRandom(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

var (
	runName = strings.ToLower(rand.Text()[:8])
	counter atomic.Int64
)

// unique is a name that no other resource has, also of earlier runs.
func unique(noun string) string {
	return noun + strconv.FormatInt(counter.Add(1), 10) + "-" + runName
}

// The requests of the nth operation.

func (s *system) login(n uint64) e2e.Request      { return passwordLogin(s.application, pick(s.emails, n)) }
func (s *system) getAccount(n uint64) e2e.Request { return e2e.Get(pick(s.accounts, n)) }
func (s *system) createAccount(uint64) e2e.Request {
	return e2e.Post(s.application+"/accounts", newAccount())
}

func (s *system) importAccount(uint64) e2e.Request {
	return e2e.Post(s.directory+"/accounts?passwordFormat=mcf&registrationWorkflowEnabled=false", importedAccount())
}

func (s *system) getAccountSigned(n uint64) e2e.Request {
	return s.client.Signed(http.MethodGet, pick(s.accounts, n), nil, time.Now())
}

func (s *system) validateToken(n uint64) e2e.Request {
	return e2e.Get(s.application + "/authTokens/" + pick(s.accessTokens, n))
}

func (s *system) refreshToken(n uint64) e2e.Request {
	return s.tokenRequest(e2e.RefreshGrant(pick(s.refreshTokens, n)))
}

func (s *system) clientCredentials(n uint64) e2e.Request {
	return s.tokenRequest(pick(s.clientGrants, n))
}

func (s *system) tokenRequest(grant url.Values) e2e.Request {
	return e2e.Post(s.application+"/oauth/token", grant)
}

func (s *system) currentUser(n uint64) e2e.Request {
	return browserRequest(s.clientAPI+"/me", "access_token="+pick(s.accessTokens, n))
}

// delegatedLogin is the login of an account whose password an agent checks at the LDAP server.
func (s *system) delegatedLogin(n uint64) e2e.Request {
	return passwordLogin(s.ldap.application, ldapUser(int(pseudoRandom(n)%uint64(s.ldap.accounts))))
}

func passwordLogin(application, loginName string) e2e.Request {
	return e2e.Login(e2e.Object{"href": application}, loginName, e2e.Password)
}

func newAccount() e2e.Object { return e2e.NewAccount(unique("new") + "@example.test") }

// importedAccount is a new account with the bcrypt hash of e2e.Password, as another product would have made it.
func importedAccount() e2e.Object {
	account := newAccount()
	account["password"] = "$2b$10$PgveVd5D7aXoUVIJuyxPce.cKEzECXopK00hhLbhIDdJ8Kamj2U9a"
	return account
}

// loginRequest is a new signed request for the hosted login (docs/interface/id-site.md#requests).
func (s *system) loginRequest() string {
	return e2e.SignJWT(e2e.Object{"typ": "JWT", "alg": "HS256"}, e2e.Object{
		"iat": time.Now().Unix(), "iss": s.client.Key.ID, "sub": s.application, "cb_uri": callback, "jti": rand.Text(),
	}, s.client.Key.Secret)
}

// openSession begins a hosted login and leaves its session token and cookies in the connection.
func (s *system) openSession(c *connection, _ uint64) error {
	err := c.send(http.StatusFound, browserRequest(s.host+"/sso?jwtRequest="+s.loginRequest(), ""))
	c.session, c.sessionCookies = c.redirectQuery().Get("jwt"), c.cookies()
	if err == nil && c.session == "" {
		err = statusError{http.StatusFound, "the hosted login redirects to " + c.header("Location")}
	}
	return err
}

// openSessions begins as many hosted logins as a measurement can complete, more than the processors can hash
// passwords in its time. It begins fewer where one fails.
func (s *system) openSessions(l loadgen.Load) {
	s.sessions = make(chan string, l.Workers+int(60*float64(runtime.NumCPU())*(l.WarmUp+l.Length).Seconds()))
	c := connect(s.tls, "")
	defer c.close()
	for len(s.sessions) < cap(s.sessions) && s.openSession(c, 0) == nil {
		s.sessions <- c.session
	}
}

// takeSession takes one of openSessions, and opens another when all are taken.
func (s *system) takeSession(c *connection, n uint64) error {
	select {
	case c.session = <-s.sessions:
		return nil
	default:
		return s.openSession(c, n)
	}
}

// keepSession opens a session unless the connection has one.
func (s *system) keepSession(c *connection, n uint64) error {
	if c.session != "" {
		return nil
	}
	return s.openSession(c, n)
}

// showPage is the first call of a hosted page. Its answer renews the session token.
func (s *system) showPage(c *connection, _ uint64) error {
	return s.sessionCall(c, http.StatusOK, e2e.Get(s.application+"?expand=idSiteModel"))
}

// hostedLogin is the call of a hosted page with the password.
func (s *system) hostedLogin(c *connection, n uint64) error {
	return s.sessionCall(c, http.StatusNoContent, s.login(n))
}

// returnToApplication follows the address that the answer of hostedLogin names, up to the redirect to the callback.
func (s *system) returnToApplication(c *connection, _ uint64) error {
	_, assertion, _ := strings.Cut(c.header("Service-SSO-Redirect-Location"), "?jwtResponse=")
	return c.send(http.StatusFound, browserRequest(s.host+"/sso/?jwtResponse="+assertion, c.sessionCookies))
}

// sessionCall sends a request of a hosted page. After a failure the connection has no session.
func (s *system) sessionCall(c *connection, status int, r e2e.Request) (err error) {
	r.Header = http.Header{"Authorization": {"Bearer " + c.session}, "Origin": {s.pages}}
	c.session = ""
	if err = c.send(status, r); err == nil {
		c.session = strings.TrimPrefix(c.header("Authorization"), "Bearer ")
	}
	return err
}

// write changes an application or its organization and, every tenth time, creates another.
func (s *system) write(c *connection, n uint64) error {
	name := unique("writes")
	fields := e2e.Object{"name": name, "description": name}
	switch {
	case n%20 == 0:
		return c.send(http.StatusCreated, e2e.Post(s.base+"/applications", fields))
	case n%20 == 1:
		fields["nameKey"] = name
		return c.send(http.StatusCreated, e2e.Post(s.base+"/organizations", fields))
	}
	changed := []string{s.application, s.organization}[n%2]
	return c.send(http.StatusOK, e2e.Post(changed, e2e.Object{"description": name}))
}

// saveAccount reads an account and saves all of it, with another middle name.
func (s *system) saveAccount(c *connection, n uint64) error {
	address := pick(s.accounts, n)
	if err := c.send(http.StatusOK, e2e.Get(address)); err != nil {
		return err
	}
	var read e2e.Object
	if err := json.Unmarshal(c.response.Body(), &read); err != nil {
		return err
	}
	saved := e2e.Object{"middleName": unique("saved")}
	for _, name := range []string{"username", "email", "givenName", "surname", "status"} {
		saved[name] = read[name]
	}
	return c.send(http.StatusOK, e2e.Post(address, saved))
}

// visits is the action of users who come seldom: the tokens of a fifth of the accounts are validated ten
// times in turns, then those of the next fifth, so that each is silent until all others were there.
func visits(applications []*system) action {
	var sent atomic.Int64
	validate := productOperation("validate").do
	return func(_ *system, c *connection, _ uint64) error {
		n := int(sent.Add(1) - 1)
		group := len(applications) * len(applications[0].accessTokens) / 5
		n = n/(10*group)*group + n%group
		one := *applications[n%len(applications)]
		one.accessTokens = one.accessTokens[n/len(applications)%len(one.accessTokens):][:1]
		c.authorization = one.authorization
		return validate(&one, c, 0)
	}
}
