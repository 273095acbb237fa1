package notification

import (
	"context"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/mailtest"
)

func TestAMasterKeyCanBeReplacedAndThenDropped(t *testing.T) {
	first, next := secure.NewMasterKey("k1"), secure.NewMasterKey("k2")
	ring := func(keys secure.Secret) *secure.Keyring {
		r, err := secure.ParseKeyring(keys)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	o := newOffice(t, mailtest.Behaviour{})
	o.ring = ring(first)
	o.relay(o.service(), mailtest.Behaviour{})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reseal.Worker(o.db, ring(next+","+first), Sealed...)(ctx) }()
	o.ring = ring(next)
	later := o.service()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(30 * time.Second); ; {
		if to, err := later.reached(o.health()); err == nil {
			if to.Password != password {
				t.Errorf("the password became %q", to.Password.Reveal())
			}
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the password stays under the former key")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
