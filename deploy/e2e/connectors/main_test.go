package connectors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// shapeEnv names one shape; without it the scenarios run on both, one after the other.
const shapeEnv = "DOORWARD_E2E_SHAPE"

// What the scenarios of a run share.
var (
	deployed  harness.Shape      // the deployment under test
	client    *e2e.Client        // speaks with it
	keyFile   string             // of that deployment
	authority *harness.Authority // trusted by the deployment besides the system's
	shared    foreign
)

// foreign are the servers that are started at most once, by the first scenario that
// asks for them.
type foreign struct {
	dir string

	once     sync.Once
	keycloak *connectors.Keycloak
	err      error
}

// keycloak returns the Keycloak that all scenarios share.
func keycloak(t testing.TB) *connectors.Keycloak {
	t.Helper()
	shared.once.Do(func() {
		// It outlives the test that asks first.
		shared.keycloak, shared.err = connectors.StartKeycloak(context.WithoutCancel(t.Context()), filepath.Join(shared.dir, "keycloak"), authority)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.keycloak
}

// stop ends what was started. How Java ends on SIGTERM, with status 143, is no failure.
func (f *foreign) stop(failed bool) {
	if f.keycloak == nil {
		return
	}
	if failed {
		fmt.Fprintln(os.Stderr, f.keycloak.Tail())
	}
	_ = f.keycloak.Stop(context.Background())
}

func TestMain(m *testing.M) {
	harness.Main(func(dir string) (int, error) { return run(m, dir) })
}

// run starts the shapes one after the other and runs the scenarios on each.
func run(m *testing.M, dir string) (status int, err error) {
	if authority, err = harness.NewAuthority(dir); err != nil {
		return 1, err
	}
	shared.dir = dir
	defer func() { shared.stop(status != 0) }()
	shapes := []string{"standalone", "distributed"}
	if only := os.Getenv(shapeEnv); only != "" {
		shapes = []string{only}
	}
	for _, shape := range shapes {
		began := time.Now()
		one, err := scenarios(m, shape, dir)
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(os.Stderr, "%s: status %d after %s\n", shape, one, time.Since(began).Round(time.Second))
		status = max(status, one)
	}
	return status, nil
}

func scenarios(m *testing.M, name, dir string) (status int, err error) {
	shape, err := start(name, dir)
	if err != nil {
		return 1, err
	}
	defer func() {
		if status != 0 {
			shape.Logs(os.Stderr)
		}
		err = errors.Join(err, shape.Stop(context.Background()))
	}()
	deployed, keyFile = shape, shape.KeyFile()
	if client, err = e2e.OpenClient(keyFile); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func start(name, dir string) (harness.Shape, error) {
	return harness.Start(context.Background(), name, harness.Config{Dir: filepath.Join(dir, name), Settings: []string{
		"DOORWARD_OUTBOUND_PRIVATE_NETWORKS=127.0.0.0/8",
		"DOORWARD_OUTBOUND_CA_FILE=" + authority.CAFile,
	}})
}

// killDoorward kills the process that keeps directories, with its replica where it
// has one, and starts it again.
func killDoorward(t *testing.T) {
	t.Helper()
	type process interface {
		Kill() error
		Start(context.Context) error
	}
	var processes []process
	switch shape := deployed.(type) {
	case *harness.Standalone:
		processes = append(processes, shape)
	case *harness.Distributed:
		processes = append(processes, shape.Replica("directory", 0), shape.Replica("directory", 1))
	}
	for _, p := range processes {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range processes {
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
