package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/deployment"
)

// replicas is how many processes run of each service, and of the gateway.
const replicas = 2

// loopback lets the mail servers of tenants be on this machine.
const loopback = "DOORWARD_SMTP_PRIVATE_NETWORKS=127.0.0.0/8"

// processName is the name of one process of a service, or of the gateway.
func processName(service string, i int) string { return fmt.Sprintf("%s-%d", service, i+1) }

// router returns the addresses at which one process reaches the others: their own, or
// those of Config.Route.
type router struct {
	from  string
	route Route
	err   error
}

func (r *router) address(name, address string) string {
	if r.route == nil {
		return address
	}
	routed, err := r.route(r.from, name, address)
	r.err = errors.Join(r.err, err)
	return routed
}

// url is address for a URL.
func (r *router) url(name, address string) string {
	if r.route == nil || address == "" {
		return address
	}
	target, err := url.Parse(address)
	if err != nil {
		r.err = errors.Join(r.err, err)
		return address
	}
	target.Host = r.address(name, target.Host)
	return target.String()
}

// settings are the environment variables of all processes, with the addresses that one of them
// needs. knownSettings selects those of a process.
func (d *Distributed) settings(p *plan, process string) ([]string, error) {
	r := &router{from: process, route: d.config.Route}
	broker := p.kafka
	for _, listener := range p.kafkaListeners {
		if listener.process == process {
			broker = listener.advertised
		}
	}
	settings := []string{
		"DATABASE_URL=" + r.url("postgres", p.database),
		"REDIS_URL=" + r.url("redis", p.redis),
		"KAFKA_BROKERS=" + broker,
		"DOORWARD_BASE_URL=" + p.Key.BaseURL,
		"DOORWARD_INTERNAL_SECRET=" + p.Internal,
		"DOORWARD_INTERNAL_SECRET_ACCEPTED=" + p.accepted,
		"DOORWARD_MASTER_KEY=" + p.Master,
		"DOORWARD_TLS_CERT_FILE=" + p.cert,
		"DOORWARD_TLS_KEY_FILE=" + p.key,
		"DOORWARD_MAIL_FROM=no-reply@example.test",
		"DOORWARD_MAIL_FROM_NAME=Doorward",
		"DOORWARD_SMTP_URL=smtp://" + r.address("mailbox", p.smtp),
		"DOORWARD_BOOTSTRAP_KEY_ID=" + p.Key.ID,
		"DOORWARD_BOOTSTRAP_KEY_SECRET=" + p.Key.Secret,
		"DOORWARD_BOOTSTRAP_OWNER_EMAIL=owner@example.test",
	}
	scheme := "http://"
	if d.config.InternalTLS {
		scheme = "https://"
		settings = append(settings, "DOORWARD_INTERNAL_TLS_CERT_FILE="+p.cert, "DOORWARD_INTERNAL_TLS_KEY_FILE="+p.key)
	}
	for _, name := range deployment.Services {
		var addresses []string
		for i, address := range p.peers[name] {
			addresses = append(addresses, scheme+r.address(processName(name, i), address))
		}
		settings = append(settings, deployment.AddressVariable(name)+"="+strings.Join(addresses, ","))
	}
	return append(settings, d.testSettings(p)...), r.err
}

// testSettings are the variables that only tests need.
func (d *Distributed) testSettings(p *plan) []string {
	settings := []string{
		loopback,
		"DOORWARD_SMS_PROVIDER=mailbox",
		"DOORWARD_SMS_MAILBOX_URL=http://" + p.mailbox,
		"DOORWARD_MAILBOX_URL=http://" + p.mailbox,
		"DOORWARD_SIGN_UP=true",
	}
	return append(settings, d.config.Settings...)
}

// startReplicas starts the replicas of some services, or of the gateway, all at once.
func (d *Distributed) startReplicas(ctx context.Context, names ...string) error {
	p := d.plan
	var starts []func() error
	for _, name := range names {
		for i, address := range p.peers[name] {
			settings, err := d.environment(ctx, p, name, i)
			if err != nil {
				return err
			}
			if d.config.InternalTLS {
				settings = append(settings, "SSL_CERT_FILE="+p.authority.CAFile)
			}
			process := NewDaemon(processName(name, i), d.config.path(processName(name, i)+".log"), nil, filepath.Join(d.config.Bin, name))
			process.SetOps()
			process.ready = func(ctx context.Context) error {
				return AnswersOK(ctx, http.DefaultClient, "http://"+process.ops+"/readyz")
			}
			process.Setenv(append(settings, "DOORWARD_LISTEN="+address)...)
			process.Setenv(d.config.Env...)
			d.processes[name] = append(d.processes[name], process)
			starts = append(starts, func() error { return process.Start(ctx) })
		}
	}
	return concurrently(starts...)
}

// environment returns the environment variables of a process of a service, or of the gateway.
func (d *Distributed) environment(ctx context.Context, p *plan, name string, i int) ([]string, error) {
	if d.chart == nil {
		settings, err := d.settings(p, processName(name, i))
		if err != nil {
			return nil, err
		}
		return knownSettings(ctx, filepath.Join(d.config.Bin, name), settings)
	}
	process, err := d.chart.process(name)
	if err != nil {
		return nil, err
	}
	if process.Replicas != replicas || process.Program != name || process.Ready != "/readyz" {
		return nil, fmt.Errorf("the chart renders %d replicas of %s, ready at %q", process.Replicas, process.Program, process.Ready)
	}
	return d.chartEnvironment(p, process)
}

// knownSettings returns the settings that a program lists in its --help. The program would
// refuse others.
func knownSettings(ctx context.Context, program string, settings []string) (known []string, err error) {
	help, err := exec.CommandContext(ctx, program, "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its variables: %w", program, err)
	}
	for _, setting := range settings {
		variable, _, _ := strings.Cut(setting, "=")
		if slices.Contains(strings.FieldsFunc(string(help), isNoNameCharacter), strings.TrimSuffix(variable, "_FILE")) {
			known = append(known, setting)
		}
	}
	return known, nil
}

// isNoNameCharacter reports whether a character cannot be in the name of a variable.
func isNoNameCharacter(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }

// startGateways starts two gateways behind a load balancer. It writes apikey.json before
// they run: the deployment is ready when that API key works.
func (d *Distributed) startGateways(ctx context.Context) (err error) {
	if err := d.plan.Key.Write(d.KeyFile()); err != nil {
		return err
	}
	r := &router{from: "clients", route: d.config.Route}
	var addresses []string
	for i, address := range d.plan.peers["gateway"] {
		addresses = append(addresses, r.address(processName("gateway", i), address))
	}
	if r.err != nil {
		return r.err
	}
	if d.balancer, err = startBalancer(d.plan.Listen, addresses); err != nil {
		return err
	}
	if err := d.startReplicas(ctx, "gateway"); err != nil {
		return err
	}
	return e2e.AwaitFor(ctx, readyLimit, "the deployment to answer", func(ctx context.Context) error {
		return probeDeployment(ctx, d.KeyFile())
	})
}
