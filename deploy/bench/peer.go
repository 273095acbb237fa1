package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
)

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
	r.header = map[string]string{"Authorization": basic(url.QueryEscape(p.ClientID), url.QueryEscape(p.ClientSecret))}
	return r
}

// openPeer connects to the peer and gets some tokens to introspect.
func openPeer(file string) (*site, error) {
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
	s, err := openSite(", "+p.Name, e2e.Key{BaseURL: p.PublicURL, CAFile: p.CAFile}, p.PIDs)
	if err != nil {
		return nil, err
	}
	s.peer, s.authorization = p, ""
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
