package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// The environment chooses what the scenarios run against.
const (
	keyEnv   = "DOORWARD_E2E_APIKEY" // path of the apikey.json of a deployment that runs already
	shapeEnv = "DOORWARD_E2E_SHAPE"  // else the shape to start: standalone (default), distributed or chart
)

// startLimit bounds building and starting a shape, on a machine that has
// nothing in its build cache.
const startLimit = 10 * time.Minute

// client speaks with the deployment under test. All scenarios share it, and
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
	shape, err := start(os.Getenv(shapeEnv), dir)
	if err != nil {
		return 1, err
	}
	status, err = scenarios(m, shape.KeyFile())
	if status != 0 {
		shape.Logs(os.Stderr)
	}
	return status, errors.Join(err, shape.Stop(context.Background()))
}

func scenarios(m *testing.M, keyFile string) (status int, err error) {
	if client, err = e2e.OpenClient(keyFile); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func start(name, dir string) (harness.Shape, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	config := harness.Config{Dir: filepath.Join(dir, "shape")}
	var err error
	if config.Settings, err = startProvider(dir); err != nil {
		return nil, err
	}
	switch name {
	case "", "standalone":
		if config.Bin, err = harness.Build(ctx, dir, harness.StandalonePackages...); err != nil {
			return nil, err
		}
		return harness.StartStandalone(ctx, config)
	case "distributed", "chart":
		packages := slices.Concat(harness.DistributedPackages, harness.StandalonePackages) // doorward migrate
		if config.Bin, err = harness.Build(ctx, dir, packages...); err != nil {
			return nil, err
		}
		config.Chart = name == "chart"
		return harness.StartDistributed(ctx, config)
	default:
		return nil, fmt.Errorf("%s is %q; it can be standalone, distributed or chart", shapeEnv, name)
	}
}
