// Package harness starts the product in one of its two deployment modes (also called
// shapes) from the sources of this repository, with real servers (no testcontainers, no
// Docker), for tests and for developers:
//
//   - StartStandalone runs the whole product as one process (standalone.go).
//   - StartDistributed runs two gateways, two replicas of each of the six
//     services, PostgreSQL, Redis, Kafka and the mailbox (distributed.go).
//
// Both write the same apikey.json, so that a client of the deployment cannot tell
// the difference. Everything that is started is a child process (daemon.go). On Linux
// children end with their parent, however the parent ends; elsewhere they end with an
// orderly Stop. Every wait has a timeout, and its error says what was waited for.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// Config is how a deployment is started. Only Dir is needed.
type Config struct {
	// Dir receives data, configuration and logs. It is created, and made
	// passable for other users: PostgreSQL refuses to run as root and then runs
	// under another account, which must be able to open its data.
	Dir string

	// Bin is the folder that Build has filled. Where it is empty, the start of a
	// deployment builds what it needs, below Dir.
	Bin string

	// Wrap is a command that runs the program of standalone, which follows it with its
	// arguments. It may be empty.
	Wrap []string

	// Env is added to the environment of the product's processes, for example
	// "DOORWARD_LOG_LEVEL=debug".
	Env []string

	// Settings are added to the environment of those of the product's processes
	// that list them in their --help.
	Settings []string

	// Database is the address of a PostgreSQL for the distributed mode that the caller has started.
	Database string

	// Route returns the address at which one part of a distributed deployment, such
	// as "gateway-1" or "clients", is to find another, such as "oauth-2",
	// "postgres", "redis", "kafka" or "mailbox", that listens on an address. Nil
	// leaves all addresses as they are.
	Route Route

	// Chart starts the distributed mode with what the Helm chart renders: its
	// environments, its names of services and its migrations.
	Chart bool

	// InternalTLS encrypts the calls between the processes of a distributed deployment.
	InternalTLS bool

	// OwnServers starts PostgreSQL, Redis and Kafka for the distributed mode even
	// when DATABASE_URL, REDIS_URL or KAFKA_BROKERS name others, for tests that
	// kill these servers.
	OwnServers bool
}

// Route is a Config.Route.
type Route func(from, to, address string) (string, error)

func (c *Config) prepare(ctx context.Context, packages ...string) (err error) {
	if err := errors.Join(os.MkdirAll(c.Dir, 0o755), os.Chmod(c.Dir, 0o755)); err != nil {
		return fmt.Errorf("make the folder of the deployment: %w", err)
	}
	if c.Bin == "" {
		c.Bin, err = Build(ctx, c.Dir, packages...)
	}
	return err
}

// path is a path below the deployment's folder.
func (c Config) path(elements ...string) string {
	return filepath.Join(append([]string{c.Dir}, elements...)...)
}

// Deployment is a deployment that the harness has started, in either mode.
type Deployment interface {
	// KeyFile is the path of the deployment's apikey.json.
	KeyFile() string

	// StartSteps are the steps of the last start with their durations, in order.
	StartSteps() []StartStep

	// Database is the address of PostgreSQL, and the master key under which secrets in it are sealed.
	Database() (address, masterKey string, err error)

	// Stop ends every process with SIGTERM and reports those that ended with an
	// error or too late. No process is left, also when Stop reports an error.
	Stop(ctx context.Context) error

	// Logs writes the ends of the processes' logs, for a failed test.
	Logs(w io.Writer)
}

// StartStep is one step of a start.
type StartStep struct {
	Name string
	Took time.Duration
}

// probeDeployment is the readiness probe of a whole deployment: apikey.json exists, and
// a request with that API key is answered over TLS.
func probeDeployment(ctx context.Context, keyFile string) error {
	client, err := e2e.OpenClient(keyFile)
	if err != nil {
		return err
	}
	defer client.HTTP.CloseIdleConnections()
	answer, err := client.Do(ctx, e2e.Get("/tenants/current"))
	if err == nil && answer.Status != http.StatusFound {
		err = fmt.Errorf("want 302: %s", answer)
	}
	return err
}
