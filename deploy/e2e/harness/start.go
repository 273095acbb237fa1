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

// startLimit bounds building and starting a shape, on a machine that has nothing in
// its build cache.
const startLimit = 10 * time.Minute

// Start starts a shape by its name: standalone (also ""), distributed, chart, the
// distributed shape as the chart configures it, or shards, that with the tenant in a
// second database and TLS between the processes.
func Start(ctx context.Context, name string, config Config) (Shape, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	switch name {
	case "", "standalone":
		return StartStandalone(ctx, config)
	case "distributed", "chart", "shards":
		config.Chart, config.Shards = name == "chart", name == "shards"
		config.InternalTLS = config.Shards
		shape, err := StartDistributed(ctx, config)
		if err != nil || !config.Shards {
			return shape, err
		}
		if err := shape.MoveTenant(ctx, Shard); err != nil {
			return nil, errors.Join(err, shape.Stop(context.WithoutCancel(ctx)))
		}
		return shape, nil
	default:
		return nil, fmt.Errorf("the shape is %q; it can be standalone, distributed, chart or shards", name)
	}
}

// AtEnd does something when the test ends, and fails it on an error.
func AtEnd(t testing.TB, end func() error) {
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestFolder is a Folder for one test, which is kept when the test fails.
func TestFolder(t testing.TB) string {
	t.Helper()
	dir, remove, err := Folder()
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

// TestDistributed starts the distributed shape for one test.
func TestDistributed(t testing.TB, config Config) (*Distributed, *e2e.Client) {
	t.Helper()
	ctx := t.Context()
	shape, err := StartDistributed(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	AtEnd(t, func() error {
		if t.Failed() {
			shape.Logs(os.Stderr)
		}
		return shape.Stop(context.WithoutCancel(ctx))
	})
	client, err := e2e.OpenClient(shape.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	return shape, client
}
