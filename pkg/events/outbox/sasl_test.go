package outbox_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/worktest"
)

func TestEventsTravelWithAPassword(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.startBroker(kfake.EnableSASL(), kfake.Superuser(mechanism, "doorward", "Changeme1!"))
			b.cfg.Username, b.cfg.Password, b.cfg.Mechanism = "doorward", "Changeme1!", mechanism
			accounts := b.emit(2)
			worktest.Start(b, b.outbox.Relay(b.cfg))
			worktest.Start(b, b.consumer())
			b.want(accounts)
		})
	}
}

func TestAnUnknownMechanismStopsTheWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.Username, b.cfg.Mechanism = "doorward", "SCRAM-SHA-1"
	if err := b.outbox.Relay(b.cfg)(t.Context()); err == nil {
		t.Error("the relay starts")
	}
	if err := b.consumer()(t.Context()); err == nil {
		t.Error("the consumer starts")
	}
}
