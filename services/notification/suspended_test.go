package notification

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

func TestTheMailsOfASuspendedTenantWait(t *testing.T) {
	t.Parallel()
	o := officeWithHeldMails(t)
	for _, r := range o.rows() {
		if r.State != store.Pending || r.Failures != 0 || !r.HasToken {
			t.Errorf("a held delivery is %+v", r)
		}
	}
	o.suspended.Store(false)
	o.turn(heldInterval)
	o.await("sent", all(store.Sent))
	if n := len(o.mail.Taken()); n != 3 {
		t.Errorf("%d mails came after the tenant was resumed, want 3", n)
	}
}

func TestAMailThatIsHeldForADayIsCancelled(t *testing.T) {
	t.Parallel()
	o := officeWithHeldMails(t)
	o.turn(maxHeldAge - time.Second)
	isAhead := func(r row) bool { return r.NextTryAt.After(o.now()) }
	if r := o.await("held again", func(rows []row) bool { return held(rows) && slices.ContainsFunc(rows, isAhead) }); r[0].State != store.Pending {
		t.Errorf("a delivery of less than a day is %+v", r[0])
	}
	o.turn(heldInterval)
	for _, r := range o.await("cancelled", all(store.Cancelled)) {
		if r.HasToken || r.FinishedAt == nil {
			t.Errorf("what is left of the delivery is %+v", r)
		}
	}
	if n := len(o.mail.Taken()); n != 0 {
		t.Errorf("%d mails of a suspended tenant were sent", n)
	}
}

// officeWithHeldMails has three mails of a suspended tenant.
func officeWithHeldMails(t *testing.T) *office {
	t.Helper()
	o := newOffice(t, mailtest.Behaviour{})
	o.suspended.Store(true)
	s := o.service(longLease)
	o.run(s)
	o.order(s, 3)
	o.await("held", held)
	return o
}

// longLease keeps a lease while a test moves the clock.
func longLease(cfg *Config) { cfg.LeaseTime = 48 * time.Hour }

// held reports whether a worker has found that the tenant is suspended, and none has a delivery of it any more.
func held(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.LastError != "" }) &&
		!slices.ContainsFunc(rows, func(r row) bool { return r.Leased })
}
