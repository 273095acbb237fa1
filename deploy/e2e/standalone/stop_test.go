package standalone_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestAStopIsCleanAndKeepsEverything(t *testing.T) {
	deployment, client := start(t, "stopped")
	before := client.Key
	fixture := client.NewVerificationFixture(t)
	other := client.NewFixture(t)
	account := client.Register(t, other.Application.Link(t, "accounts"))
	login := e2e.Login(other.Application, account.Text("email"), e2e.Password)
	client.Want(t, http.StatusOK, login)

	// It is stopped while it has work: what was acknowledged counts.
	load := client.StartRegistrations(t, fixture.Application.Link(t, "accounts"), 4)
	load.AwaitMore(t, 20, time.Minute)
	began := time.Now()
	if err := deployment.Stop(t.Context()); err != nil { // status 0, and no process left
		t.Fatal(err)
	}
	t.Logf("stopped under load after %s", time.Since(began).Round(time.Millisecond))
	acknowledged := load.StopAfterCrash(t)

	if err := deployment.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready %s after the second start", deployment.Boot.Round(time.Millisecond))
	after := clientOf(t, deployment)
	if after.Key != before {
		t.Errorf("the key was %s at %s and is %s at %s", before.ID, before.BaseURL, after.Key.ID, after.Key.BaseURL)
	}
	after.Want(t, http.StatusOK, login)
	after.CheckAcknowledged(t, fixture.Directory, acknowledged, mailLimit)
}
