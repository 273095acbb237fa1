package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
)

// peerOperations are those of another OpenID provider such as Ory Hydra. Each is divided by the operation of the
// product of the same name.
var peerOperations = []operation{
	{name: "openid-code", ratioTo: "openid-code", cpuAim: ">= 3", prepare: (*system).prepareCodes,
		do: (*system).exchangeCode},
	{name: "openid-refresh", ratioTo: "openid-refresh", cpuAim: ">= 5", do: (*system).rotateRefreshToken},
	{name: "openid-introspect", ratioTo: "openid-introspect", cpuAim: ">= 4", do: (*system).introspect},
	{name: "openid-client", ratioTo: "openid-client", cpuAim: ">= 10", do: partyCredentials},
}

func peerOperationNames() (names []string) {
	for _, o := range peerOperations {
		names = append(names, o.name)
	}
	return names
}

// openPeer connects to the server that a file of BENCH_PEER describes, and gets tokens of it.
func openPeer(ctx context.Context, file string) (*system, error) {
	peer := struct {
		Name         string // in the report
		PublicURL    string // of the token endpoint, without its path
		AdminURL     string // of the introspection endpoint, without its path
		ClientID     string // of a client with client_secret_basic
		ClientSecret string
		CAFile       string // empty: the certificate authorities of the machine
		PIDs         []int  // its processes and those of its database; the processes below them count too
	}{Name: "peer"}
	err := e2e.ReadJSON(file, &peer)
	if err == nil && (peer.PublicURL == "" || peer.AdminURL == "" || peer.ClientID == "") {
		err = errors.New("publicUrl, adminUrl or clientId is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("read the peer in %s: %w", file, err)
	}
	client, err := e2e.NewClient(e2e.Key{BaseURL: strings.TrimSuffix(peer.PublicURL, "/"), CAFile: peer.CAFile})
	if err != nil {
		return nil, err
	}
	s := newSystem(", "+peer.Name, client, peer.PIDs)
	s.tls.ServerName = "" // it has two addresses
	admin := strings.TrimSuffix(peer.AdminURL, "/") + "/admin/oauth2"
	s.party = newRelyingParty(peer.ClientID, peer.ClientSecret)
	s.party.authorization, s.party.token = s.host+"/oauth2/auth", s.host+"/oauth2/token"
	s.party.introspection, s.party.codesPerSecond = admin+"/introspect", 200
	s.party.newCode = func(c *connection) (string, error) { return s.party.peerCode(c, admin+"/auth/requests/") }
	c := connect(s.tls, "")
	defer c.close()
	if err := errors.Join(s.fillParty(c), ctx.Err()); err != nil {
		return nil, fmt.Errorf("log in at the peer: %w", err)
	}
	return s, nil
}

// peerCode logs a user in at Hydra, for which this program is the application of logins and consents.
func (p relyingParty) peerCode(c *connection, requests string) (string, error) {
	next, cookies := p.request(nil), []string{}
	for _, step := range []struct {
		name   string
		accept e2e.Object
	}{
		{"login", e2e.Object{"subject": "jo"}}, {"consent", e2e.Object{"grant_scope": strings.Fields(openIDScopes)}},
	} {
		if err := c.send(http.StatusFound, browserRequest(next, strings.Join(cookies, "; "))); err != nil {
			return "", err
		}
		cookies = append(cookies, c.cookies())
		challenge := step.name + "_challenge"
		r := e2e.Post(requests+step.name+"/accept?"+url.Values{challenge: c.redirectQuery()[challenge]}.Encode(), step.accept)
		r.Method = http.MethodPut
		if err := c.send(http.StatusOK, r); err != nil {
			return "", err
		}
		var accepted struct {
			RedirectTo string `json:"redirect_to"`
		}
		if err := json.Unmarshal(c.response.Body(), &accepted); err != nil {
			return "", err
		}
		next = accepted.RedirectTo
	}
	return c.code(http.StatusSeeOther, next, strings.Join(cookies, "; "))
}
