package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/deploy/e2e"
)

// operation is one thing that a client of the product does.
type operation struct {
	name     string
	about    string
	baseline string // what its rate is divided by
	aim      string // of the ratio
	do       func(s *site, c *connection, n uint64) error
}

// operations, in the order of the report.
var operations = []operation{
	{"login", "POST loginAttempts with the right password", "hash", "0.85", func(s *site, c *connection, n uint64) error {
		return c.send(s.login(n))
	}},
	{"validate", "GET authTokens, then the access token in its Location", "follow", "0.5", func(s *site, c *connection, n uint64) error {
		return c.sendTwice(s.application + "/authTokens/" + one(s.access, n))
	}},
	{"refresh", "POST oauth/token with a refresh token", "pair", "0.5", func(s *site, c *connection, n uint64) error {
		return c.send(postForm(s.application+"/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {one(s.refresh, n)}}))
	}},
	{"client", "POST oauth/token with client credentials", "pair", "0.5", func(s *site, c *connection, n uint64) error {
		key := s.keys[scattered(n)%uint64(len(s.keys))]
		return c.send(postForm(s.application+"/oauth/token",
			url.Values{"grant_type": {"client_credentials"}, "client_id": {key.id}, "client_secret": {key.secret}}))
	}},
	{"get", "GET an account", "row", "0.5", func(s *site, c *connection, n uint64) error { return c.send(get(one(s.accounts, n))) }},
	{"signed", "GET an account, the request signed by SAuthc1", "row", "", func(s *site, c *connection, n uint64) error {
		signed, r := s.client.Signed("GET", one(s.accounts, n), nil, time.Now()), get(one(s.accounts, n))
		r.header = map[string]string{"Authorization": signed.Header.Get("Authorization"), "X-Service-Date": signed.Header.Get("X-Service-Date")}
		return c.send(r)
	}},
	{"create", "POST an account to the application: a hash and a mail", "hash", "", func(s *site, c *connection, _ uint64) error {
		return c.send(postJSON(s.application+"/accounts", newAccount(newEmail(s.run)), fasthttp.StatusCreated))
	}},
	{"import", "POST an account with a bcrypt hash to its directory", "insert", "0.5", func(s *site, c *connection, _ uint64) error {
		return c.send(s.importAccount(newEmail(s.run)))
	}},
	{"sso", "GET the hosted login with a signed request, up to its redirect", "row", "", func(s *site, c *connection, _ uint64) error {
		_, err := s.openSession(c)
		return err
	}},
	{"session", "a call of a hosted page: GET application with its session token", "row", "", func(s *site, c *connection, _ uint64) error {
		if c.session == "" {
			if _, err := s.openSession(c); err != nil {
				return err
			}
		}
		return s.sessionCall(c, get(s.application+"?expand=idSiteModel"))
	}},
	{"hosted", "a hosted login, from request to callback: four requests", "login", "0.85", func(s *site, c *connection, n uint64) error {
		cookies, err := s.openSession(c)
		if err == nil {
			err = s.sessionCall(c, get(s.application+"?expand=idSiteModel"))
		}
		if err != nil {
			return err
		}
		login := s.login(n)
		login.want = fasthttp.StatusNoContent
		if err := s.sessionCall(c, login); err != nil {
			return err
		}
		_, assertion, _ := strings.Cut(c.answered("Service-SSO-Redirect-Location"), "?jwtResponse=")
		return c.send(page(s.host+"/sso/?jwtResponse="+assertion, cookies))
	}},
	{"me", "GET me of the Client API with the cookie of an access token", "row", "0.5", func(s *site, c *connection, n uint64) error {
		r := page(s.me, "access_token="+one(s.access, n))
		r.want = fasthttp.StatusOK
		return c.send(r)
	}},
}

// bareOperations are those of the baseline, with the same shape.
var bareOperations = []struct {
	name, about string
	do          func(b *baseline, c *connection, n uint64) error
}{
	{"bare", "a constant account", func(b *baseline, c *connection, _ uint64) error { return c.send(get(b.url + "/bare")) }},
	{"row", "one SELECT by the primary key", func(b *baseline, c *connection, n uint64) error {
		return c.send(get(b.url + "/row/" + aRow(b.rows, n)))
	}},
	{"follow", "one SELECT and a redirect to row", func(b *baseline, c *connection, n uint64) error {
		return c.sendTwice(b.url + "/follow/" + aRow(b.rows, n))
	}},
	{"insert", "one INSERT with the indexes of accounts, committed durably", func(b *baseline, c *connection, _ uint64) error {
		return c.send(postJSON(b.url+"/insert", imported(newEmail("insert")), fasthttp.StatusCreated))
	}},
	{"pair", "two INSERTs in a transaction, committed durably", func(b *baseline, c *connection, _ uint64) error {
		return c.send(postForm(b.url+"/pair", url.Values{"grant_type": {"refresh_token"}}))
	}},
}

func aRow(rows int, n uint64) string { return strconv.FormatUint(scattered(n)%uint64(rows)+1, 10) }

// one chooses a value for the nth operation.
func one(of []string, n uint64) string { return of[scattered(n)%uint64(len(of))] }

// scattered turns a count into numbers without an order, the same in every run:
// the finalizer of splitmix64.
func scattered(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func newAccount(email string) e2e.Object {
	return e2e.Object{"email": email, "password": e2e.Password, "givenName": "Jo", "surname": "Doe"}
}

// imported is an account whose password was hashed elsewhere: bcrypt of the
// password of all accounts.
func imported(email string) e2e.Object {
	const hash = "$2b$10$PgveVd5D7aXoUVIJuyxPce.cKEzECXopK00hhLbhIDdJ8Kamj2U9a"
	return e2e.Object{"email": email, "password": hash, "givenName": "Jo", "surname": "Doe"}
}

func (s *site) importAccount(email string) request {
	return postJSON(s.directory+"/accounts?passwordFormat=mcf&registrationWorkflowEnabled=false", imported(email), fasthttp.StatusCreated)
}

var emails atomic.Int64

// newEmail returns an address that no account has yet.
func newEmail(run string) string {
	return "new" + strconv.FormatInt(emails.Add(1), 10) + "-" + run + "@example.test"
}

func (s *site) login(n uint64) request {
	value := base64.StdEncoding.EncodeToString([]byte(one(s.emails[:s.hashed], n) + ":" + e2e.Password))
	return postJSON(s.application+"/loginAttempts", e2e.Object{"type": "basic", "value": value}, fasthttp.StatusOK)
}

// openSession begins a hosted login. The connection holds its session token then.
func (s *site) openSession(c *connection) (cookies string, err error) {
	if err := c.send(page(s.host+"/sso?jwtRequest="+s.loginRequest(), "")); err != nil {
		return "", err
	}
	location, found := c.answered("Location"), false
	if _, c.session, found = strings.Cut(location, "?jwt="); !found {
		return "", refusal{fasthttp.StatusFound, "the hosted login redirects to " + location}
	}
	return c.cookies(), nil
}

// sessionCall sends a request of a hosted page. After a failure the next call
// begins with another session.
func (s *site) sessionCall(c *connection, r request) error {
	r.header = map[string]string{"Authorization": "Bearer " + c.session, "Origin": s.pages}
	c.session = ""
	if err := c.send(r); err != nil {
		return err
	}
	c.session = strings.TrimPrefix(c.answered("Authorization"), "Bearer ")
	return nil
}

// loginRequest is a signed request for the hosted login
// (docs/interface/id-site.md#requests), another one at each call.
func (s *site) loginRequest() string {
	encode := func(part any) string {
		raw, _ := json.Marshal(part) // text and numbers
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	signed := encode(map[string]string{"typ": "JWT", "alg": "HS256"}) + "." + encode(map[string]any{
		"iat": time.Now().Unix(), "iss": s.client.Key.ID, "sub": s.application, "cb_uri": callback, "jti": rand.Text(),
	})
	mac := hmac.New(sha256.New, []byte(s.client.Key.Secret))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
