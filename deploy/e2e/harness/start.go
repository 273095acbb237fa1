package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// startLimit bounds the build and the start of a deployment, on a machine that has nothing in
// its build cache.
const startLimit = 10 * time.Minute

// Start starts a deployment by the name of its mode: standalone (also ""), distributed,
// chart (distributed, with the configuration that the Helm chart renders), or shards
// (distributed, with the tenant in a second database and TLS between the processes).
func Start(ctx context.Context, mode string, config Config) (Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	switch mode {
	case "", "standalone":
		return StartStandalone(ctx, config)
	case "distributed", "chart", "shards":
		config.Chart, config.Shards = mode == "chart", mode == "shards"
		config.InternalTLS = config.Shards
		distributed, err := StartDistributed(ctx, config)
		if err != nil || !config.Shards {
			return distributed, err
		}
		if err := distributed.MoveTenant(ctx, Shard); err != nil {
			return nil, errors.Join(err, distributed.Stop(context.WithoutCancel(ctx)))
		}
		return distributed, nil
	default:
		return nil, fmt.Errorf("the deployment mode is %q; it can be standalone, distributed, chart or shards", mode)
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
