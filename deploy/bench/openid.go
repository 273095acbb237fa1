package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"sync"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/loadgen"
	"github.com/doorward/doorward/pkg/secure"
)

// relyingParty is a client of an OpenID provider, that of the product's application or the peer, with
// client_secret_basic and PKCE. The same requests go to both.
type relyingParty struct {
	authorization, token, introspection string // endpoints
	id, secret                          string
	basic                               string // header with the credentials
	introspectionBasic                  string // that at the introspection endpoint; empty: none is asked for
	codesPerSecond                      int    // of one processor: more than it exchanges

	newCode      func(c *connection) (string, error) // logs in without a password
	accessTokens []string
	codes        chan string
	families     chan string // the last refresh token of each family
}

// openIDScopes are those of all requests: the answers have an access, an ID and a refresh token.
const openIDScopes = "openid offline_access"

const (
	openIDTokens   = 16
	openIDFamilies = 32
)

var (
	codeVerifier  = rand.Text() + rand.Text()
	codeSum       = sha256.Sum256([]byte(codeVerifier))
	codeChallenge = base64.RawURLEncoding.EncodeToString(codeSum[:])
)

// partyCredentials is the grant of client credentials, at the product and at the peer.
var partyCredentials = sends(http.StatusOK, func(s *system, _ uint64) e2e.Request {
	return basicRequest(s.party.token, s.party.basic, url.Values{"grant_type": {"client_credentials"}})
})

// openIDOperations are those of the product as an OpenID provider. The last ones are signed by RS256; the others of
// the token endpoint by ES256.
var openIDOperations = []operation{
	{name: "openid-code", ratioTo: "pair", prepare: signing(secure.ES256, (*system).prepareCodes), do: (*system).exchangeCode},
	{name: "openid-refresh", ratioTo: "pair", prepare: signing(secure.ES256, nil),
		do: (*system).rotateRefreshToken},
	{name: "openid-introspect", ratioTo: "row", do: (*system).introspect},
	{name: "openid-client", ratioTo: "pair", prepare: signing(secure.ES256, nil), do: partyCredentials},
	{name: "openid-userinfo", ratioTo: "row", cpuAim: "<= 1.5", do: sends(http.StatusOK, (*system).userInfo)},
	{name: "openid-discovery", ratioTo: "bare", rateAim: ">= 0.8",
		do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request {
			return browserRequest(s.issuer()+"/.well-known/openid-configuration", "")
		})},
	{name: "openid-jwks", ratioTo: "bare", rateAim: ">= 0.8",
		do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request { return browserRequest(s.issuer()+"/jwks", "") })},
	{name: "openid-code-rs256", ratioTo: "openid-code", prepare: signing(secure.RS256, (*system).prepareFewCodes),
		do: (*system).exchangeCode},
	{name: "openid-refresh-rs256", ratioTo: "openid-refresh", prepare: signing(secure.RS256, nil),
		do: (*system).rotateRefreshToken},
	{name: "openid-client-rs256", ratioTo: "openid-client", prepare: signing(secure.RS256, nil), do: partyCredentials},
}

// issuer is the provider that the application is.
func (s *system) issuer() string {
	return s.host + "/oidc/" + e2e.Object{"href": s.application}.ID()
}

// addOpenIDClient makes a client of the application, and its tokens. The user has logged in once; the session of that
// login gives the codes.
func (s *system) addOpenIDClient(setup *e2e.Setup) {
	client := setup.Post(s.application+"/openIdClients", e2e.Object{
		"name": unique("party"), "redirectUris": []string{callback},
		"grantTypes": []string{"authorization_code", "refresh_token", "client_credentials"},
	})
	secret := setup.Post(client.Href()+"/secrets", e2e.Object{}).Text("secret")
	s.setProvider(setup, e2e.Object{"authorizationCodeTtl": "PT10M", "signingAlgorithm": secure.ES256})
	if setup.Err != nil {
		return
	}
	s.party = newRelyingParty(client.Text("clientId"), secret)
	s.party.authorization, s.party.token = s.issuer()+"/authorize", s.issuer()+"/token"
	s.party.introspection, s.party.introspectionBasic = s.issuer()+"/introspect", s.party.basic
	s.party.codesPerSecond = 1500
	c := connect(s.tls, "")
	defer c.close()
	cookies, err := s.openSingleSignOn(c)
	s.party.newCode = func(c *connection) (string, error) {
		return c.code(http.StatusSeeOther, s.party.request(url.Values{"prompt": {"none"}}), cookies)
	}
	if err == nil {
		err = s.fillParty(c)
	}
	setup.Err = err
}

func newRelyingParty(id, secret string) relyingParty {
	return relyingParty{id: id, secret: secret, basic: "Basic " + base64.StdEncoding.EncodeToString(
		[]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))} // RFC 6749, section 2.3.1
}

// fillParty gets the access tokens, and the families of refresh tokens, of logins of their own: a peer may end an
// access token when its login is refreshed.
func (s *system) fillParty(c *connection) error {
	s.party.families = make(chan string, openIDFamilies)
	for n := range openIDTokens + openIDFamilies {
		code, err := s.party.newCode(c)
		if err != nil {
			return err
		}
		answer, err := s.party.tokens(c, s.party.redemption(code))
		if err != nil {
			return err
		}
		if n < openIDTokens {
			s.party.accessTokens = append(s.party.accessTokens, answer.AccessToken)
		} else {
			s.party.families <- answer.RefreshToken
		}
	}
	return nil
}

