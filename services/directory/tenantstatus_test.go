package directory_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory/store"
)

// A gate beside another process of the service sees within 100 ms that a tenant was suspended, and resumed.
func TestTheGateFollowsTheStatusOfATenant(t *testing.T) {
	t.Parallel()
	_, db, ring, tenant := sealing(t)
	replica := pg.FromPool(db.Pool)
	elsewhere := newService(store.New(replica, time.Now), ring, cheap)
	worktest.Start(t, replica.Listen)
	gate := directoryapi.NewTenantGate("test.tenants", elsewhere, time.Now)
	writer := store.New(pg.FromPool(db.Pool), time.Now)
	const rounds = 20
	for round := range rounds {
		for _, status := range []string{directoryapi.Suspended, directoryapi.Enabled} {
			if err := writer.Tx(t.Context(), func(tx *store.Tx) error {
				return tx.SetTenantStatus(t.Context(), directoryapi.Tenant{ID: tenant, Status: status})
			}); err != nil {
				t.Fatal(err)
			}
			since := time.Now()
			for (gate.Check(t.Context(), tenant) != nil) != (status == directoryapi.Suspended) {
				if late := time.Since(since); late > time.Second { // 100 ms, and what a busy machine adds
					t.Fatalf("round %d: after %s the gate does not know that the tenant is %s", round, late, status)
				}
			}
		}
	}
}
