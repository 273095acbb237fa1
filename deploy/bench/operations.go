package main

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// operation is one thing that a client does. Its figures are divided by those of
// another operation in the same round.
type operation struct {
	name, over string
	aims       aims
	apart      string                // aim of the processor time of the distributed shape over standalone's
	setup      func(s *site, l load) // before a run; nil: nothing
	do         action
}

// operations of the product, in the order of the report.
var operations = []operation{
	{name: "login", over: "hash", aims: aims{rate: ">= 0.85"}, do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, s.login(n))
	}},
	{name: "validate", over: "follow", aims: aims{cpu: "<= 1.25"}, apart: "<= 1.5", do: func(s *site, c *connection, n uint64) error {
		return c.follow(s.application + "/authTokens/" + one(s.access, n))
	}},
	{name: "refresh", over: "pair", aims: aims{cpu: "<= 1"}, do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, s.token(e2e.RefreshGrant(one(s.refresh, n))))
	}},
	{name: "client", over: "pair", aims: aims{cpu: "<= 1.1"}, apart: "<= 1.2", do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, s.token(one(s.keys, n)))
	}},
	{name: "get", over: "row", aims: aims{cpu: "<= 1.25"}, apart: "<= 1.2", do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, e2e.Get(one(s.accounts, n)))
	}},
	{name: "signed", over: "get", aims: aims{cpu: "<= 1.2"}, do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, s.client.Signed(http.MethodGet, one(s.accounts, n), nil, time.Now()))
	}},
	{name: "create", over: "hash", do: func(s *site, c *connection, _ uint64) error {
		return c.send(http.StatusCreated, e2e.Post(s.application+"/accounts", newAccount("new")))
	}},
	{name: "import", over: "insert", aims: aims{rate: ">= 0.5"}, do: func(s *site, c *connection, _ uint64) error {
		return c.send(http.StatusCreated, e2e.Post(s.directory+importing, imported("new")))
	}},
	{name: "sso", over: "row", do: func(s *site, c *connection, _ uint64) error { return s.openSession(c) }},
	{name: "session", over: "row", do: func(s *site, c *connection, _ uint64) error {
		if c.session == "" {
			if err := s.openSession(c); err != nil {
				return err
			}
		}
		return s.showPage(c)
	}},
	{name: "hosted", over: "login", aims: aims{cpu: "<= 1.15"}, setup: (*site).openSessions, do: func(s *site, c *connection, n uint64) error {
		select {
		case c.session = <-s.sessions:
		default:
			if err := s.openSession(c); err != nil {
				return err
			}
		}
		return s.hostedLogin(c, n)
	}},
	{name: "journey", over: "login", do: func(s *site, c *connection, n uint64) error {
		if err := s.openSession(c); err != nil {
			return err
		}
		cookies := c.cookies()
		if err := s.showPage(c); err != nil {
			return err
		}
		if err := s.hostedLogin(c, n); err != nil {
			return err
		}
		_, assertion, _ := strings.Cut(c.answered("Service-SSO-Redirect-Location"), "?jwtResponse=")
		return c.send(http.StatusFound, page(s.host+"/sso/?jwtResponse="+assertion, cookies))
	}},
	{name: "saml", over: "sso", do: (*site).samlLogin},
	{name: "social", over: "sso", do: (*site).socialLogin},
	{name: "me", over: "row", aims: aims{rate: ">= 0.5"}, do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, page(s.clientAPI+"/me", "access_token="+one(s.access, n)))
	}},
	{name: delegated, aims: aims{rate: ">= 500"}, do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, login(s.ldap.application, s.ldap.user(n)))
	}},
}

// delegated is the name of the login of which an agent checks the password.
const delegated = "delegated"

// bareOperations are those of the baseline.
var bareOperations = []operation{
	{name: "bare", do: func(s *site, c *connection, _ uint64) error { return c.send(http.StatusOK, e2e.Get(s.host+"/bare")) }},
	{name: "row", do: func(s *site, c *connection, n uint64) error {
		return c.send(http.StatusOK, e2e.Get(s.host+"/row/"+one(s.accounts, n)))
	}},
	{name: "follow", do: func(s *site, c *connection, n uint64) error {
		return c.follow(s.host + "/follow/" + one(s.accounts, n))
	}},
	{name: "insert", do: func(s *site, c *connection, _ uint64) error {
		return c.send(http.StatusCreated, e2e.Post(s.host+"/insert", imported("new")))
	}},
	{name: "pair", do: func(s *site, c *connection, _ uint64) error {
		return c.send(http.StatusOK, e2e.Post(s.host+"/pair", url.Values{"grant_type": {"refresh_token"}}))
	}},
	{name: "hash", do: func(s *site, c *connection, _ uint64) error { return c.send(http.StatusOK, e2e.Get(s.host+"/hash")) }},
}

// find returns an operation of the product by its name.
func find(name string) operation {
	return operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == name })]
}

