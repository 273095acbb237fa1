package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/providertest"
	"github.com/doorward/doorward/pkg/saml"
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

// startOpenID serves an OpenID provider over TLS and returns the settings of a
// deployment that asks it.
func startOpenID(dir string) (p *providertest.Provider, setting string, stop func(), err error) {
	p = providertest.New()
	server := httptest.NewTLSServer(p)
	p.URL = server.URL
	for n := range providerUsers {
		id := strconv.Itoa(n)
		p.AddUser(id, map[string]any{"sub": id, "email": id + "@openid.test", "email_verified": true, "given_name": "Jo", "family_name": "Doe"})
	}
	authority := filepath.Join(dir, "openid.pem")
	return p, "DOORWARD_OUTBOUND_CA_FILE=" + authority, server.Close, os.WriteFile(authority, []byte(providertest.Authority(server)), 0o600)
}

const (
	samlName      = "https://idp.localhost"
	providerUsers = 64 // of each provider; few, so that most logins make no account
)

// addSAML makes a SAML directory of the application.
func (s *site) addSAML(c *caller) {
	var err error
	if s.saml.pair, err = saml.NewKeyPair(samlName, time.Now()); err != nil {
		c.err = err
	}
	directory := addDirectory(c, s.application, e2e.Object{
		"providerId": "saml", "ssoLoginUrl": samlName + "/login", "ssoLogoutUrl": samlName + "/logout",
		"entityId": samlName, "encodedX509SigningCert": s.saml.pair.Certificate,
	})
	provider := c.get(directory + "/provider")
	metadata := c.get(provider.Object("serviceProviderMetadata").Href())
	s.saml.entityID, s.saml.consumer = metadata.Text("entityId"), metadata.Object("assertionConsumerServicePostEndpoint").Href()
}

// addOpenID makes a directory of the application that is known by its issuer.
func (s *site) addOpenID(c *caller) {
	s.openID.directory = addDirectory(c, s.application, e2e.Object{
		"providerId": unique("openid", s.run), "discoveryUrl": s.openID.URL, "scope": []string{"openid", "email", "profile"},
		"clientId": providertest.ClientID, "clientSecret": providertest.ClientSecret,
	})
}

// addDirectory makes a directory of a provider, maps it to an application and
// returns its address.
func addDirectory(c *caller, application string, provider e2e.Object) string {
	directory := c.create("/directories", e2e.Object{"name": unique("provider", rand.Text()), "provider": provider})
	c.create("/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": application}, "accountStore": e2e.Object{"href": directory.Href()},
	})
	return directory.Href()
}

// silentLogin makes a directory of a provider at an address that never answers, in an
// application of its own, and returns a login there: it is refused, and tried again
// after a second.
func (s *site) silentLogin(ctx context.Context, address string) (action, error) {
	c, name := caller{ctx: ctx, client: s.client}, unique("silent", rand.Text())
	application := c.create("/applications", e2e.Object{"name": name})
	addDirectory(&c, application.Href(), e2e.Object{
		"providerId": name, "providerType": "oauth2", "clientId": "c", "clientSecret": "s",
		"authorizationEndpoint": address, "tokenEndpoint": address, "resourceEndpoint": address,
	})
	body := e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": "token"}}
	return func(_ *site, c *connection, _ uint64) error {
		err := c.send(postJSON(application.Href()+"/accounts", body, fasthttp.StatusBadRequest))
		time.Sleep(time.Second)
		return err
	}, c.err
}

// samlLogin is a whole login at the SAML provider: the signed request, and a
// response with two signatures that leads on to the callback.
func (s *site) samlLogin(c *connection, n uint64) error {
	if err := c.send(page(s.application+"/saml/sso/idpRedirect?accessToken="+s.loginRequest(), "")); err != nil {
		return err
	}
	asked, location, err := c.location()
	if err != nil {
		return err
	}
	login, err := saml.ParseRequest(asked.Get("SAMLRequest"))
	if err != nil {
		return fmt.Errorf("%.200s: %w", location, err)
	}
	email := fmt.Sprintf("saml%d-%s@example.test", scattered(n)%providerUsers, s.run)
	signed, err := saml.Response{
		Issuer: samlName, Audience: s.saml.entityID, ConsumerURL: s.saml.consumer, InResponseTo: login.ID,
		NameID: email, NameIDFormat: saml.EmailNameID, Now: time.Now(), Attributes: []saml.Attribute{
			{Name: "mail", Values: []string{email}}, {Name: "givenName", Values: []string{"Jo"}}, {Name: "sn", Values: []string{"Doe"}},
		},
	}.Sign(s.saml.pair, saml.SHA256)
	if err != nil {
		return err
	}
	response := postForm(s.saml.consumer, url.Values{
		"SAMLResponse": {base64.StdEncoding.EncodeToString(signed)}, "RelayState": {asked.Get("RelayState")},
	})
	response.header, response.want = map[string]string{"Authorization": ""}, fasthttp.StatusFound
	if err := c.send(response); err != nil {
		return err
	}
	return c.loggedIn()
}

// socialLogin is a whole login at the OpenID provider: the way there, the code that
// its page would hand out, and the way back, on which the product asks the provider
// for the tokens and the user.
func (s *site) socialLogin(c *connection, n uint64) error {
	query := url.Values{
		"response_type": {"service_token"}, "account_store_href": {s.openID.directory}, "redirect_uri": {callback}, "state": {"s"},
	}
	if err := c.send(page(s.clientAPI+"/authorize?"+query.Encode(), "")); err != nil {
		return err
	}
	cookies := c.cookies()
	asked, _, err := c.location()
	if err != nil {
		return err
	}
	code := s.openID.Code(strconv.FormatUint(scattered(n)%providerUsers, 10), asked.Get("redirect_uri"), asked.Get("nonce"))
	back := url.Values{"state": {asked.Get("state")}, "code": {code}}
	if err := c.send(page(asked.Get("redirect_uri")+"?"+back.Encode(), cookies)); err != nil {
		return err
	}
	return c.loggedIn()
}

// location is what the last answer redirects to, and its query.
func (c *connection) location() (url.Values, string, error) {
	location := c.answered("Location")
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, location, err
	}
	return parsed.Query(), location, nil
}

// loggedIn returns an error where the last answer does not redirect with the
// assertion of a login.
func (c *connection) loggedIn() error {
	query, location, err := c.location()
	if err != nil {
		return err
	}
	parts := strings.Split(query.Get("jwtResponse"), ".")
	if len(parts) == 3 {
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && bytes.Contains(claims, []byte(`"AUTHENTICATED"`)) {
			return nil
		}
	}
	return refusal{fasthttp.StatusBadRequest, "the login redirects to " + location}
}
