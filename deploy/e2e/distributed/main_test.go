package distributed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const (
	// startLimit bounds building and starting everything, on a machine that
	// has nothing in its build cache.
	startLimit = 10 * time.Minute

	// mailTimeout is short: a mail that was on its way when its sender was
	// killed is taken up again after twice this.
	mailTimeout = "DOORWARD_MAIL_TIMEOUT=5s"
)

// All tests share one deployment and heal what they break.
var (
	deployment *harness.Distributed
	client     *e2e.Client
)

func TestMain(m *testing.M) {
	harness.Main(func(dir string) (int, error) { return run(m, dir) })
}

func run(m *testing.M, dir string) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	config := harness.Config{Dir: filepath.Join(dir, "deployment"), OwnServers: true, Settings: []string{mailTimeout}}
	if deployment, err = harness.StartDistributed(ctx, config); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, deployment.Stop(context.Background())) }()
	for _, step := range deployment.StartSteps() {
		fmt.Printf("started %s in %s\n", step.Name, step.Took)
	}
	if client, err = e2e.OpenClient(deployment.KeyFile()); err != nil {
		return 1, err
	}
	if status = m.Run(); status != 0 {
		deployment.Logs(os.Stderr)
	}
	return status, nil
}
