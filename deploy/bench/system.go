package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// callback is the address of the application to which hosted logins lead. Nothing listens there.
const callback = "https://app.localhost:9999/callback"

// productSettings differ from the defaults: all load comes from one address and one
// tenant, and refusals are not to be measured.
var productSettings = []string{
	"DOORWARD_TENANT_RATE=0", "DOORWARD_USER_RATE=0", "DOORWARD_ADDRESS_RATE=0", "DOORWARD_ADDRESS_CONCURRENCY=100",
}

// system is a system under test: the baseline, the peer, or a deployment of the
// product with an application that has a directory of its own.
type system struct {
	harness.Deployment // of a deployment
	rowSuffix          string
	client             *e2e.Client
	tls                *tls.Config
	authorization      string // header with the API key of the client
	base, host         string // addresses with and without the version
	processes          []int  // whose processor time counts, with those below them; empty where they are not known

	pages, clientAPI                     string   // addresses of the hosted pages and the Client API
	application, organization, directory string   // addresses
	accounts                             []string // addresses; of the baseline numbers
	emails                               []string // of the accounts that can log in
	accessTokens, refreshTokens          []string
	clientGrants                         []url.Values // client credentials grants
	sessions                             chan string  // session tokens of hosted logins that were begun
	saml                                 samlProvider
	openID                               openIDProvider
	ldap                                 *ldapDirectory // nil where no agent runs
	party                                relyingParty
}

// newSystem is a system whose requests have the key of a client. The suffix follows the
// names of its operations in the report.
func newSystem(rowSuffix string, client *e2e.Client, processes []int) *system {
	key := client.Key
	s := &system{rowSuffix: rowSuffix, client: client.Unchecked(), tls: client.TLS(), base: key.BaseURL,
		host: key.HostURL()}
	s.processes = processes
	if key.ID != "" {
		s.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(key.ID+":"+key.Secret))
	}
	return s
}

// measuredProcesses are those whose processor time is that of the operations.
func (s *system) measuredProcesses() []int {
	if s.ldap == nil {
		return s.processes
	}
	return append(slices.Clip(s.processes), s.ldap.agent.PID())
}

// restart stops standalone and starts it with the same data.
func (s *system) restart(ctx context.Context) (err error) {
	s.processes, err = startedBy(func() error { return s.Deployment.(*harness.Standalone).Restart(ctx) })
	return err
}

// newTenant makes another tenant with an organization and some applications of one
// account each. Standalone makes a tenant at its start for an API key that it does not
// know; the next restart is with the first key again.
func (s *system) newTenant(ctx context.Context, applications int) (systems []*system, err error) {
	first := s.client.Key
	other := first
	other.ID, other.Secret = rand.Text(), rand.Text()+rand.Text()
	if err := errors.Join(other.Write(s.KeyFile()), s.restart(ctx), first.Write(s.KeyFile())); err != nil {
		return nil, err
	}
	tenant := newSystem("", s.client.With(other.ID, other.Secret), nil)
	setup, name := tenant.client.Setup(ctx), unique("hot")
	tenant.organization = setup.Post(s.base+"/organizations", e2e.Object{"name": name, "nameKey": name}).Href()
	for n := 0; n < applications && setup.Err == nil; n++ {
		made := *tenant
		setup.Err = made.addApplication(ctx, 1, 0)
		systems = append(systems, &made)
	}
	return systems, setup.Err
}

// addApplication makes the application with its accounts, of which the first are logged
// in and have a password hash of the product; the others have an imported one. Without
// logins the tokens are those of an API key, which costs no hash.
func (s *system) addApplication(ctx context.Context, accounts, logins int) error {
	setup := s.client.Setup(ctx)
	made := setup.Fixture(e2e.Object{"name": unique("bench"), "authorizedCallbackUris": []string{callback}})
	config := setup.Get(made.Application.Object("webConfig").Href())
	pages := setup.Get(made.Application.Object("tenant").Href() + "/idSites").Objects("items")
	if setup.Err != nil {
		return setup.Err
	}
	_, port, _ := net.SplitHostPort(s.client.Address())
	s.application, s.directory = made.Application.Href(), made.Directory.Href()
	s.clientAPI, s.pages = s.host+"/client/"+config.Text("dnsLabel"), "https://"+pages[0].Text("domainName")+":"+port
	for n := 0; n < accounts && setup.Err == nil; n++ {
		s.addAccount(setup, n < logins)
	}
	if logins == 0 {
		s.addTokens(setup, s.clientGrants[0])
		return setup.Err
	}
	s.addSAMLDirectory(setup)
	s.addOpenIDDirectory(setup)
	s.addOpenIDClient(setup)
	return setup.Err
}

// addAccount makes an account. The first sixteen get an API key.
func (s *system) addAccount(setup *e2e.Setup, login bool) {
	request := s.importAccount(0)
	if login {
		request = s.createAccount(0)
	}
	account := setup.Post(request.URL, request.Body)
	s.accounts = append(s.accounts, account.Href())
	if len(s.clientGrants) < 16 {
		s.clientGrants = append(s.clientGrants, clientGrant(setup, account.Href()))
	}
	if login {
		s.emails = append(s.emails, account.Text("email"))
		s.addTokens(setup, e2e.PasswordGrant(account.Text("email")))
	}
}

// clientGrant is the grant of a new API key of an account.
func clientGrant(setup *e2e.Setup, account string) url.Values {
	key := setup.Post(account+"/apiKeys", e2e.Object{})
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {key.Text("id")},
		"client_secret": {key.Text("secret")}}
}

// addTokenHolders adds so many accounts to the applications, the same number to each, and an access token
// of each account.
func addTokenHolders(ctx context.Context, applications []*system, accounts int) error {
	var made errgroup.Group
	made.SetLimit(8)
	for _, s := range applications {
		made.Go(func() error {
			setup := s.client.Setup(ctx)
			for n := len(s.accessTokens); n < accounts/len(applications) && setup.Err == nil; n++ {
				s.addAccount(setup, false)
				s.addTokens(setup, clientGrant(setup, s.accounts[len(s.accounts)-1]))
			}
			return setup.Err
		})
	}
	return made.Wait()
}

func (s *system) addTokens(setup *e2e.Setup, grant url.Values) {
	answer := setup.Post(s.tokenRequest(grant).URL, grant)
	s.accessTokens = append(s.accessTokens, answer.Text("access_token"))
	s.refreshTokens = append(s.refreshTokens, answer.Text("refresh_token"))
}
