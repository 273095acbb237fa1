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
	"slices"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const callback = "https://app.localhost:9999/callback"

// settings differ from the defaults: all load comes from one address and one
// tenant, and refusals are not to be measured.
var settings = []string{"DOORWARD_TENANT_RATE=0", "DOORWARD_USER_RATE=0", "DOORWARD_ADDRESS_RATE=0", "DOORWARD_ADDRESS_CONCURRENCY=100"}

// site is a server that load is put on: the baseline, the peer, or a deployment of
// the product with an application that has a directory of its own.
type site struct {
	harness.Shape // of a deployment
	name          string
	client        *e2e.Client
	tls           *tls.Config
	authorization string
	base, host    string // addresses with and without the version
	roots         []int  // its processes; empty where they are not known
	peerAdmin     string // address of the peer for introspection

	pages        string // address of the hosted pages
	clientAPI    string
	application  string
	organization string
	directory    string
	accounts     []string // addresses; of the baseline numbers
	emails       []string // of those that can log in
	access       []string // tokens
	refresh      []string
	keys         []url.Values // client credentials grants
	sessions     chan string  // tokens of hosted pages
	saml         samlProvider
	openID       openIDProvider
	ldap         *mirror // nil where no agent is measured
}

// newSite is a server whose requests have the key of a client. The name stands behind
// those of its operations in the report.
func newSite(name string, client *e2e.Client, roots []int) *site {
	key := client.Key
	s := &site{name: name, client: client.Unchecked(), tls: client.TLS(), base: key.BaseURL, host: key.HostURL(), roots: roots}
	if key.ID != "" {
		s.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(key.ID+":"+key.Secret))
	}
	return s
}

// measured are the processes whose processor time is that of the operations.
func (s *site) measured() []int {
	if s.ldap == nil {
		return s.roots
	}
	return append(slices.Clip(s.roots), s.ldap.agent.PID())
}

// restart stops standalone and starts it with the same data.
func (s *site) restart(ctx context.Context) (err error) {
	s.roots, err = started(func() error { return s.Shape.(*harness.Standalone).Restart(ctx) })
	return err
}

// newTenant makes another tenant with an organization and some applications of one
// account: standalone signs one up for a key that it does not know. The next restart
// is with the first key again.
func (s *site) newTenant(ctx context.Context, applications int) (sites []*site, err error) {
	first := s.client.Key
	other := first
	other.ID, other.Secret = rand.Text(), rand.Text()+rand.Text()
	if err := errors.Join(other.Write(s.KeyFile()), s.restart(ctx), first.Write(s.KeyFile())); err != nil {
		return nil, err
	}
	tenant := newSite("", s.client.With(other.ID, other.Secret), nil)
	c, name := tenant.client.Setup(ctx), unique("hot")
	tenant.organization = c.Post(s.base+"/organizations", e2e.Object{"name": name, "nameKey": name}).Href()
	for n := 0; n < applications && c.Err == nil; n++ {
		own := *tenant
		c.Err = own.fill(ctx, 1, 0)
		sites = append(sites, &own)
	}
	return sites, c.Err
}

// fill makes the application with its accounts, of which the first have a password
// hash of the product's own and are logged in. Without such accounts the access
// tokens are those of API keys, which cost no hash.
func (s *site) fill(ctx context.Context, accounts, logins int) error {
	c := s.client.Setup(ctx)
	made := c.Site(e2e.Object{"name": unique("bench"), "authorizedCallbackUris": []string{callback}})
	config := c.Get(made.Application.Object("webConfig").Href())
	pages := c.Get(made.Application.Object("tenant").Href() + "/idSites").Objects("items")
	if c.Err != nil {
		return c.Err
	}
	_, port, _ := net.SplitHostPort(s.client.Address())
	s.application, s.directory = made.Application.Href(), made.Directory.Href()
	s.clientAPI, s.pages = s.host+"/client/"+config.Text("dnsLabel"), "https://"+pages[0].Text("domainName")+":"+port
	for n := 0; n < accounts && c.Err == nil; n++ {
		s.addAccount(c, n < logins)
	}
	if logins == 0 {
		s.addTokens(c, s.keys[0])
		return c.Err
	}
	s.addSAML(c)
	s.addOpenID(c)
	return c.Err
}

