package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

const (
	samlName      = "https://idp.localhost"
	providerUsers = 64 // of each provider; few, so that most logins make no account
)

// startOpenID serves an OpenID provider over TLS, which what is started afterwards
// asks.
func (r *run) startOpenID() error {
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

// addSAML makes a SAML directory of the application.
func (s *site) addSAML(c *caller) {
	pair, err := saml.NewKeyPair(samlName, time.Now())
	if err != nil {
		c.err = err
	}
	directory := s.addDirectory(c, s.application, e2e.Object{
		"providerId": "saml", "ssoLoginUrl": samlName + "/login", "ssoLogoutUrl": samlName + "/logout",
		"entityId": samlName, "encodedX509SigningCert": pair.Certificate,
	})
	provider := c.get(directory + "/provider")
	metadata := c.get(provider.Object("serviceProviderMetadata").Href())
	s.saml = samlProvider{pair, metadata.Text("entityId"), metadata.Object("assertionConsumerServicePostEndpoint").Href()}
}

// addOpenID makes a directory of the application that is known by its issuer.
func (s *site) addOpenID(c *caller) {
	s.openID.directory = s.addDirectory(c, s.application, e2e.Object{
		"providerId": unique("openid"), "discoveryUrl": s.openID.URL, "scope": []string{"openid", "email", "profile"},
		"clientId": providertest.ClientID, "clientSecret": providertest.ClientSecret,
	})
}

// addDirectory makes a directory of a provider, maps it to an application and
// returns its address.
func (s *site) addDirectory(c *caller, application string, provider e2e.Object) string {
	directory := c.create(s.base+"/directories", e2e.Object{"name": unique("provider"), "provider": provider})
	c.create(s.base+"/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": application}, "accountStore": e2e.Object{"href": directory.Href()},
	})
	return directory.Href()
}

// silentLogin makes a directory of a provider at an address that never answers, in an
// application of its own, and returns a login there: it is refused, and tried again
// after a second.
func (s *site) silentLogin(address string) (action, error) {
	c, name := s.caller(), unique("silent")
	defer c.close()
	application := c.create(s.base+"/applications", e2e.Object{"name": name}).Href()
	s.addDirectory(c, application, e2e.Object{
		"providerId": name, "providerType": "oauth2", "clientId": "c", "clientSecret": "s",
		"authorizationEndpoint": address, "tokenEndpoint": address, "resourceEndpoint": address,
	})
	body := e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": "token"}}
	return func(_ *site, c *connection, _ uint64) error {
		err := c.send(http.StatusBadRequest, post(application+"/accounts", body))
		time.Sleep(time.Second)
		return err
	}, c.err
}

// samlLogin is a whole login at the SAML provider: the signed request, and a
// response with two signatures that leads on to the callback.
func (s *site) samlLogin(c *connection, n uint64) error {
	if err := c.send(http.StatusFound, page(s.application+"/saml/sso/idpRedirect?accessToken="+s.loginRequest(), "")); err != nil {
		return err
	}
	address, asked := c.redirect()
	login, err := saml.ParseRequest(asked.Get("SAMLRequest"))
	if err != nil {
		return fmt.Errorf("%.200s: %w", address, err)
	}
	email := fmt.Sprintf("saml%d-%s@example.test", scattered(n)%providerUsers, thisRun)
	signed, err := saml.Response{
		Issuer: samlName, Audience: s.saml.entityID, ConsumerURL: s.saml.consumer, InResponseTo: login.ID,
		NameID: email, NameIDFormat: saml.EmailNameID, Now: time.Now(), Attributes: []saml.Attribute{
			{Name: "mail", Values: []string{email}}, {Name: "givenName", Values: []string{"Jo"}}, {Name: "sn", Values: []string{"Doe"}},
		},
	}.Sign(s.saml.pair, saml.SHA256)
	if err != nil {
		return err
	}
	response := post(s.saml.consumer, url.Values{
		"SAMLResponse": {base64.StdEncoding.EncodeToString(signed)}, "RelayState": {asked.Get("RelayState")},
	})
	response.Anonymous = true
	return c.logsIn(response)
}

// socialLogin is a whole login at the OpenID provider: the way there, the code that
// its page would hand out, and the way back, on which the product asks the provider
// for the tokens and the user.
func (s *site) socialLogin(c *connection, n uint64) error {
	query := url.Values{
		"response_type": {"service_token"}, "account_store_href": {s.openID.directory}, "redirect_uri": {callback}, "state": {"s"},
	}
	if err := c.send(http.StatusFound, page(s.clientAPI+"/authorize?"+query.Encode(), "")); err != nil {
		return err
	}
	_, asked := c.redirect()
	code := s.openID.Code(strconv.FormatUint(scattered(n)%providerUsers, 10), asked.Get("redirect_uri"), asked.Get("nonce"))
	back := url.Values{"state": {asked.Get("state")}, "code": {code}}
	return c.logsIn(page(asked.Get("redirect_uri")+"?"+back.Encode(), c.cookies()))
}

// logsIn sends the last request of a login. The answer must redirect with its
// assertion.
func (c *connection) logsIn(r e2e.Request) error {
	if err := c.send(http.StatusFound, r); err != nil {
		return err
	}
	_, query := c.redirect()
	var assertion struct{ Status string }
	if parts := strings.Split(query.Get("jwtResponse"), "."); len(parts) == 3 {
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(claims, &assertion)
	}
	if assertion.Status != "AUTHENTICATED" {
		return refusal{http.StatusBadRequest, "the login redirects to " + c.answered("Location")}
	}
	return nil
}
