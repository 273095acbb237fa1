// Package harness starts the product in either of its shapes from the source of the repository, with
// real servers (no testcontainers, no Docker), for tests and for developers:
//
//   - StartStandalone runs the one-process shape (standalone.go).
//   - StartDistributed runs two gateways, two replicas of each of the six
//     services, PostgreSQL, Redis, Kafka and the mailbox (distributed.go).
//
// Either writes the same apikey.json, so that a client of the deployment
// cannot know the difference. Everything that is started is a child that dies
// with its parent, however the parent dies, on Linux; elsewhere it dies with an
// orderly Stop. Every wait has a limit and says what it waited for.
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

// Config says where a shape lives.
type Config struct {
	// Dir receives data, configuration and logs. It is created, and made
	// passable for other users: PostgreSQL refuses to run as root and is then
	// run as somebody else, who must be able to reach its data.
	Dir string

	// Bin is the folder that Build has filled. Where it is empty, the start of a shape
	// builds what it needs, below Dir.
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

	// Database is a PostgreSQL of the test's own for the distributed shape.
	Database string

	// Route returns the address at which one part of the distributed shape, such
	// as "gateway-1" or "clients", is to find another, such as "oauth-2",
	// "postgres", "redis", "kafka" or "mailbox", that listens on an address. Nil
	// leaves all addresses as they are.
	Route Route

	// Chart starts the distributed shape with what the Helm chart renders: its
	// environments, its names of services and its migrations.
	Chart bool

	// Shards gives the distributed shape a second database, Shard.
	Shards bool

	// InternalTLS encrypts what the processes of the distributed shape send each other.
	InternalTLS bool

	// Own starts PostgreSQL, Redis and Kafka for the distributed shape also
	// when DATABASE_URL, REDIS_URL or KAFKA_BROKERS name others, because
	// somebody means to kill them.
	Own bool
}

// Route is a Config.Route.
type Route func(from, to, address string) (string, error)

func (c *Config) prepare(ctx context.Context, packages ...string) (err error) {
	if err := errors.Join(os.MkdirAll(c.Dir, 0o755), os.Chmod(c.Dir, 0o755)); err != nil {
		return fmt.Errorf("make the folder of the shape: %w", err)
	}
	if c.Bin == "" {
		c.Bin, err = Build(ctx, c.Dir, packages...)
	}
	return err
}

// path is a place below the shape's folder.
func (c Config) path(elements ...string) string {
	return filepath.Join(append([]string{c.Dir}, elements...)...)
}

// Shape is a deployment that the harness has started.
type Shape interface {
	// KeyFile is the path of the deployment's apikey.json.
	KeyFile() string

	// Started says how long each part of the last start took, in order.
	Started() []Lap

	// Database is the address of PostgreSQL, and the key that seals what is in it.
	Database() (address, masterKey string, err error)

	// Stop ends every process in an orderly way and reports those that did
	// not end well. Nothing is left running, also when it reports an error.
	Stop(ctx context.Context) error

	// Logs writes the ends of the processes' logs, for a failed test.
	Logs(w io.Writer)
}

// Lap is one part of a start and how long it took.
type Lap struct {
	Part string
	Took time.Duration
}

// answering is the probe of a whole deployment: the key is there and the
// service answers it over TLS.
func answering(ctx context.Context, keyFile string) error {
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