// setProvider changes the provider that the application is.
func (s *system) setProvider(setup *e2e.Setup, change e2e.Object) {
	setup.Post(s.base+"/openIdProviders/"+e2e.Object{"href": s.application}.ID(), change)
}

// signing is what prepares a measurement whose tokens have an algorithm. then may be nil.
func signing(algorithm string, then func(*system, loadgen.Load)) func(*system, loadgen.Load) {
	return func(s *system, l loadgen.Load) {
		s.setProvider(s.client.Setup(context.Background()), e2e.Object{"signingAlgorithm": algorithm})
		if then != nil {
			then(s, l)
		}
	}
}

// request is an authorization request.
func (p relyingParty) request(more url.Values) string {
	values := url.Values{
		"client_id": {p.id}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {openIDScopes},
		"state": {"a state of some length"}, "code_challenge": {codeChallenge}, "code_challenge_method": {"S256"},
	}
	for name, given := range more {
		values[name] = given
	}
	return p.authorization + "?" + values.Encode()
}

// code sends a request of a browser that is redirected with an authorization code.
func (c *connection) code(status int, address, cookies string) (string, error) {
	if err := c.send(status, browserRequest(address, cookies)); err != nil {
		return "", err
	}
	if code := c.redirectQuery().Get("code"); code != "" {
		return code, nil
	}
	return "", statusError{status, "the authorization request redirects to " + c.header("Location")}
}

// openSingleSignOn logs the first account in, and returns the cookies of its browser.
func (s *system) openSingleSignOn(c *connection) (cookies string, err error) {
	if err = c.send(http.StatusSeeOther, browserRequest(s.party.request(nil), "")); err != nil {
		return "", err
	}
	c.session, c.sessionCookies = c.redirectQuery().Get("jwt"), c.cookies()
	first := *s
	first.emails = s.emails[:1]
	if err = inSequence((*system).showPage, (*system).hostedLogin, (*system).returnToApplication)(&first, c, 0); err != nil {
		return "", err
	}
	return c.sessionCookies + "; " + c.cookies(), nil
}

// prepareCodes gets the codes of a measurement, fewer where one fails.
func (s *system) prepareCodes(l loadgen.Load) {
	seconds := (l.WarmUp + l.Length).Seconds()
	s.party.codes = make(chan string, l.Workers+int(float64(s.party.codesPerSecond*runtime.NumCPU())*seconds))
	var getting sync.WaitGroup
	for range 8 {
		getting.Go(func() {
			c := connect(s.tls, "")
			defer c.close()
			for len(s.party.codes)+8 <= cap(s.party.codes) {
				code, err := s.party.newCode(c)
				if err != nil {
					return
				}
				s.party.codes <- code
			}
		})
	}
	getting.Wait()
}

// prepareFewCodes is prepareCodes for signatures that take longer than all else.
func (s *system) prepareFewCodes(l loadgen.Load) {
	few := *s
	few.party.codesPerSecond /= 5
	few.prepareCodes(l)
	s.party.codes = few.party.codes
}

// exchangeCode exchanges one of prepareCodes. When all are exchanged the rest of the measurement is idle: to get
// another one would count for the exchange.
func (s *system) exchangeCode(c *connection, _ uint64) error {
	select {
	case code := <-s.party.codes:
		return c.send(http.StatusOK, s.party.redemption(code))
	default:
		return errors.New("all codes are exchanged: the rate is too low, the processor time is right")
	}
}

// redemption is the request that exchanges a code.
func (p relyingParty) redemption(code string) e2e.Request {
	return basicRequest(p.token, p.basic, url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {callback}, "code_verifier": {codeVerifier}})
}

// rotateRefreshToken refreshes one of the families, which no other connection has meanwhile.
func (s *system) rotateRefreshToken(c *connection, _ uint64) error {
	token := <-s.party.families
	answer, err := s.party.tokens(c, basicRequest(s.party.token, s.party.basic, e2e.RefreshGrant(token)))
	s.party.families <- cmp.Or(answer.RefreshToken, token)
	return err
}

// introspect asks whether an access token is active, which it is.
func (s *system) introspect(c *connection, n uint64) error {
	err := c.send(http.StatusOK, basicRequest(s.party.introspection, s.party.introspectionBasic,
		url.Values{"token": {pick(s.party.accessTokens, n)}}))
	if err == nil && !bytes.Contains(c.response.Body(), []byte(`"active":true`)) {
		err = statusError{http.StatusOK, "a token is not active: " + string(c.response.Body())}
	}
	return err
}

// partyTokens are what the bench uses of an answer of the token endpoint.
type partyTokens struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
}

// tokens sends a request to the token endpoint.
func (p relyingParty) tokens(c *connection, r e2e.Request) (answer partyTokens, err error) {
	if err = c.send(http.StatusOK, r); err == nil {
		err = json.Unmarshal(c.response.Body(), &answer)
	}
	return answer, err
}

// basicRequest is a form of a client.
func basicRequest(address, basic string, form url.Values) e2e.Request {
	r := e2e.Post(address, form)
	r.Anonymous, r.Header = true, http.Header{"Authorization": {basic}}
	return r
}

func (s *system) userInfo(n uint64) e2e.Request {
	r := e2e.Get(s.issuer() + "/userinfo")
	r.Anonymous, r.Header = true, http.Header{"Authorization": {"Bearer " + pick(s.party.accessTokens, n)}}
	return r
}
