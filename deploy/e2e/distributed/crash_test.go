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

	// mailLimit bounds the wait for mails after a crash. A mail in the hands of a
	// sender that was killed stays there until its lease ends.
	mailLimit = 3 * time.Minute
)

func TestAKilledReplicaLosesNoRegistrationAndNoMail(t *testing.T) {
	for _, service := range []string{"gateway", "directory", "application", "notification"} {
		for i := range 2 {
			victim := deployment.Replica(service, i)
			t.Run(victim.Name, func(t *testing.T) {
				whileRegistering(t, victim, func(load *e2e.Load) { load.AwaitMore(t, 20, registerLimit) })
			})
		}
	}
}

func TestABrokerThatIsKilledLosesNoRegistrationAndNoMail(t *testing.T) {
	// Registrations go on without the broker, as many as one likes.
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

// whileRegistering kills a process in the middle of registrations, does what the test
// wants to see while it is away, lets it come back with the same data, and holds the
// service to its promises.
func whileRegistering(t *testing.T, victim *harness.Daemon, away func(*e2e.Load)) {
	t.Helper()
	fixture := client.NewVerificationFixture(t)
	load := client.StartRegistrations(t, fixture.Application.Link(t, "accounts"), 4)
	load.AwaitMore(t, 20, registerLimit)
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	back := sync.OnceValue(func() error { return victim.Start(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() { // the next test needs it, whatever became of this one
		if err := back(); err != nil {
			t.Error(err)
		}
	})
	away(load)
	if err := back(); err != nil {
		t.Fatal(err)
	}
	load.AwaitMore(t, 20, registerLimit)
	client.CheckAcknowledged(t, fixture.Directory, load.StopAfterCrash(t), mailLimit)
}
