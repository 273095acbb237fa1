package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/pg/private"
)

// Distributed is a deployment of separate processes: two replicas of each service and
// of the gateway, behind one load balancer, and the servers that they share.
type Distributed struct {
	// Kafka and Redis are nil when the environment named others.
	Kafka, Redis *Daemon

	startSteps []StartStep
	config     Config
	plan       *plan
	postgres   *private.Server
	mailbox    *Daemon
	balancer   *balancer
	chart      *chart               // with Config.Chart
	processes  map[string][]*Daemon // by the name of the service, or "gateway"
}

// StartDistributed starts everything and returns when the gateway answers. When
// a part fails, the parts that run are stopped again.
func StartDistributed(ctx context.Context, config Config) (*Distributed, error) {
	if err := config.prepare(ctx, slices.Concat(DistributedPackages, StandalonePackages)...); err != nil { // doorward migrate
		return nil, err
	}
	d := &Distributed{config: config, processes: map[string][]*Daemon{}}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.Stop(context.WithoutCancel(ctx)))
	}
	return d, nil
}

// start starts what depends on nothing first. The processes of one step start
// concurrently, as they would on a cluster.
func (d *Distributed) start(ctx context.Context) error {
	plan, err := d.newPlan()
	if err != nil {
		return err
	}
	d.plan = plan
	steps := []struct {
		name    string
		enabled bool
		start   func() error
	}{
		{"PostgreSQL, Redis, Kafka and the mailbox", true, func() error {
			return concurrently(
				func() error { return d.startPostgres(ctx, plan) },
				func() error { return d.startRedis(ctx, plan) },
				func() error { return d.startKafka(ctx, plan) },
				func() (err error) {
					d.mailbox, err = startMailbox(ctx, d.config, plan.smtp, plan.mailbox)
					return err
				},
			)
		}},
		{"what the chart renders", d.config.Chart, func() error { return d.startChart(ctx, plan) }},
		{"two replicas of each service", true, func() error { return d.startReplicas(ctx, deployment.Services...) }},
		{"two gateways", true, func() error { return d.startGateways(ctx) }},
	}
	for _, step := range steps {
		if !step.enabled {
			continue
		}
		began := time.Now()
		if err := step.start(); err != nil {
			return err
		}
		d.startSteps = append(d.startSteps, StartStep{step.name, time.Since(began).Round(time.Millisecond)})
	}
	return nil
}

// fromEnvironment is the address of a server that the environment names, unless OwnServers is set.
func (d *Distributed) fromEnvironment(variable string) string {
	if d.config.OwnServers {
		return ""
	}
	return os.Getenv(variable)
}

func (d *Distributed) startPostgres(ctx context.Context, p *plan) error {
	if p.database = cmp.Or(d.config.Database, d.fromEnvironment("DATABASE_URL")); p.database != "" {
		return nil
	}
	server, err := private.Start(ctx, private.Config{
		Dir: d.config.path("postgres"),
		Bin: os.Getenv("DOORWARD_POSTGRES_BIN"),
		// Killed processes lose no data without fsync: only a crash of the
		// machine would.
		Durable: false,
		// Every replica brings a pool of its own.
		MaxConnections: 400,
	})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	d.postgres, p.database = server, server.URL(private.Database)
	return nil
}

func (d *Distributed) startRedis(ctx context.Context, p *plan) error {
	if p.redis = d.fromEnvironment("REDIS_URL"); p.redis != "" {
		return nil
	}
	server, address, err := startRedis(ctx, d.config)
	d.Redis, p.redis = server, "redis://"+address
	return err
}

func (d *Distributed) startKafka(ctx context.Context, p *plan) error {
	if p.kafka = d.fromEnvironment("KAFKA_BROKERS"); p.kafka != "" {
		return nil
	}
	var err error
	d.Kafka, p.kafka, err = startKafka(ctx, d.config, p.kafkaListeners...)
	return err
}

