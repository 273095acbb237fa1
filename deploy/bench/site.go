package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

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
	rows          int    // of the baseline
	version       string // of the baseline's PostgreSQL
	peer          peer

	base         string // address with the version
	pages        string // address of the hosted pages
	application  string
	organization string
	directory    string
	me           string   // address of the account of a cookie
	run          string   // part of every name, different in each run
	accounts     []string // addresses
	emails       []string // of those that can log in
	access       []string // tokens
	refresh      []string
	keys         []url.Values // client credentials grants
	identity     identityProvider
}

// openSite connects to a deployment and refuses one on another machine.
func openSite(ctx context.Context, name string, key e2e.Key) (*site, error) {
	if err := onThisMachine(ctx, key.BaseURL); err != nil {
		return nil, err
	}
	client, err := e2e.NewClient(key)
	if err != nil {
		return nil, err
	}
	return (&site{name: name, tls: client.TLS(), host: key.HostURL(), base: key.BaseURL, run: rand.Text()[:8]}).with(client), nil
}

// with sets the client, whose key all requests have.
func (s *site) with(client *e2e.Client) *site {
	s.client = client
	s.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(client.Key.ID+":"+client.Key.Secret))
	return s
}

func onThisMachine(ctx context.Context, address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, parsed.Hostname())
	if err != nil {
		return fmt.Errorf("look up %s: %w", parsed.Hostname(), err)
	}
	for _, address := range found {
		if !address.IP.IsLoopback() {
			return fmt.Errorf("%s is not this machine (%s): load is put on the loopback interface only", parsed.Hostname(), address.IP)
		}
	}
	return nil
}

// fill makes the application with its accounts, of which the first have a password
// hash of the product's own and are logged in. Without such accounts the access
// tokens are those of API keys, which cost no hash.
func (s *site) fill(ctx context.Context, accounts, logins int) error {
	application, err := s.create(ctx, s.base+"/applications?createDirectory=true",
		e2e.Object{"name": "bench " + unique("", s.run), "authorizedCallbackUris": []string{callback}})
	if err != nil {
		return err
	}
	mapping, mappingErr := s.read(ctx, application.Object("defaultAccountStoreMapping").Href())
	config, configErr := s.read(ctx, application.Object("webConfig").Href())
	sites, sitesErr := s.read(ctx, application.Object("tenant").Href()+"/idSites")
	if err := errors.Join(mappingErr, configErr, sitesErr); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(s.client.Address())
	s.application, s.directory = application.Href(), mapping.Object("accountStore").Href()
	s.me = s.host + "/client/" + config.Text("dnsLabel") + "/me"
	s.pages = "https://" + items(sites)[0].Text("domainName") + ":" + port

	s.accounts, s.emails, s.keys = make([]string, accounts), make([]string, logins), make([]url.Values, min(16, accounts))
	s.access, s.refresh = make([]string, max(logins, 1)), make([]string, max(logins, 1))
	making, groupCtx := errgroup.WithContext(ctx)
	making.SetLimit(8)
	for n := range accounts {
		making.Go(func() error { return s.addAccount(groupCtx, n, n < logins) })
	}
	switch err := making.Wait(); {
	case err != nil:
		return err
	case logins == 0:
		return s.addTokens(ctx, 0, s.keys[0])
	}
	return s.addIdentityProvider(ctx)
}

// addAccount makes the nth account; the first ones get an API key.
func (s *site) addAccount(ctx context.Context, n int, login bool) error {
	address, body := s.directory+importing, imported(unique("seed", s.run))
	if login {
		address, body = s.application+"/accounts", newAccount(unique("seed", s.run))
		s.emails[n] = body.Text("email")
	}
	account, err := s.create(ctx, address, body)
	if err != nil {
		return err
	}
	s.accounts[n] = account.Href()
	if n < len(s.keys) {
		key, err := s.create(ctx, s.accounts[n]+"/apiKeys", e2e.Object{})
		if err != nil {
			return err
		}
		s.keys[n] = url.Values{"grant_type": {"client_credentials"}, "client_id": {key.Text("id")}, "client_secret": {key.Text("secret")}}
	}
	if !login {
		return nil
	}
	return s.addTokens(ctx, n, url.Values{"grant_type": {"password"}, "username": {s.emails[n]}, "password": {e2e.Password}})
}

