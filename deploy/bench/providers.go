package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/providertest"
	"github.com/doorward/doorward/pkg/saml"
)

// samlProvider is a SAML identity provider whose responses the generator signs, and
// the directory that trusts it.
type samlProvider struct {
	pair              saml.KeyPair
	directoryEntityID string
	consumerURL       string // where its responses go
}

// openIDProvider is an OpenID provider in this process, and the directory that
// trusts it.
type openIDProvider struct {
	*providertest.Provider
	directory string // address
}

const (
	samlEntityID  = "https://idp.localhost"
	providerUsers = 64 // of each provider; few, so that most logins make no account
)

// startOpenIDProvider serves an OpenID provider over TLS and lets deployments that are
// started afterwards trust its certificate.
func (r *run) startOpenIDProvider() error {
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

// addSAMLDirectory makes a SAML directory for the application.
func (s *system) addSAMLDirectory(setup *e2e.Setup) {
	pair, err := saml.NewKeyPair(samlEntityID, time.Now())
	if err != nil {
		setup.Err = err
	}
	directory := s.addProviderDirectory(setup, s.application, e2e.Object{
		"providerId": "saml", "ssoLoginUrl": samlEntityID + "/login", "ssoLogoutUrl": samlEntityID + "/logout",
		"entityId": samlEntityID, "encodedX509SigningCert": pair.Certificate,
	})
	metadata := setup.Get(setup.Get(directory + "/provider").Object("serviceProviderMetadata").Href())
	s.saml = samlProvider{pair, metadata.Text("entityId"), metadata.Object("assertionConsumerServicePostEndpoint").Href()}
}

// addOpenIDDirectory makes a directory of the OpenID provider for the application.
func (s *system) addOpenIDDirectory(setup *e2e.Setup) {
	s.openID.directory = s.addProviderDirectory(setup, s.application, e2e.Object{
		"providerId": unique("openid"), "discoveryUrl": s.openID.URL, "scope": []string{"openid", "email", "profile"},
		"clientId": providertest.ClientID, "clientSecret": providertest.ClientSecret,
	})
}

// addProviderDirectory makes a directory of a provider, maps it to an application and
// returns its address.
func (s *system) addProviderDirectory(setup *e2e.Setup, application string, provider e2e.Object) string {
	directory := setup.Post(s.base+"/directories", e2e.Object{"name": unique("provider"), "provider": provider})
	setup.Post(s.base+"/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": application}, "accountStore": e2e.Object{"href": directory.Href()},
	})
	return directory.Href()
}

// silentProviderLogin makes a directory of a provider at an address that never answers,
// in an application of its own, and returns the action that logs in there: the login is
// refused, and repeated after a second.
func (s *system) silentProviderLogin(ctx context.Context, address string) (action, error) {
	setup, name := s.client.Setup(ctx), unique("silent")
	application := setup.Post(s.base+"/applications", e2e.Object{"name": name}).Href()
	s.addProviderDirectory(setup, application, e2e.Object{
		"providerId": name, "providerType": "oauth2", "clientId": "c", "clientSecret": "s",
		"authorizationEndpoint": address, "tokenEndpoint": address, "resourceEndpoint": address,
		"acceptForeignTokens": true,
	})
	body := e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": "token"}}
	return func(_ *system, c *connection, _ uint64) error {
		err := c.send(http.StatusBadRequest, e2e.Post(application+"/accounts", body))
		time.Sleep(time.Second)
		return err
	}, setup.Err
}

// samlLogin is a whole login at the SAML provider: the signed request, and a response
// with two signatures that leads on to the callback.
func (s *system) samlLogin(c *connection, n uint64) error {
	start := browserRequest(s.application+"/saml/sso/idpRedirect?accessToken="+s.loginRequest(), "")
	if err := c.send(http.StatusFound, start); err != nil {
		return err
	}
	query := c.redirectQuery()
	login, err := saml.ParseRequest(query.Get("SAMLRequest"))
	if err != nil {
		return fmt.Errorf("%.200s: %w", c.header("Location"), err)
	}
	email := fmt.Sprintf("saml%d-%s@example.test", pseudoRandom(n)%providerUsers, runName)
	signed, err := saml.Response{
		Issuer: samlEntityID, Audience: s.saml.directoryEntityID, ConsumerURL: s.saml.consumerURL, InResponseTo: login.ID,
		NameID: email, NameIDFormat: saml.EmailNameID, Now: time.Now(), Attributes: []saml.Attribute{
			{Name: "mail", Values: []string{email}}, {Name: "givenName", Values: []string{"Jo"}},
			{Name: "sn", Values: []string{"Doe"}},
		},
	}.Sign(s.saml.pair, saml.SHA256)
	if err != nil {
		return err
	}
	response := e2e.Post(s.saml.consumerURL, url.Values{
		"SAMLResponse": {base64.StdEncoding.EncodeToString(signed)}, "RelayState": {query.Get("RelayState")},
	})
	response.Anonymous = true
	return c.finishLogin(response)
}

// openIDLogin is a whole login at the OpenID provider: the redirect to the provider, the
// code that its page would hand out, and the redirect back, on which the product asks the
// provider for the tokens and the user.
func (s *system) openIDLogin(c *connection, n uint64) error {
	start := url.Values{
		"response_type": {"service_token"}, "account_store_href": {s.openID.directory}, "redirect_uri": {callback},
		"state": {"s"},
	}
	if err := c.send(http.StatusFound, browserRequest(s.clientAPI+"/authorize?"+start.Encode(), "")); err != nil {
		return err
	}
	query := c.redirectQuery()
	code := s.openID.Code(strconv.FormatUint(pseudoRandom(n)%providerUsers, 10), query.Get("redirect_uri"),
		query.Get("nonce"))
	back := url.Values{"state": {query.Get("state")}, "code": {code}}
	return c.finishLogin(browserRequest(query.Get("redirect_uri")+"?"+back.Encode(), c.cookies()))
}

// finishLogin sends the last request of a login, whose answer must redirect with the
// assertion that the user is authenticated.
func (c *connection) finishLogin(r e2e.Request) error {
	if err := c.send(http.StatusFound, r); err != nil {
		return err
	}
	if assertion, err := e2e.ReadClaims(c.redirectQuery().Get("jwtResponse")); err != nil ||
		assertion.Text("status") != "AUTHENTICATED" {
		return statusError{http.StatusBadRequest, "the login redirects to " + c.header("Location")}
	}
	return nil
}
