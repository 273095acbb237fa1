package standalone_test

import (
	"testing"
	"time"
)

func TestAKillLosesNoRegistrationAndNoMail(t *testing.T) {
	deployment, client := start(t, "killed")
	t.Logf("ready %s after the first start", deployment.Boot.Round(time.Millisecond))
	fixture := client.NewVerificationFixture(t)
	load := client.StartRegistrations(t, fixture.Application.Link(t, "accounts"), 4)
	for range 3 {
		load.AwaitMore(t, 25, time.Minute)
		if err := deployment.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := deployment.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("ready %s after kill -9", deployment.Boot.Round(time.Millisecond))
	}
	load.AwaitMore(t, 25, time.Minute)
	client.CheckAcknowledged(t, fixture.Directory, load.StopAfterCrash(t), mailLimit)
}