func (s *site) addTokens(ctx context.Context, n int, grant url.Values) error {
	token, err := s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodPost, URL: s.application + "/oauth/token", Body: grant})
	s.access[n], s.refresh[n] = token.Text("access_token"), token.Text("refresh_token")
	return err
}

// fillHot makes applications with an account each, and an organization in each
// tenant.
func fillHot(ctx context.Context, first *site, tenants []e2e.Key, applications int) ([]*site, error) {
	sites := make([]*site, len(tenants)*applications)
	making, ctx := errgroup.WithContext(ctx)
	making.SetLimit(8)
	for t, tenant := range tenants {
		making.Go(func() error {
			name, client := unique("hot", first.run), first.client.With(tenant.ID, tenant.Secret)
			organization, err := (&site{}).with(client).create(ctx, first.base+"/organizations", e2e.Object{"name": name, "nameKey": name})
			for n := 0; n < applications && err == nil; n++ {
				s := (&site{host: first.host, base: first.base, run: first.run, organization: organization.Href()}).with(client)
				err = s.fill(ctx, 1, 0)
				sites[t*applications+n] = s
			}
			return err
		})
	}
	err := making.Wait()
	first.client.HTTP.CloseIdleConnections()
	return sites, err
}

func (s *site) create(ctx context.Context, address string, body e2e.Object) (e2e.Object, error) {
	return s.ask(ctx, http.StatusCreated, e2e.Request{Method: http.MethodPost, URL: address, Body: body})
}

func (s *site) read(ctx context.Context, address string) (e2e.Object, error) {
	return s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: address})
}

// delete removes the addresses, also when the run was interrupted.
func (s *site) delete(ctx context.Context, addresses ...string) (failures error) {
	for _, address := range addresses {
		_, err := s.ask(context.WithoutCancel(ctx), http.StatusNoContent, e2e.Request{Method: http.MethodDelete, URL: address})
		failures = errors.Join(failures, err)
	}
	return failures
}

func (s *site) ask(ctx context.Context, want int, request e2e.Request) (e2e.Object, error) {
	answer, err := s.client.Do(ctx, request)
	if err == nil && answer.Status != want {
		err = fmt.Errorf("want %d: %s", want, answer)
	}
	if err != nil || want == http.StatusNoContent {
		return nil, err
	}
	return answer.Object()
}

// items are those of a page of a collection.
func items(page e2e.Object) (found []e2e.Object) {
	list, _ := page["items"].([]any)
	for _, each := range list {
		found = append(found, each.(map[string]any))
	}
	return found
}

var linkInPage = regexp.MustCompile(`(?:href|src)="(/[^"]+)"`)

// pageWeight gets the sign-in page and all that it names, as a browser does, and
// returns the bytes of the answers with their headers.
func (s *site) pageWeight(ctx context.Context) (total, requests int, err error) {
	plain, err := s.client.Do(ctx, e2e.Request{Method: http.MethodGet, URL: s.pages + "/", Anonymous: true})
	if err != nil {
		return 0, 0, err
	}
	addresses := []string{"/"}
	for _, link := range linkInPage.FindAllSubmatch(plain.Body, -1) {
		addresses = append(addresses, string(link[1]))
	}
	var headers bytes.Buffer
	for _, address := range addresses {
		answer, err := s.client.Do(ctx, e2e.Request{Method: http.MethodGet, URL: s.pages + address, Anonymous: true,
			Header: http.Header{"Accept-Encoding": {"gzip"}}})
		if err == nil && answer.Status != http.StatusOK {
			err = errors.New(answer.String())
		}
		if err != nil {
			return 0, 0, err
		}
		total += len(answer.Body)
		_ = answer.Header.Write(&headers)
	}
	return total + headers.Len(), len(addresses), nil
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

func (p peer) token() request {
	r := postForm(p.PublicURL+"/oauth2/token", url.Values{"grant_type": {"client_credentials"}})
	r.header = map[string]string{"Authorization": "Basic " +
		base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(p.ClientID)+":"+url.QueryEscape(p.ClientSecret)))}
	return r
}

