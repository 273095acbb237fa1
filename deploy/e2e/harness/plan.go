package harness

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/deployment"
)

// plan is the addresses, keys and certificates that the processes must agree on before
// any of them runs.
type plan struct {
	identity

	authority *Authority
	cert, key string // files of the gateways
	smtp      string // address of the mailbox for mail
	mailbox   string // address of the mailbox for readers
	database  string
	redis     string
	kafka     string
	peers     map[string][]string // addresses by service, and of the gateways

	// With Config.Route the broker has one listener for each process, because a broker
	// tells its clients the address at which it is reached (advertised listener).
	kafkaListeners []kafkaListener
}

// identity is the address, the first API key and the secrets that the data of a deployment depends on. It is
// a file beside the data (identity.json), so that a later start can use the same folder.
type identity struct {
	Key      e2e.Key
	Listen   string // of the load balancer
	Internal string // secret that the gateway and the services share
	accepted string // another one that they accept, if any
	Master   string // key that seals what the database holds
}

func (d *Distributed) newPlan() (*plan, error) {
	known, err := d.loadIdentity()
	if err != nil {
		return nil, err
	}
	p := &plan{identity: known, smtp: FreeAddress(), mailbox: FreeAddress(), peers: map[string][]string{}}
	if p.authority, err = NewAuthority(d.config.Dir); err != nil {
		return nil, err
	}
	if p.cert, p.key, err = p.authority.Issue(d.config.Dir, GatewayHosts...); err != nil {
		return nil, err
	}
	p.Key.CAFile = p.authority.CAFile
	for _, name := range append([]string{"gateway"}, deployment.Services...) {
		for range replicas {
			p.peers[name] = append(p.peers[name], FreeAddress())
		}
	}
	if d.config.Route == nil {
		return p, nil
	}
	for _, service := range deployment.Services {
		for i := range replicas {
			process := processName(service, i)
			listener := FreeAddress()
			advertised, err := d.config.Route(process, "kafka", listener)
			if err != nil {
				return nil, err
			}
			p.kafkaListeners = append(p.kafkaListeners, kafkaListener{process, listener, advertised})
		}
	}
	return p, nil
}

// loadIdentity reads the identity of the folder, or makes one.
func (d *Distributed) loadIdentity() (identity, error) {
	var own identity
	path := d.config.path("identity.json")
	if err := e2e.ReadJSON(path, &own); !errors.Is(err, os.ErrNotExist) {
		return own, err
	}
	port := FreePort()
	own = identity{
		Key: e2e.Key{
			ID:      rand.Text(),
			Secret:  strings.TrimRight(secret(), "="),
			BaseURL: "https://localhost:" + strconv.Itoa(port) + "/v1",
		},
		Listen:   "localhost:" + strconv.Itoa(port),
		Internal: secret(),
		Master:   "e2e:" + secret(),
	}
	return own, e2e.WriteJSON(path, own)
}

// secret is 32 random bytes in Base64.
func secret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}
