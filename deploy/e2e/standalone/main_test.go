package standalone_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const (
	// buildLimit bounds a build that finds nothing in its cache.
	buildLimit = 10 * time.Minute

	// mailLimit bounds the wait for mails after a crash.
	mailLimit = 2 * time.Minute

	// mailTimeout is short: a mail that was on its way when the process was
	// killed is taken up again after twice this.
	mailTimeout = "DOORWARD_MAIL_TIMEOUT=5s"
)

// bin holds the binary; folder is where every test puts its processes.
var bin, folder string

func TestMain(m *testing.M) {
	harness.Main(func(dir string) (int, error) { return run(m, dir) })
}

func run(m *testing.M, dir string) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	folder = dir
	if bin, err = harness.Build(ctx, dir, harness.StandalonePackages...); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// start runs a standalone of the test's own, with a client for it; env is added
// to its environment. When the test ends it is stopped, and the end of its log
// shown if the test failed.
func start(t *testing.T, name string, env ...string) (*harness.Standalone, *e2e.Client) {
	t.Helper()
	dir := filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-")+"-"+name)
	deployment, err := harness.StartStandalone(t.Context(), harness.Config{Dir: dir, Bin: bin, Settings: []string{mailTimeout}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			deployment.Logs(t.Output())
		}
		began := time.Now()
		if err := deployment.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		t.Logf("%s stopped after %s", name, time.Since(began).Round(time.Millisecond))
	})
	return deployment, clientOf(t, deployment)
}

// clientOf reads the key that the process has written.
func clientOf(t *testing.T, deployment *harness.Standalone) *e2e.Client {
	t.Helper()
	client, err := e2e.OpenClient(deployment.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.HTTP.CloseIdleConnections)
	return client
}
