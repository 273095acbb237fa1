package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// The environment chooses what the scenarios run against.
const (
	keyEnv  = "DOORWARD_E2E_APIKEY" // path of the apikey.json of a deployment that runs already
	modeEnv = "DOORWARD_E2E_SHAPE"  // else the deployment to start: standalone (default), distributed or chart
)

// client calls the deployment under test. All scenarios share it, and
// each leaves the deployment as it found it.
var client *e2e.Client

func TestMain(m *testing.M) {
	harness.Main(func(dir string) (int, error) { return run(m, dir) })
}

// run starts what is needed, runs the scenarios, and stops it again. A
// deployment that does not stop well fails the run too.
func run(m *testing.M, dir string) (status int, err error) {
	if keyFile := os.Getenv(keyEnv); keyFile != "" {
		return scenarios(m, keyFile)
	}
	deployment, err := start(os.Getenv(modeEnv), dir)
	if err != nil {
		return 1, err
	}
	status, err = scenarios(m, deployment.KeyFile())
	if leaks := e2e.LoggedSecrets(dir); status == 0 && len(leaks) > 0 {
		return 1, errors.Join(append(leaks, err, deployment.Stop(context.Background()))...)
	}
	if status != 0 {
		deployment.Logs(os.Stderr)
	}
	return status, errors.Join(err, deployment.Stop(context.Background()))
}

func scenarios(m *testing.M, keyFile string) (status int, err error) {
	if client, err = e2e.OpenClient(keyFile); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func start(mode, dir string) (harness.Deployment, error) {
	settings, err := startProvider(dir)
	if err != nil {
		return nil, err
	}
	return harness.Start(context.Background(), mode, harness.Config{
		Dir: filepath.Join(dir, "deployment"), Settings: settings, InternalTLS: mode == "distributed",
	})
}
