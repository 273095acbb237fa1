package failover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/backends"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const (
	limit     = 3 * time.Minute
	mailLimit = 5 * time.Minute
	// step is how many registrations happen in each state of the servers.
	step = 15
)

// product is a deployment whose servers are killed and replaced.
type product struct {
	*testing.T
	servers          *backends.Servers
	primary, standby *backends.Postgres
	master           *backends.Redis
	sentinels        string // the address of the group
	kafka            *backends.Kafka
	client           *e2e.Client
	clients          e2e.Fixture
	load             *e2e.Load
}

func TestUsersGoOnWhileServersFail(t *testing.T) {
	d := start(t)
	d.load = d.client.StartUsers(t.Context(), d.clients, 2)
	d.during("all servers", 0, func() {})
	d.during("the master of Redis is killed", 0, d.endMaster)
	d.during("one of three brokers is killed", 0, func() {
		d.must(d.kafka.Brokers[0].Kill())
		d.mail()
	})
	d.during("two of three brokers are killed", 0, func() { d.must(d.kafka.Brokers[1].Kill()) })
	d.during("the brokers are back", 0, func() {
		back := make(chan error)
		for _, broker := range d.kafka.Brokers[:2] { // neither is ready without the other
			go func() { back <- broker.Start(t.Context()) }()
		}
		d.must(errors.Join(<-back, <-back))
		d.mail()
	})
	d.during("the primary is killed and the standby promoted", time.Minute, d.promote)
	d.mail()
	d.client.CheckAcknowledged(t, d.clients.Directory, d.load.Stop(), mailLimit)
}

func start(t *testing.T) *product {
	d := &product{T: t, servers: backends.NewServers(t)}
	d.primary = d.servers.StartPostgres("primary")
	d.standby = d.primary.StartStandby("standby")
	d.must(d.primary.AwaitStandby(t.Context()))
	d.master = d.servers.StartRedis("redis-1")
	d.servers.StartReplica("redis-2", d.master)
	var sentinels []string
	for _, name := range []string{"sentinel-1", "sentinel-2", "sentinel-3"} {
		sentinels = append(sentinels, "localhost:"+d.servers.StartSentinel(name, d.master, 2))
	}
	d.sentinels = "rediss+sentinel://" + d.servers.User() + strings.Join(sentinels, ",") + "/" + backends.Group +
		"?sentinel_username=" + backends.User + "&sentinel_password=" + backends.Password
	d.kafka = d.servers.StartKafka()

	t.Setenv("REDIS_URL", d.sentinels)
	t.Setenv("KAFKA_BROKERS", strings.Join(d.kafka.Addresses, ","))
	deployment, err := harness.StartDistributed(t.Context(), harness.Config{
		Dir: filepath.Join(d.servers.Dir, "deployment"), Database: d.primary.URL(backends.Database, d.standby.Postgres),
		Settings: []string{
			"REDIS_CA_FILE=" + d.servers.Authority.CAFile, "KAFKA_CA_FILE=" + d.servers.Authority.CAFile, "KAFKA_TLS=true",
			"KAFKA_USERNAME=" + backends.User, "KAFKA_PASSWORD=" + backends.Password, "KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
		},
	})
	d.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			deployment.Logs(os.Stderr)
		}
		if err := deployment.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	d.client, err = e2e.OpenClient(deployment.KeyFile())
	d.must(err)
	d.clients = d.client.NewVerificationFixture(t)
	return d
}

func (d *product) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// during does something to the servers, and checks that requests fail no longer than for a
// time afterwards; zero means that no request may fail.
func (d *product) during(state string, most time.Duration, do func()) {
	d.Helper()
	began := time.Now()
	do()
	d.load.AwaitMore(d, step, limit)
	failures := d.load.FailedSince(began)
	for _, failure := range failures[:min(5, len(failures))] {
		d.Logf("  %v", failure)
	}
	until := time.Duration(0)
	if len(failures) > 0 {
		until = failures[len(failures)-1].Ended().Sub(began)
	}
	d.Logf("%-50s %3.0f s, %d requests failed, the last after %.1f s; %s",
		state, time.Since(began).Seconds(), len(failures), until.Seconds(), d.load)
	if until > most {
		d.Errorf("%s: requests failed for %s, which may be %s", state, until, most)
	}
}

// mail checks that the mail of a new account arrives.
func (d *product) mail() {
	d.Helper()
	began := time.Now()
	account := d.client.Register(d, d.clients.Directory.Href()+"/accounts")
	_, err := d.client.MailCount(d.Context(), mailLimit, []string{account.Text("email")})
	d.must(err)
	d.Logf("  the mail of a new account came after %.1f s", time.Since(began).Seconds())
}

// endMaster kills the master of Redis and waits for reports of both gateways.
func (d *product) endMaster() {
	d.must(d.master.Kill())
	began := time.Now()
	client := d.servers.Redis(d.sentinels)
	defer client.Close()
	d.servers.Await("reports of both gateways", func(ctx context.Context) error {
		subscription := client.Subscribe(ctx, "doorward:gateway:usage")
		defer subscription.Close()
		heard := map[string]bool{}
		for len(heard) < 2 {
			message, err := subscription.ReceiveTimeout(ctx, 3*time.Second)
			if err != nil {
				return err
			}
			if report, ok := message.(interface{ String() string }); ok && strings.HasPrefix(report.String(), "Message<") {
				if text := report.String(); len(text) > 48 {
					heard[text[len("Message<doorward:gateway:usage: "):][:16]] = true
				}
			}
		}
		return nil
	})
	d.Logf("  both gateways synchronise their limits %.1f s after the end of the master", time.Since(began).Seconds())
}

// promote kills the primary, promotes the standby, and waits until every session that
// listened for notifications does so again.
func (d *product) promote() {
	before := d.listeners(d.primary)
	if len(before) == 0 {
		d.Fatal("no session listens")
	}
	d.must(d.primary.Kill())
	began := time.Now()
	d.standby.Exec(`SELECT pg_promote()`)
	d.Logf("  the standby is promoted after %.1f s", time.Since(began).Seconds())
	d.must(e2e.AwaitFor(d.Context(), limit, "the sessions that listen", func(context.Context) error {
		now := d.listeners(d.standby)
		for _, service := range before {
			if !slices.Contains(now, service) {
				return errors.New(service + " does not listen")
			}
		}
		return nil
	}))
	d.Logf("  %v listen again after %.1f s", before, time.Since(began).Seconds())
}

// listeners returns the services with sessions that did nothing but LISTEN, and the
// pings in between, in three looks at a server.
func (d *product) listeners(server *backends.Postgres) []string {
	d.Helper()
	seen := map[string]int{}
	for range 3 {
		list, err := server.Value(`SELECT coalesce(string_agg(DISTINCT application_name || ' ' || pid, ','), '') FROM pg_stat_activity
			WHERE state = 'idle' AND (query LIKE 'LISTEN %' OR query = '-- ping') AND pg_sleep(0.2) IS NOT NULL`)
		d.must(err)
		for session := range strings.SplitSeq(list, ",") {
			seen[session]++
		}
	}
	var services []string
	for session, looks := range seen {
		if name, _, ok := strings.Cut(session, " "); ok && looks == 3 && !slices.Contains(services, name) {
			services = append(services, name)
		}
	}
	slices.Sort(services)
	return services
}
