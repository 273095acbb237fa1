package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// replicas is how many processes run of each service, and of the gateway.
const replicas = 2

// service says which peers a process calls and what only it is told. Every
// process refuses a DOORWARD_ variable that it does not know, so this table is
// also the shortest list of what each of them needs.
type service struct {
	name  string
	peers []string
	seals bool // keeps secrets, so it is given the key that seals them
	env   func(*plan) []string
	mails bool // sends the mails
}

var services = []service{
	{name: "directory", seals: true, env: sender},
	{name: "application", peers: []string{"directory"}, seals: true},
	{name: "oauth", peers: []string{"directory", "application", "mfa"}, seals: true},
	{name: "mfa", peers: []string{"directory"}, seals: true},
	{name: "notification", peers: []string{"directory", "application"}, seals: true, mails: true, env: func(p *plan) []string {
		return append(sender(p), "DOORWARD_SMTP_URL=smtp://"+p.smtp, "DOORWARD_SMS_PROVIDER=mailbox", "DOORWARD_SMS_MAILBOX_URL=http://"+p.mailbox, loopback)
	}},
	{name: "idsite", peers: []string{"directory", "application", "oauth", "mfa"}, seals: true, env: func(p *plan) []string {
		return []string{
			"DOORWARD_BOOTSTRAP_KEY_ID=" + p.Key.ID,
			"DOORWARD_BOOTSTRAP_KEY_SECRET=" + p.Key.Secret,
			"DOORWARD_BOOTSTRAP_OWNER_EMAIL=owner@example.test",
		}
	}},
}

// loopback lets the mail servers of tenants be on this machine.
const loopback = "DOORWARD_SMTP_PRIVATE_NETWORKS=127.0.0.0/8"

// sender is who mails come from: notification sends them, directory shows it in
// templates.
func sender(*plan) []string {
	return []string{"DOORWARD_MAIL_FROM=no-reply@example.test", "DOORWARD_MAIL_FROM_NAME=Doorward"}
}

// replicas prepares the processes of all services and returns what starts them.
func (d *Distributed) replicas(ctx context.Context, p *plan) ([]func() error, error) {
	var starts []func() error
	for _, service := range services {
		for i, address := range p.peers[service.name] {
			ops, err := freeAddress()
			if err != nil {
				return nil, err
			}
			env := environment(
				"DATABASE_URL="+p.database,
				"REDIS_URL="+p.redis,
				"KAFKA_BROKERS="+p.kafka,
				"DOORWARD_BASE_URL="+p.Key.BaseURL,
				"DOORWARD_INTERNAL_SECRET="+p.Internal,
				"DOORWARD_LISTEN="+address,
				"DOORWARD_OPS_LISTEN="+ops,
			)
			env = append(env, p.addresses(service.peers...)...)
			if service.seals {
				env = append(env, "DOORWARD_MASTER_KEY="+p.Master)
			}
			if service.mails {
				env = append(env, d.config.mailEnv()...)
			}
			if service.env != nil {
				env = append(env, service.env(p)...)
			}
			starts = append(starts, d.add(ctx, service.name, i, ops, env))
		}
	}
	return starts, nil
}

// gateways prepares two gateways behind a load balancer and returns what starts
// them. The key is handed out before they run: that it works is how the whole
// deployment shows that it is ready.
func (d *Distributed) gateways(ctx context.Context, p *plan) ([]func() error, error) {
	if err := p.Key.Write(d.KeyFile()); err != nil {
		return nil, err
	}
	var err error
	if d.balancer, err = startBalancer(p.Listen, p.peers["gateway"]); err != nil {
		return nil, err
	}
	var starts []func() error
	for i, address := range p.peers["gateway"] {
		ops, err := freeAddress()
		if err != nil {
			return nil, err
		}
		env := environment(
			"REDIS_URL="+p.redis,
			"DOORWARD_BASE_URL="+p.Key.BaseURL,
			"DOORWARD_INTERNAL_SECRET="+p.Internal,
			"DOORWARD_LISTEN="+address,
			"DOORWARD_OPS_LISTEN="+ops,
			"DOORWARD_TLS_CERT_FILE="+p.certs.Cert,
			"DOORWARD_TLS_KEY_FILE="+p.certs.Key,
			"DOORWARD_MAILBOX_URL=http://"+p.mailbox,
		)
		for _, service := range services {
			env = append(env, p.addresses(service.name)...)
		}
		starts = append(starts, d.add(ctx, "gateway", i, ops, env))
	}
	return starts, nil
}

// add describes a process of the product, ready when its private port says so,
// and returns what starts it.
func (d *Distributed) add(ctx context.Context, binary string, i int, ops string, env []string) func() error {
	name := fmt.Sprintf("%s-%d", binary, i+1)
	process := &Daemon{
		Name:  name,
		path:  filepath.Join(d.config.Bin, binary),
		env:   append(env, d.config.Env...),
		dir:   d.config.Dir,
		log:   d.config.path(name + ".log"),
		ready: func(ctx context.Context) error { return answersOK(ctx, "http://"+ops+"/readyz") },
	}
	d.processes[binary] = append(d.processes[binary], process)
	return func() error { return process.Start(ctx) }
}

// addresses tells a process where all replicas of its peers are.
func (p *plan) addresses(peers ...string) []string {
	var env []string
	for _, peer := range peers {
		urls := make([]string, len(p.peers[peer]))
		for i, address := range p.peers[peer] {
			urls[i] = "http://" + address
		}
		env = append(env, "DOORWARD_"+strings.ToUpper(peer)+"_URL="+strings.Join(urls, ","))
	}
	return env
}
