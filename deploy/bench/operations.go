package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/deploy/e2e"
)

// operation is one thing that a client of the product does.
type operation struct {
	name     string
	about    string
	baseline string  // what it is compared with
	target   float64 // of its rate over that of the baseline; 0: none
	do       func(*siteLine, uint64) error
}

// operations, in the order of the report.
var operations = []operation{
	{"login", "POST loginAttempts with a right password", hashName, 0.9, (*siteLine).login},
	{"validate", "GET authTokens, then the access token it redirects to: two requests", followName, 0.5, (*siteLine).validate},
	{"refresh", "POST oauth/token with a refresh token", pairName, 0.5, (*siteLine).refresh},
	{"client", "POST oauth/token with the credentials of a client", pairName, 0.5, (*siteLine).client},
	{"get", "GET an account", rowName, 0.5, (*siteLine).get},
	{"create", "POST an account to the application", hashName, 0, (*siteLine).create},
	{"import", "POST an account with a bcrypt hash to the directory", insertName, 0.5, (*siteLine).importOne},
}

func operationNames() (names []string) {
	for _, operation := range operations {
		names = append(names, operation.name)
	}
	return names
}

// subject is the operation as something to put load on.
func (s *site) subject(o operation) subject {
	return subject{o.name, func() line {
		return &siteLine{wire: newWire(s.address, s.tls, patience), site: s, operate: o.do}
	}}
}

// siteLine performs one operation over one connection.
type siteLine struct {
	*wire
	site    *site
	operate func(*siteLine, uint64) error
}

func (l *siteLine) do(n uint64) error { return l.operate(l, n) }

// ask begins the next request.
func (l *siteLine) ask(method, address string) {
	l.request.Reset()
	l.request.Header.SetMethod(method)
	l.request.SetRequestURI(address)
	key := l.site.client.Key
	l.request.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(key.ID+":"+key.Secret)))
}

func (l *siteLine) body(contentType string, body []byte) {
	l.request.Header.SetContentType(contentType)
	l.request.SetBodyRaw(body)
}

func (l *siteLine) json(body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the body: %w", err)
	}
	l.body("application/json", raw)
	return nil
}

// one takes a value of the site for the nth operation.
func one(of []string, n uint64) string { return of[scattered(n)%uint64(len(of))] }

func (l *siteLine) login(n uint64) error {
	l.ask("POST", l.site.application+"/loginAttempts")
	value := base64.StdEncoding.EncodeToString([]byte(one(l.site.emails, n) + ":" + e2e.Password))
	if err := l.json(e2e.Object{"type": "basic", "value": value}); err != nil {
		return err
	}
	return l.send(fasthttp.StatusOK)
}

func (l *siteLine) validate(n uint64) error {
	l.ask("GET", l.site.application+"/authTokens/"+one(l.site.access, n))
	if err := l.send(fasthttp.StatusFound); err != nil {
		return err
	}
	l.ask("GET", string(l.answer.Header.Peek("Location")))
	return l.send(fasthttp.StatusOK)
}

func (l *siteLine) refresh(n uint64) error {
	return l.grant(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {one(l.site.refresh, n)}})
}

func (l *siteLine) client(n uint64) error {
	key := l.site.keys[scattered(n)%uint64(len(l.site.keys))]
	return l.grant(url.Values{"grant_type": {"client_credentials"}, "client_id": {key.id}, "client_secret": {key.secret}})
}

func (l *siteLine) grant(form url.Values) error {
	l.ask("POST", l.site.application+"/oauth/token")
	l.body("application/x-www-form-urlencoded", []byte(form.Encode()))
	return l.send(fasthttp.StatusOK)
}

func (l *siteLine) get(n uint64) error {
	l.ask("GET", one(l.site.accounts, n))
	return l.send(fasthttp.StatusOK)
}

func (l *siteLine) create(uint64) error {
	l.ask("POST", l.site.application+"/accounts")
	if err := l.json(newAccount(newEmail(l.site.run))); err != nil {
		return err
	}
	created.Add(1)
	return l.send(fasthttp.StatusCreated)
}

func (l *siteLine) importOne(uint64) error {
	l.ask("POST", l.site.directory+"/accounts?passwordFormat=mcf&registrationWorkflowEnabled=false")
	if err := l.json(anImport(l.site.run)); err != nil {
		return err
	}
	created.Add(1)
	return l.send(fasthttp.StatusCreated)
}

// Over all runs, how many accounts operations have asked for, and how many email
// addresses were given out, to the baseline too.
var created, emails atomic.Int64

// newEmail gives an address that no account has yet.
func newEmail(run string) string {
	return "new" + strconv.FormatInt(emails.Add(1), 10) + "-" + run + "@example.test"
}

// anImport is the next account whose password was hashed elsewhere.
func anImport(run string) newImport {
	return newImport{Email: newEmail(run), Password: importedHash, GivenName: "Jo", Surname: "Doe"}
}
