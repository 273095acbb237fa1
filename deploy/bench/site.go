package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const callback = "https://app.localhost:9999/callback"

// site is a server that load is put on: the baseline, the peer, or a deployment of
// the product with an application that has a directory of its own.
type site struct {
	name          string // behind those of its operations in the report
	client        *e2e.Client
	tls           *tls.Config
	authorization string
	host          string // address without the version
	roots         []int  // its processes; empty where they are not known
	run           string // part of every name, different in each run
	rows          int    // of the baseline
	version       string // of the baseline's PostgreSQL
	peer          peer

	pages        string // address of the hosted pages
	clientAPI    string
	application  string
	organization string
	directory    string
	accounts     []string // addresses
	emails       []string // of those that can log in
	access       []string // tokens
	refresh      []string
	keys         []url.Values // client credentials grants
	sessions     chan string  // tokens of hosted pages
	saml         samlProvider
	openID       openIDProvider
	ldap         *mirror // nil where no agent is measured
}

// openSite connects to a server.
func openSite(name string, key e2e.Key, roots []int) (*site, error) {
	client, err := e2e.NewClient(key)
	if err != nil {
		return nil, err
	}
	return (&site{name: name, tls: client.TLS(), host: key.HostURL(), roots: roots, run: rand.Text()[:8]}).with(client), nil
}

