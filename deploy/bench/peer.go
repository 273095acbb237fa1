package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
)

// peerOperations are those of another OAuth server such as Ory Hydra. Each is divided
// by the operation of the product.
var peerOperations = []operation{
	{name: "client", ratioTo: "client", do: sends(http.StatusOK, func(s *system, _ uint64) e2e.Request {
		return e2e.Post(s.host+peerTokenPath, peerGrant)
	})},
	{name: "introspect", ratioTo: "validate", cpuAim: ">= 5",
		do: sends(http.StatusOK, func(s *system, n uint64) e2e.Request {
			request := e2e.Post(s.introspection, url.Values{"token": {pick(s.accessTokens, n)}})
			request.Anonymous = true
			return request
		})},
}

const peerTokenPath = "/oauth2/token"

var peerGrant = url.Values{"grant_type": {"client_credentials"}}

// openPeer connects to the OAuth server that a file of BENCH_PEER describes, and gets some tokens to introspect.
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
	client, err := e2e.NewClient(e2e.Key{
		ID: url.QueryEscape(peer.ClientID), Secret: url.QueryEscape(peer.ClientSecret), // RFC 6749, section 2.3.1
		BaseURL: strings.TrimSuffix(peer.PublicURL, "/"), CAFile: peer.CAFile,
	})
	if err != nil {
		return nil, err
	}
	s := newSystem(", "+peer.Name, client, peer.PIDs)
	s.introspection = strings.TrimSuffix(peer.AdminURL, "/") + "/admin/oauth2/introspect"
	s.tls.ServerName = "" // it has two addresses
	setup := s.client.Setup(ctx)
	for range 16 {
		s.accessTokens = append(s.accessTokens, setup.Post(s.host+peerTokenPath, peerGrant).Text("access_token"))
	}
	return s, setup.Err
}