// openPeer connects to the peer and gets some tokens to introspect.
func openPeer(ctx context.Context, file string) (*site, error) {
	p := peer{Name: "peer"}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err == nil && (p.PublicURL == "" || p.AdminURL == "" || p.ClientID == "") {
		err = errors.New("publicUrl, adminUrl or clientId is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("read the peer in %s: %w", file, err)
	}
	p.PublicURL, p.AdminURL = strings.TrimSuffix(p.PublicURL, "/"), strings.TrimSuffix(p.AdminURL, "/")
	if err := onThisMachine(ctx, p.AdminURL); err != nil {
		return nil, err
	}
	s, err := openSite(ctx, ", "+p.Name, e2e.Key{BaseURL: p.PublicURL, CAFile: p.CAFile})
	if err != nil {
		return nil, err
	}
	s.peer, s.roots, s.authorization = p, p.PIDs, ""
	s.tls.ServerName = "" // it has two addresses
	c := connect(s.tls, "")
	defer c.close()
	for range 16 {
		var token struct {
			Access string `json:"access_token"`
		}
		if err := errors.Join(c.send(p.token()), json.Unmarshal(c.response.Body(), &token)); err != nil {
			return nil, fmt.Errorf("get a token of the peer: %w", err)
		}
		s.access = append(s.access, token.Access)
	}
	return s, nil
}

// deployment is standalone or the distributed shape, started for the measurement,
// or a deployment that runs already: then it has no shape and no roots.
type deployment struct {
	key     e2e.Key
	keyFile string
	roots   []int
	shape   harness.Shape
}

// settings differ from the defaults: all load comes from one address and one
// tenant, and refusals are not to be measured.
var settings = []string{"DOORWARD_TENANT_RATE=0", "DOORWARD_USER_RATE=0", "DOORWARD_ADDRESS_RATE=0", "DOORWARD_ADDRESS_CONCURRENCY=100"}

// started calls fn, which starts the shape, and finds the processes of it.
func (d *deployment) started(fn func() error) (err error) {
	if d.roots, err = started(fn); err != nil {
		return err
	}
	d.keyFile = d.shape.KeyFile()
	d.key, err = e2e.ReadKey(d.keyFile)
	return err
}

// startDeployment starts one in a folder, by StartStandalone or StartDistributed of
// the harness.
func startDeployment[S harness.Shape](
	ctx context.Context, start func(context.Context, harness.Config) (S, error), bin, dir string,
) (*deployment, error) {
	d := &deployment{}
	return d, d.started(func() error {
		s, err := start(ctx, harness.Config{Dir: dir, Bin: bin, Own: true, Settings: settings})
		if err == nil {
			d.shape = s
		}
		return err
	})
}

// boot is how long standalone took to answer over TLS.
func (d *deployment) boot() float64 { return d.shape.(*harness.Standalone).Boot.Seconds() }

// restart stops standalone and starts it with the same data.
func (d *deployment) restart(ctx context.Context) error {
	s := d.shape.(*harness.Standalone)
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
	if err := other.Write(d.keyFile); err != nil {
		return other, err
	}
	err := d.restart(ctx)
	d.key = first
	return other, errors.Join(err, first.Write(d.keyFile))
}

// stop ends what was started.
func (d *deployment) stop(ctx context.Context) error {
	if d.shape == nil {
		return nil
	}
	err := d.shape.Stop(context.WithoutCancel(ctx))
	if err != nil {
		d.shape.Logs(os.Stderr)
	}
	return err
}
