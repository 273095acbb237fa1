package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/saml"
)

// identityProvider is a SAML identity provider whose responses the generator signs
// itself, and what it knows of the directory that trusts it.
type identityProvider struct {
	pair      saml.KeyPair
	directory string // address
	entityID  string // of the directory
	consumer  string // where its responses go
}

const identityProviderName = "https://idp.localhost"

// addIdentityProvider makes a SAML directory and maps it to the application.
func (s *site) addIdentityProvider(ctx context.Context) error {
	pair, err := saml.NewKeyPair(identityProviderName, time.Now())
	if err != nil {
		return err
	}
	directory, err := s.create(ctx, s.base+"/directories", e2e.Object{"name": unique("saml", s.run), "provider": e2e.Object{
		"providerId": "saml", "ssoLoginUrl": identityProviderName + "/login", "ssoLogoutUrl": identityProviderName + "/logout",
		"entityId": identityProviderName, "encodedX509SigningCert": pair.Certificate,
	}})
	if err != nil {
		return err
	}
	s.identity = identityProvider{pair: pair, directory: directory.Href()}
	if _, err = s.create(ctx, s.base+"/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": s.application}, "accountStore": e2e.Object{"href": directory.Href()},
	}); err != nil {
		return err
	}
	provider, err := s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: directory.Href() + "/provider"})
	if err != nil {
		return err
	}
	metadata, err := s.ask(ctx, http.StatusOK, e2e.Request{
		Method: http.MethodGet, URL: provider.Object("serviceProviderMetadata").Href(), Header: http.Header{"Accept": {"application/json"}},
	})
	s.identity.entityID, s.identity.consumer = metadata.Text("entityId"), metadata.Object("assertionConsumerServicePostEndpoint").Href()
	return err
}

// samlLogin is a whole login at the identity provider: the signed request, and a
// response with two signatures that leads on to the callback.
func (s *site) samlLogin(c *connection, n uint64) error {
	if err := c.send(page(s.application+"/saml/sso/idpRedirect?accessToken="+s.loginRequest(), "")); err != nil {
		return err
	}
	location, err := url.Parse(c.answered("Location"))
	if err != nil {
		return err
	}
	asked, err := saml.ParseRequest(location.Query().Get("SAMLRequest"))
	if err != nil {
		return fmt.Errorf("%.200s: %w", location, err)
	}
	email := fmt.Sprintf("saml%d-%s@example.test", scattered(n)%16, s.run) // few, so that most logins make no account
	signed, err := saml.Response{
		Issuer: identityProviderName, Audience: s.identity.entityID, ConsumerURL: s.identity.consumer, InResponseTo: asked.ID,
		NameID: email, NameIDFormat: saml.EmailNameID, Now: time.Now(), Attributes: []saml.Attribute{
			{Name: "mail", Values: []string{email}}, {Name: "givenName", Values: []string{"Jo"}}, {Name: "sn", Values: []string{"Doe"}},
		},
	}.Sign(s.identity.pair, saml.SHA256)
	if err != nil {
		return err
	}
	response := postForm(s.identity.consumer, url.Values{
		"SAMLResponse": {base64.StdEncoding.EncodeToString(signed)}, "RelayState": {location.Query().Get("RelayState")},
	})
	response.header, response.want = map[string]string{"Authorization": ""}, fasthttp.StatusFound
	if err := c.send(response); err != nil {
		return err
	}
	_, assertion, _ := strings.Cut(c.answered("Location"), "?jwtResponse=")
	if _, claims, _ := strings.Cut(assertion, "."); !isLogin(claims) {
		return refusal{fasthttp.StatusBadRequest, "the SAML login redirects to " + c.answered("Location")}
	}
	return nil
}

// isLogin reports whether the claims of an assertion, with its signature behind
// them, are those of a login and not of an error.
func isLogin(claims string) bool {
	encoded, _, _ := strings.Cut(claims, ".")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return err == nil && bytes.Contains(raw, []byte(`"AUTHENTICATED"`))
}
