package previous

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
)

// The steps are those of docs/operations.md#rotation-of-the-internal-secret.
func TestRotatingTheInternalSecretFailsNoRequest(t *testing.T) {
	dir := harness.TestFolder(t)
	ctx := t.Context()
	bin, err := harness.Build(ctx, dir, harness.DistributedPackages...)
	if err != nil {
		t.Fatal(err)
	}
	deployed, client := harness.TestDistributed(t, harness.Config{
		Dir: filepath.Join(dir, "deployment"), Bin: bin, OwnServers: true, Settings: []string{"DOORWARD_DRAIN=2s"},
	})
	fixture := client.NewVerificationFixture(t)
	load := client.StartUsers(ctx, fixture, 4)
	first, second := deployed.InternalSecret(), strings.Repeat("0123456789abcdef", 2)
	for _, state := range []struct{ what, secret, accepted string }{
		{"the new secret is accepted", first, second},
		{"the new secret is used", second, first},
		{"the former secret is dropped", second, ""},
	} {
		began := time.Now()
		deployed.SetInternalSecret(state.secret, state.accepted)
		for i := range 2 {
			for _, service := range slices.Concat(deployment.Services, []string{"gateway"}) {
				if err := deployed.Replace(ctx, service, i, bin); err != nil {
					t.Fatalf("%s: %v\n%s", state.what, err, load)
				}
			}
			load.AwaitMore(t, step, stepLimit)
		}
		t.Logf("%-30s %4.0f s  %s", state.what, time.Since(began).Seconds(), load)
	}
	client.CheckAcknowledged(t, fixture.Directory, load.StopWithoutFailure(t), mailLimit)
}
