package distributed_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const (
	// registerLimit bounds the wait for a handful of registrations.
	registerLimit = 2 * time.Minute

	// mailLimit bounds the wait for mails after a crash. A mail that a killed sender was
	// sending is sent again when its lease ends.
	mailLimit = 3 * time.Minute
)

func TestAKilledReplicaLosesNoRegistrationAndNoMail(t *testing.T) {
	for _, service := range []string{"gateway", "directory", "application", "notification"} {
		for i := range 2 {
			process := deployment.Replica(service, i)
			t.Run(process.Name, func(t *testing.T) {
				whileRegistering(t, process, func(load *e2e.Load) { load.AwaitMore(t, 20, registerLimit) })
			})
		}
	}
}

func TestABrokerThatIsKilledLosesNoRegistrationAndNoMail(t *testing.T) {
	// Registrations continue without the broker.
	whileRegistering(t, deployment.Kafka, func(load *e2e.Load) { load.AwaitMore(t, 60, registerLimit) })
}

func TestWithoutRedisEverythingStillWorks(t *testing.T) {
	whileRegistering(t, deployment.Redis, func(load *e2e.Load) {
		load.AwaitMore(t, 20, registerLimit)
		fixture := client.NewFixture(t)
		account := client.Register(t, fixture.Application.Link(t, "accounts"))
		client.Want(t, http.StatusOK, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
	})
}

// whileRegistering kills a process in the middle of registrations, calls whileDown while
// the process is down, starts the process again with the same data, and checks that no
// acknowledged registration is lost.
func whileRegistering(t *testing.T, process *harness.Daemon, whileDown func(*e2e.Load)) {
	t.Helper()
	fixture := client.NewVerificationFixture(t)
	load := client.StartRegistrations(t, fixture.Application.Link(t, "accounts"), 4)
	load.AwaitMore(t, 20, registerLimit)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	back := sync.OnceValue(func() error { return process.Start(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() { // the next test needs it, whatever became of this one
		if err := back(); err != nil {
			t.Error(err)
		}
	})
	whileDown(load)
	if err := back(); err != nil {
		t.Fatal(err)
	}
	load.AwaitMore(t, 20, registerLimit)
	client.CheckAcknowledged(t, fixture.Directory, load.StopAfterCrash(t), mailLimit)
}