// addAccount makes an account; the first ones get an API key.
func (s *site) addAccount(c *e2e.Setup, login bool) {
	address, body := s.directory+importing, imported("seed")
	if login {
		address, body = s.application+"/accounts", newAccount("seed")
	}
	account := c.Post(address, body)
	s.accounts = append(s.accounts, account.Href())
	if len(s.keys) < 16 {
		key := c.Post(account.Href()+"/apiKeys", e2e.Object{})
		s.keys = append(s.keys, url.Values{
			"grant_type": {"client_credentials"}, "client_id": {key.Text("id")}, "client_secret": {key.Text("secret")},
		})
	}
	if login {
		s.emails = append(s.emails, account.Text("email"))
		s.addTokens(c, e2e.PasswordGrant(account.Text("email")))
	}
}

func (s *site) addTokens(c *e2e.Setup, grant url.Values) {
	token := c.Post(s.application+"/oauth/token", grant)
	s.access, s.refresh = append(s.access, token.Text("access_token")), append(s.refresh, token.Text("refresh_token"))
}

// peer is the file that BENCH_PEER names.
type peer struct {
	Name         string `json:"name"`      // in the report; empty: peer
	PublicURL    string `json:"publicUrl"` // of the token endpoint, without /oauth2/token
	AdminURL     string `json:"adminUrl"`  // of introspection, without /admin/oauth2/introspect
	ClientID     string `json:"clientId"`  // of a client with client_secret_basic
	ClientSecret string `json:"clientSecret"`
	CAFile       string `json:"caFile"` // empty: the certificate authorities of the machine
	PIDs         []int  `json:"pids"`   // its processes and those of its database; the processes below them count too
}

// peerOperations are those of an OAuth server such as Ory Hydra; each is divided by
// the product's operation.
var peerOperations = []operation{
	{name: "client", over: "client", do: func(s *site, c *connection, _ uint64) error {
		return c.send(http.StatusOK, s.peerToken())
	}},
	{name: "introspect", over: "validate", aims: aims{cpu: ">= 5"}, do: func(s *site, c *connection, n uint64) error {
		request := e2e.Post(s.peerAdmin+"/admin/oauth2/introspect", url.Values{"token": {one(s.access, n)}})
		request.Anonymous = true
		return c.send(http.StatusOK, request)
	}},
}

func (s *site) peerToken() e2e.Request {
	return e2e.Post(s.host+"/oauth2/token", url.Values{"grant_type": {"client_credentials"}})
}

// openPeer connects to the peer and gets some tokens to introspect.
func openPeer(file string) (*site, error) {
	p := peer{Name: "peer"}
	err := e2e.ReadJSON(file, &p)
	if err == nil && (p.PublicURL == "" || p.AdminURL == "" || p.ClientID == "") {
		err = errors.New("publicUrl, adminUrl or clientId is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("read the peer in %s: %w", file, err)
	}
	client, err := e2e.NewClient(e2e.Key{
		ID: url.QueryEscape(p.ClientID), Secret: url.QueryEscape(p.ClientSecret), // RFC 6749, section 2.3.1
		BaseURL: strings.TrimSuffix(p.PublicURL, "/"), CAFile: p.CAFile,
	})
	if err != nil {
		return nil, err
	}
	s := newSite(", "+p.Name, client, p.PIDs)
	s.peerAdmin = strings.TrimSuffix(p.AdminURL, "/")
	s.tls.ServerName = "" // it has two addresses
	c := connect(s.tls, s.authorization)
	defer c.close()
	for range 16 {
		if err := c.send(http.StatusOK, s.peerToken()); err != nil {
			return nil, err
		}
		token, err := c.object()
		if err != nil {
			return nil, err
		}
		s.access = append(s.access, token.Text("access_token"))
	}
	return s, nil
}
