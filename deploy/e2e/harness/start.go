package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// startLimit bounds building and starting a shape, on a machine that has nothing in
// its build cache.
const startLimit = 10 * time.Minute

// Start builds and starts a shape by its name, in a folder below dir: standalone
// (also ""), distributed, chart, the distributed shape as the chart configures it, or
// shards, that with the tenant in a second database and TLS between the processes.
func Start(name, dir string, config Config) (_ Shape, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	config.Dir = filepath.Join(dir, cmp.Or(name, "standalone"))
	switch name {
	case "", "standalone":
		if config.Bin, err = Build(ctx, dir, StandalonePackages...); err != nil {
			return nil, err
		}
		return StartStandalone(ctx, config)
	case "distributed", "chart", "shards":
		packages := slices.Concat(DistributedPackages, StandalonePackages) // doorward migrate
		if config.Bin, err = Build(ctx, dir, packages...); err != nil {
			return nil, err
		}
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

// TestFolder is a Folder for one test, which is kept when the test fails.
func TestFolder(t testing.TB) string {
	t.Helper()
	dir, remove, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs and data are kept in %s", dir)
		} else if err := remove(); err != nil {
			t.Error(err)
		}
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
	t.Cleanup(func() {
		if t.Failed() {
			shape.Logs(os.Stderr)
		}
		if err := shape.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	client, err := e2e.OpenClient(shape.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	return shape, client
}
