package harness

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// startLimit bounds the build and the start of a deployment, on a machine that has nothing in
// its build cache.
const startLimit = 10 * time.Minute

// Start starts a deployment by the name of its mode: standalone (also ""), distributed, or
// chart (distributed, with the configuration that the Helm chart renders).
func Start(ctx context.Context, mode string, config Config) (Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	switch mode {
	case "", "standalone":
		return StartStandalone(ctx, config)
	case "distributed", "chart":
		config.Chart = mode == "chart"
		return StartDistributed(ctx, config)
	default:
		return nil, fmt.Errorf("the deployment mode is %q; it can be standalone, distributed or chart", mode)
	}
}

// AtEnd calls end when the test ends, and fails the test on an error.
func AtEnd(t testing.TB, end func() error) {
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestFolder is a TempFolder for one test, which is kept when the test fails.
func TestFolder(t testing.TB) string {
	t.Helper()
	dir, remove, err := TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	AtEnd(t, func() error {
		if t.Failed() {
			t.Logf("logs and data are kept in %s", dir)
			return nil
		}
		return remove()
	})
	return dir
}

// TestDistributed starts a distributed deployment for one test.
func TestDistributed(t testing.TB, config Config) (*Distributed, *e2e.Client) {
	t.Helper()
	ctx := t.Context()
	distributed, err := StartDistributed(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	AtEnd(t, func() error {
		if t.Failed() {
			distributed.Logs(os.Stderr)
		}
		return distributed.Stop(context.WithoutCancel(ctx))
	})
	client, err := e2e.OpenClient(distributed.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	return distributed, client
}