// concurrently runs the functions at the same time and joins their errors.
func concurrently(functions ...func() error) error {
	errs := make([]error, len(functions))
	var group sync.WaitGroup
	for i, function := range functions {
		group.Go(func() { errs[i] = function() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Authority signed the gateways' certificate, and can sign others.
func (d *Distributed) Authority() *Authority { return d.plan.authority }

// Replica is one process of a service, or of the "gateway", counted from 0.
func (d *Distributed) Replica(service string, i int) *Daemon { return d.processes[service][i] }

// Address is the host and port at which a process of a service, or of the "gateway",
// listens.
func (d *Distributed) Address(service string, i int) string { return d.plan.peers[service][i] }

// Settings is the environment for the subcommands of doorward.
func (d *Distributed) Settings() []string {
	return environment("DATABASE_URL="+d.plan.database, "DOORWARD_MASTER_KEY="+d.plan.Master,
		"DOORWARD_INTERNAL_SECRET="+d.plan.Internal, "KAFKA_BROKERS="+d.plan.kafka, "REDIS_URL="+d.plan.redis,
		"DOORWARD_BASE_URL="+d.plan.Key.BaseURL, "DOORWARD_SMTP_URL=smtp://"+d.plan.smtp)
}

// InternalSecret is the secret that the processes share.
func (d *Distributed) InternalSecret() string { return d.plan.Internal }

// SetInternalSecret sets the secrets of processes that are replaced from now on; accepted
// may be empty.
func (d *Distributed) SetInternalSecret(secret, accepted string) {
	d.plan.Internal, d.plan.accepted = secret, accepted
}

// StopProcesses stops the gateways and then the services. PostgreSQL, Redis, Kafka and
// the mailbox keep running.
func (d *Distributed) StopProcesses(ctx context.Context) error {
	var gateways, replicas []func() error
	for name, list := range d.processes {
		for _, process := range list {
			stop := func() error { return process.Stop(ctx) }
			if name == "gateway" {
				gateways = append(gateways, stop)
			} else {
				replicas = append(replicas, stop)
			}
		}
	}
	return errors.Join(concurrently(gateways...), concurrently(replicas...))
}

// StartProcesses starts the gateways and the services again.
func (d *Distributed) StartProcesses(ctx context.Context) error {
	var starts []func() error
	for _, list := range d.processes {
		for _, process := range list {
			starts = append(starts, func() error { return process.Start(ctx) })
		}
	}
	return concurrently(starts...)
}

// Replace stops one process with SIGTERM and starts the program of the same name from
// another folder in its place (rolling upgrade). Meanwhile new connections go to the other
// gateway, as with a load balancer that leaves out a process that is not ready.
func (d *Distributed) Replace(ctx context.Context, service string, i int, bin string) error {
	process := d.Replica(service, i)
	address := d.plan.peers[service][i]
	if service == "gateway" {
		d.balancer.exclude(d.balancer.targets[i])
		defer d.balancer.exclude("")
	}
	program := filepath.Join(bin, service)
	settings, err := d.settings(d.plan, process.Name)
	if err != nil {
		return err
	}
	variables, err := knownSettings(ctx, program, append(settings, "DOORWARD_LISTEN="+address, "DOORWARD_OPS_LISTEN="+process.ops))
	if err != nil {
		return err
	}
	if err := process.Stop(ctx); err != nil {
		return err
	}
	process.path, process.env = program, append(environment(variables...), d.config.Env...)
	return process.Start(ctx)
}

// StartSteps are the steps of the start with their durations, in order.
func (d *Distributed) StartSteps() []StartStep { return d.startSteps }

// Database is the address of PostgreSQL, and the master key under which secrets in it are sealed.
func (d *Distributed) Database() (address, masterKey string, err error) {
	return d.plan.database, d.plan.Master, nil
}

// KeyFile is where the harness has written the bootstrap key.
func (d *Distributed) KeyFile() string { return d.config.path("apikey.json") }

// Stop ends the gateways, then the services, then the servers that they use.
func (d *Distributed) Stop(ctx context.Context) error {
	var errs []error
	if d.balancer != nil {
		errs = append(errs, d.balancer.close())
	}
	errs = append(errs, d.StopProcesses(ctx))
	if d.chart != nil {
		for _, b := range d.chart.balancers {
			errs = append(errs, b.close())
		}
	}
	return errors.Join(append(errs, concurrently(
		func() error { return d.mailbox.Stop(ctx) },
		func() error { return d.Redis.Stop(ctx) },
		func() error { return d.Kafka.Stop(ctx) },
		func() error {
			if d.postgres == nil {
				return nil
			}
			return d.postgres.Stop(ctx)
		},
	))...)
}

// Logs writes the ends of all logs, the shared servers first.
func (d *Distributed) Logs(w io.Writer) {
	for _, daemon := range []*Daemon{d.Redis, d.mailbox, d.Kafka} {
		fmt.Fprintln(w, daemon.Tail())
	}
	for _, name := range slices.Sorted(maps.Keys(d.processes)) {
		for _, process := range d.processes[name] {
			fmt.Fprintln(w, process.Tail())
		}
	}
}
