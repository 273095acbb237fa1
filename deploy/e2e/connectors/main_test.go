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

// modeEnv names one deployment mode; without it the scenarios run on both, one after the other.
const modeEnv = "DOORWARD_E2E_SHAPE"

// What the scenarios of a run share.
var (
	deployed  harness.Deployment // the deployment under test
	client    *e2e.Client        // speaks with it
	keyFile   string             // of that deployment
	authority *harness.Authority // trusted by the deployment besides the system's
	shared    *sharedServers     // of that deployment: they trust its certificate
)

// sharedServers are started at most once for each deployment, by the first scenario that needs them.
type sharedServers struct {
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
		ctx, dir := context.WithoutCancel(t.Context()), filepath.Join(shared.dir, "keycloak")
		shared.keycloak, shared.err = connectors.StartKeycloak(ctx, dir, authority, client.Key.CAFile)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.keycloak
}

// stop ends what was started. How Java ends on SIGTERM, with status 143, is no failure.
func (f *sharedServers) stop(failed bool) {
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

// run starts a deployment in one mode after the other and runs the scenarios on each.
func run(m *testing.M, dir string) (status int, err error) {
	if authority, err = harness.NewAuthority(dir); err != nil {
		return 1, err
	}
	modes := []string{"standalone", "distributed"}
	if only := os.Getenv(modeEnv); only != "" {
		modes = []string{only}
	}
	for _, mode := range modes {
		began := time.Now()
		one, err := scenarios(m, mode, dir)
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(os.Stderr, "%s: status %d after %s\n", mode, one, time.Since(began).Round(time.Second))
		status = max(status, one)
	}
	return status, nil
}

func scenarios(m *testing.M, mode, dir string) (status int, err error) {
	deployed, err = start(mode, dir)
	if err != nil {
		return 1, err
	}
	shared = &sharedServers{dir: filepath.Join(dir, mode)}
	defer func() {
		shared.stop(status != 0)
		if status != 0 {
			deployed.Logs(os.Stderr)
		}
		err = errors.Join(err, deployed.Stop(context.Background()))
	}()
	keyFile = deployed.KeyFile()
	if client, err = e2e.OpenClient(keyFile); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func start(mode, dir string) (harness.Deployment, error) {
	return harness.Start(context.Background(), mode, harness.Config{Dir: filepath.Join(dir, mode), Settings: []string{
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
	switch d := deployed.(type) {
	case *harness.Standalone:
		processes = append(processes, d)
	case *harness.Distributed:
		processes = append(processes, d.Replica("directory", 0), d.Replica("directory", 1))
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
