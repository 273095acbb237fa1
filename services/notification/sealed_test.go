package notification

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/notification/mailtest"
)

func TestAMasterKeyCanBeReplacedAndThenDropped(t *testing.T) {
	t.Parallel()
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

	stop := worktest.Start(t, reseal.Worker(o.db, ring(next+","+first), Sealed...))
	o.ring = ring(next)
	later := o.service()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(30 * time.Second); ; {
		if to, err := later.connectionOf(o.health()); err == nil {
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
}
