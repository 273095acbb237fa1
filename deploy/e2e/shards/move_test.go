package shards

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/pg"
)

const (
	// step is how many registrations happen in each state of the deployment.
	step      = 5
	stepLimit = 3 * time.Minute
	mailLimit = 3 * time.Minute

	// killAfter is when the command has closed the tenant in one service or another.
	killAfter = 300 * time.Millisecond
)

func TestMain(m *testing.M) { harness.Main(func(string) (int, error) { return m.Run(), nil }) }

// The tenant is moved back and forth, and a command that moves it is killed. No request
// fails, no account is lost, and each mail goes out.
func TestATenantIsMovedWhileItIsUsed(t *testing.T) {
	ctx := t.Context()
	deployment, err := harness.Start(ctx, "shards", harness.Config{Dir: harness.TestFolder(t), OwnServers: true})
	if err != nil {
		t.Fatal(err)
	}
	distributed := deployment.(*harness.Distributed)
	t.Cleanup(func() {
		if t.Failed() {
			deployment.Logs(t.Output())
		}
		if err := deployment.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	client, err := e2e.OpenClient(deployment.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	fixture := client.NewVerificationFixture(t)
	load := client.StartUsers(ctx, fixture, 4)
	during := func(state string, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); err != nil {
			t.Fatalf("%s: %v\n%s", state, err, load)
		}
		load.AwaitMore(t, step, stepLimit)
		t.Logf("%-35s %4.0f s  %s", state, time.Since(began).Seconds(), load)
	}
	during("in the second database", func() error { return nil })
	during("moved to the first", func() error { return distributed.MoveTenant(ctx, pg.Main) })
	during("a move killed, and repeated", func() error {
		return errors.Join(killedMove(ctx, distributed, killAfter), distributed.MoveTenant(ctx, harness.Shard))
	})
	client.CheckAcknowledged(t, fixture.Directory, load.StopWithoutFailure(t), mailLimit)
	if err := distributed.CheckShards(ctx); err != nil {
		t.Error(err)
	}
}

// killedMove kills the command that moves the tenant to the second database.
func killedMove(ctx context.Context, deployment *harness.Distributed, after time.Duration) error {
	command, err := deployment.MoveCommand(ctx, harness.Shard)
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	time.AfterFunc(after, func() { _ = command.Process.Kill() }) // which fails for one that has ended
	var ended *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &ended) {
		return err
	}
	return nil
}