func operationNames() (all []string) {
	for _, o := range operations {
		all = append(all, o.name)
	}
	return all
}

// one chooses a value for the nth operation.
func one[T any](of []T, n uint64) T { return of[scattered(n)%uint64(len(of))] }

// scattered turns a count into numbers without an order, the same in every run:
// the finalizer of splitmix64.
func scattered(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// newAccount is one that is not there yet.
func newAccount(noun string) e2e.Object { return e2e.NewAccount(unique(noun) + "@example.test") }

// importing is where accounts with a password that was hashed elsewhere go.
const importing = "/accounts?passwordFormat=mcf&registrationWorkflowEnabled=false"

// imported is such an account: bcrypt of the password of all accounts.
func imported(noun string) e2e.Object {
	account := newAccount(noun)
	account["password"] = "$2b$10$PgveVd5D7aXoUVIJuyxPce.cKEzECXopK00hhLbhIDdJ8Kamj2U9a"
	return account
}

var (
	thisRun = strings.ToLower(rand.Text()[:8])
	names   atomic.Int64
)

// unique returns a name that nothing has yet.
func unique(noun string) string {
	return noun + strconv.FormatInt(names.Add(1), 10) + "-" + thisRun
}

func (s *site) token(grant url.Values) e2e.Request {
	return e2e.Post(s.application+"/oauth/token", grant)
}

func (s *site) login(n uint64) e2e.Request { return login(s.application, one(s.emails, n)) }

func login(application, name string) e2e.Request {
	return e2e.Login(e2e.Object{"href": application}, name, e2e.Password)
}

// openSession begins a hosted login. The connection holds its session token then.
func (s *site) openSession(c *connection) error {
	if err := c.send(http.StatusFound, page(s.host+"/sso?jwtRequest="+s.loginRequest(), "")); err != nil {
		return err
	}
	if c.session = c.redirect().Get("jwt"); c.session == "" {
		return refusal{http.StatusFound, "the hosted login redirects to " + c.answered("Location")}
	}
	return nil
}

// openSessions begins as many hosted logins as a run can end, more than the
// processors can hash passwords in its time, or fewer where one fails.
func (s *site) openSessions(l load) {
	s.sessions = make(chan string, l.connections+int(60*float64(runtime.NumCPU())*(l.warm+l.length).Seconds()))
	c := connect(s.tls, "")
	defer c.close()
	for len(s.sessions) < cap(s.sessions) && s.openSession(c) == nil {
		s.sessions <- c.session
	}
}

// showPage is the first call of a hosted page.
func (s *site) showPage(c *connection) error {
	return s.sessionCall(c, http.StatusOK, e2e.Get(s.application+"?expand=idSiteModel"))
}

// hostedLogin is the call of a hosted page with the password.
func (s *site) hostedLogin(c *connection, n uint64) error {
	return s.sessionCall(c, http.StatusNoContent, s.login(n))
}

// sessionCall sends a request of a hosted page. After a failure the next call
// begins with another session.
func (s *site) sessionCall(c *connection, want int, r e2e.Request) error {
	r.Header = http.Header{"Authorization": {"Bearer " + c.session}, "Origin": {s.pages}}
	c.session = ""
	if err := c.send(want, r); err != nil {
		return err
	}
	c.session = strings.TrimPrefix(c.answered("Authorization"), "Bearer ")
	return nil
}

// loginRequest is a signed request for the hosted login
// (docs/interface/id-site.md#requests), another one at each call.
func (s *site) loginRequest() string {
	return e2e.SignJWT(e2e.Object{"typ": "JWT", "alg": "HS256"}, e2e.Object{
		"iat": time.Now().Unix(), "iss": s.client.Key.ID, "sub": s.application, "cb_uri": callback, "jti": rand.Text(),
	}, s.client.Key.Secret)
}

// writes returns an action that changes the applications and the organizations of
// sites in turns and, every tenth time, creates others.
func writes(sites []*site) action {
	return func(_ *site, c *connection, n uint64) error {
		s := one(sites, n/2)
		c.authorization = s.authorization
		name := unique("writes")
		created := e2e.Object{"name": name, "description": name}
		switch {
		case n%20 == 0:
			return c.send(http.StatusCreated, e2e.Post(s.base+"/applications", created))
		case n%20 == 1:
			created["nameKey"] = name
			return c.send(http.StatusCreated, e2e.Post(s.base+"/organizations", created))
		}
		changed := []string{s.application, s.organization}[n%2]
		return c.send(http.StatusOK, e2e.Post(changed, e2e.Object{"description": name}))
	}
}

// ofAll returns an action that does an operation in the applications of all sites.
func ofAll(sites []*site, do action) action {
	return func(_ *site, c *connection, n uint64) error {
		s := one(sites, n)
		c.authorization = s.authorization
		return do(s, c, n)
	}
}
