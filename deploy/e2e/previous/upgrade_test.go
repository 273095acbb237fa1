package previous

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
)

// commit is what make upgrade comes from before the first release; release has the version of the newest one.
//
//go:embed commit
var commit string

// previous returns what the release before is built from: a folder with its sources, a commit or a tag.
func previous(root string) string {
	if chosen := os.Getenv("DOORWARD_PREVIOUS"); chosen != "" {
		return chosen
	}
	version, err := os.ReadFile(filepath.Join(root, "deploy/e2e/previous/release"))
	if err != nil {
		return strings.TrimSpace(commit) // there is no release yet
	}
	return "v" + strings.TrimSpace(string(version))
}

const (
	buildLimit = 20 * time.Minute
	stepLimit  = 5 * time.Minute
	mailLimit  = 3 * time.Minute
)

// step is how many registrations happen in each state of the deployment.
const step = 20

func TestARollingUpgradeFailsNoRequest(t *testing.T) {
	dir := harness.TestFolder(t)
	ctx := t.Context()
	before, now := build(t, dir)
	deployed, client := harness.TestDistributed(t, harness.Config{
		Dir: filepath.Join(dir, "deployment"), Bin: before, OwnServers: true, Settings: []string{"DOORWARD_DRAIN=2s"},
	})
	client = client.Unchecked() // the description is that of this release, and most answers are of the one before
	fixture := client.NewVerificationFixture(t)
	load := client.StartUsers(ctx, fixture, 4)
	during := func(state string, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); err != nil {
			t.Fatalf("%s: %v\n%s", state, err, load)
		}
		load.AwaitMore(t, step, stepLimit)
		t.Logf("%-45s %4.0f s  %s", state, time.Since(began).Seconds(), load)
	}
	replace := func(replica int, bin string) func() error {
		return func() error {
			for _, service := range slices.Concat(deployment.Services, []string{"gateway"}) {
				if err := deployed.Replace(ctx, service, replica, bin); err != nil {
					return err
				}
			}
			return nil
		}
	}
	during("the release before", func() error { return nil })
	during("its processes on the new schema", func() error {
		migrate := exec.CommandContext(ctx, filepath.Join(now, "doorward"), "migrate")
		migrate.Env = deployed.Settings()
		out, err := migrate.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
	during("the second replica of each is this release", replace(1, now))
	during("both replicas of each are this release", replace(0, now))
	during("the first replica of each is the one before", replace(0, before))
	during("all are the release before again", replace(1, before))
	client.CheckAcknowledged(t, fixture.Directory, load.StopWithoutFailure(t), mailLimit)
}

// build builds the release before and this one.
func build(t *testing.T, dir string) (before, now string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	from, sources := previous(root), filepath.Join(dir, "before")
	unpack := exec.CommandContext(ctx, "bash", "-c",
		`set -o pipefail; mkdir -p "$3" && if [[ -d $2 ]]; then tar -c -C "$2" .; else git -C "$1" archive "$2"; fi | tar -x -C "$3"`,
		"bash", root, from, sources)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack %s, which a shallow clone lacks: %v\n%s", from, err, out)
	}
	before, err = harness.BuildIn(ctx, sources, sources, harness.DistributedPackages...)
	packages := slices.Concat(harness.DistributedPackages, harness.StandalonePackages)
	now, failure := harness.BuildIn(ctx, root, filepath.Join(dir, "now"), packages...)
	if err := errors.Join(err, failure); err != nil {
		t.Fatal(err)
	}
	t.Logf("from %s to the sources in %s", from, root)
	return before, now
}
