package harness

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/deployment"
)

// plan holds what the processes must agree on before any of them runs.
type plan struct {
	identity
	certs certificates

	authority *Authority
	smtp      string // address of the mailbox for mail
	mailbox   string // address of the mailbox for readers
	database  string
	shard     string // with Config.Shards the second database
	redis     string
	kafka     string
	peers     map[string][]string // addresses by service, and of the gateways

	// Where Config.Route is set, each process finds the broker at a listener of its
	// own, because a broker tells its clients where to find it.
	kafkaFor       map[string]string
	kafkaListeners []kafkaListener
}

// identity is what the data is bound to. It is kept beside the data, so that a
// folder can be started again.
type identity struct {
	Key      e2e.Key
	Listen   string // of the load balancer
	Internal string // secret that the gateway and the services share
	accepted string // another one that they accept, if any
	Master   string // key that seals what the database holds
}

// internalTLS returns the scheme of the addresses of services, and the settings that
// make them serve and trust it.
func (d *Distributed) internalTLS(p *plan) (scheme string, settings []string) {
	if !d.config.InternalTLS {
		return "http://", nil
	}
	return "https://", []string{
		"DOORWARD_INTERNAL_TLS_CERT_FILE=" + p.certs.Cert, "DOORWARD_INTERNAL_TLS_KEY_FILE=" + p.certs.Key,
	}
}

func (d *Distributed) plan() (*plan, error) {
	own, err := d.identity()
	if err != nil {
		return nil, err
	}
	p := &plan{identity: own, peers: map[string][]string{}}
	if p.authority, p.certs, err = makeCertificates(d.config); err != nil {
		return nil, err
	}
	p.Key.CAFile = p.certs.CA
	addresses := []*string{&p.smtp, &p.mailbox}
	for _, name := range append([]string{"gateway"}, deployment.Services...) {
		p.peers[name] = make([]string, replicas)
		for i := range replicas {
			addresses = append(addresses, &p.peers[name][i])
		}
	}
	for _, address := range addresses {
		if *address, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	if d.config.Route == nil {
		return p, nil
	}
	p.kafkaFor = map[string]string{}
	for _, service := range deployment.Services {
		for i := range replicas {
			process := processName(service, i)
			listener, err := FreeAddress()
			if err != nil {
				return nil, err
			}
			if p.kafkaFor[process], err = d.config.Route(process, "kafka", listener); err != nil {
				return nil, err
			}
			p.kafkaListeners = append(p.kafkaListeners, kafkaListener{process, listener, p.kafkaFor[process]})
		}
	}
	return p, nil
}

// identity reads the identity of the folder, or makes one.
func (d *Distributed) identity() (identity, error) {
	var own identity
	path := d.config.path("identity.json")
	raw, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(raw, &own); err != nil {
			return own, fmt.Errorf("read %s: %w", path, err)
		}
		return own, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return own, fmt.Errorf("read the folder's identity: %w", err)
	}
	port, err := FreePort()
	if err != nil {
		return own, err
	}
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
	if raw, err = json.MarshalIndent(own, "", "  "); err != nil {
		return own, fmt.Errorf("encode the folder's identity: %w", err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return own, fmt.Errorf("write the folder's identity: %w", err)
	}
	return own, nil
}

// secret is 32 random bytes in Base64.
func secret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}