// with sets the client, whose key all requests have.
func (s *site) with(client *e2e.Client) *site {
	s.client, s.authorization = client, basic(client.Key.ID, client.Key.Secret)
	return s
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// fill makes the application with its accounts, of which the first have a password
// hash of the product's own and are logged in. Without such accounts the access
// tokens are those of API keys, which cost no hash.
func (s *site) fill(ctx context.Context, accounts, logins int) error {
	c := caller{ctx: ctx, client: s.client}
	application := c.create("/applications?createDirectory=true",
		e2e.Object{"name": "bench " + unique("", s.run), "authorizedCallbackUris": []string{callback}})
	mapping := c.get(application.Object("defaultAccountStoreMapping").Href())
	config := c.get(application.Object("webConfig").Href())
	sites := items(c.get(application.Object("tenant").Href() + "/idSites"))
	if c.err != nil {
		return c.err
	}
	_, port, _ := net.SplitHostPort(s.client.Address())
	s.application, s.directory = application.Href(), mapping.Object("accountStore").Href()
	s.clientAPI, s.pages = s.host+"/client/"+config.Text("dnsLabel"), "https://"+sites[0].Text("domainName")+":"+port

	s.accounts, s.emails, s.keys = make([]string, accounts), make([]string, logins), make([]url.Values, min(16, accounts))
	s.access, s.refresh = make([]string, max(logins, 1)), make([]string, max(logins, 1))
	making, groupCtx := errgroup.WithContext(ctx)
	making.SetLimit(8)
	for n := range accounts {
		making.Go(func() error { return s.addAccount(groupCtx, n, n < logins) })
	}
	if err := making.Wait(); err != nil {
		return err
	}
	if logins == 0 {
		s.addTokens(&c, 0, s.keys[0])
	} else {
		s.addSAML(&c)
		s.addOpenID(&c)
	}
	return c.err
}

// addAccount makes the nth account; the first ones get an API key.
func (s *site) addAccount(ctx context.Context, n int, login bool) error {
	c := caller{ctx: ctx, client: s.client}
	address, body := s.directory+importing, imported(unique("seed", s.run))
	if login {
		address, body = s.application+"/accounts", newAccount(unique("seed", s.run))
		s.emails[n] = body.Text("email")
	}
	s.accounts[n] = c.create(address, body).Href()
	if n < len(s.keys) {
		key := c.create(s.accounts[n]+"/apiKeys", e2e.Object{})
		s.keys[n] = url.Values{"grant_type": {"client_credentials"}, "client_id": {key.Text("id")}, "client_secret": {key.Text("secret")}}
	}
	if login {
		s.addTokens(&c, n, url.Values{"grant_type": {"password"}, "username": {s.emails[n]}, "password": {e2e.Password}})
	}
	return c.err
}

func (s *site) addTokens(c *caller, n int, grant url.Values) {
	token := c.call(http.StatusOK, http.MethodPost, s.application+"/oauth/token", grant)
	s.access[n], s.refresh[n] = token.Text("access_token"), token.Text("refresh_token")
}

// fillTenants makes applications with an account each, and an organization in each
// tenant.
func fillTenants(ctx context.Context, first *site, tenants []e2e.Key, applications int) ([]*site, error) {
	sites := make([]*site, len(tenants)*applications)
	making, ctx := errgroup.WithContext(ctx)
	making.SetLimit(8)
	for t, tenant := range tenants {
		making.Go(func() error {
			name := unique("hot", first.run)
			c := caller{ctx: ctx, client: first.client.With(tenant.ID, tenant.Secret)}
			organization := c.create("/organizations", e2e.Object{"name": name, "nameKey": name})
			for n := 0; n < applications && c.err == nil; n++ {
				s := (&site{host: first.host, run: first.run, organization: organization.Href()}).with(c.client)
				c.err = s.fill(ctx, 1, 0)
				sites[t*applications+n] = s
			}
			return c.err
		})
	}
	err := making.Wait()
	first.client.HTTP.CloseIdleConnections()
	return sites, err
}

// caller calls a deployment. After a failure it calls nothing, so that the error of
// several calls is read once, after the last.
type caller struct {
	ctx    context.Context
	client *e2e.Client
	err    error
}

func (c *caller) create(address string, body e2e.Object) e2e.Object {
	return c.call(http.StatusCreated, http.MethodPost, address, body)
}

func (c *caller) get(address string) e2e.Object {
	return c.call(http.StatusOK, http.MethodGet, address, nil)
}

func (c *caller) call(want int, method, address string, body any) (found e2e.Object) {
	if c.err != nil {
		return nil
	}
	header := http.Header{"Accept": {"application/json"}}
	answer, err := c.client.Do(c.ctx, e2e.Request{Method: method, URL: address, Body: body, Header: header})
	if err == nil && answer.Status != want {
		err = fmt.Errorf("want %d: %s", want, answer)
	}
	if err == nil {
		found, err = answer.Object()
	}
	c.err = err
	return found
}

// items are those of a page of a collection.
func items(page e2e.Object) (found []e2e.Object) {
	list, _ := page["items"].([]any)
	for _, each := range list {
		found = append(found, each.(map[string]any))
	}
	return found
}

// deployment is standalone or the distributed shape, started for the measurement.
type deployment struct {
	harness.Shape
	key   e2e.Key
	roots []int
}

// settings differ from the defaults: all load comes from one address and one
// tenant, and refusals are not to be measured.
var settings = []string{"DOORWARD_TENANT_RATE=0", "DOORWARD_USER_RATE=0", "DOORWARD_ADDRESS_RATE=0", "DOORWARD_ADDRESS_CONCURRENCY=100"}

// started calls fn, which starts the shape, and finds the processes of it.
func (d *deployment) started(fn func() error) (err error) {
	if d.roots, err = started(fn); err != nil {
		return err
	}
	d.key, err = e2e.ReadKey(d.KeyFile())
	return err
}

// boot is how long standalone took to answer over TLS.
func (d *deployment) boot() float64 { return d.Shape.(*harness.Standalone).Boot.Seconds() }

// restart stops standalone and starts it with the same data.
func (d *deployment) restart(ctx context.Context) error {
	s := d.Shape.(*harness.Standalone)
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return d.started(func() error { return s.Start(ctx) })
}

// newTenant makes another tenant and returns its API key: standalone signs one up
// for a key that it does not know. The next restart is with the first key again.
func (d *deployment) newTenant(ctx context.Context) (e2e.Key, error) {
	first, other := d.key, d.key
	other.ID, other.Secret = rand.Text(), rand.Text()+rand.Text()
	if err := other.Write(d.KeyFile()); err != nil {
		return other, err
	}
	err := d.restart(ctx)
	d.key = first
	return other, errors.Join(err, first.Write(d.KeyFile()))
}

// stop ends what was started and runs.
func (d *deployment) stop(ctx context.Context) error {
	if d.Shape == nil {
		return nil
	}
	err := d.Stop(context.WithoutCancel(ctx))
	if err != nil {
		d.Logs(os.Stderr)
	}
	d.Shape = nil
	return err
}
