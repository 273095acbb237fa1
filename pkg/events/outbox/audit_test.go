package outbox_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry/telemetrytest"
)

func TestEventsAreAuditedOnceTheyAreCommitted(t *testing.T) {
	b := newBench(t)
	log := telemetrytest.NewLog(t)
	account := id.New(time.Now())
	emit := func(end error) error {
		return b.outbox.InTx(t.Context(), func(tx *outbox.Tx) error {
			return errors.Join(tx.Emit(t.Context(), events.AccountDeleted{Tenant: b.tenant, Account: account}), end)
		})
	}
	failed := errors.New("it failed")
	if err := emit(failed); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if found := log.Audited(t, "event"); found != nil {
		t.Errorf("what was rolled back is audited: %v", found)
	}
	if err := emit(nil); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"event": "AccountDeleted", "id": account.String(), "tenant": b.tenant.String()}}
	if found := log.Audited(t, "event"); !reflect.DeepEqual(found, want) {
		t.Errorf("audited is %v, want %v", found, want)
	}
}
