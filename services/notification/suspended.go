package notification

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/notification/store"
)

// The deliveries of a suspended tenant wait, and are sent when it is resumed. Those that are a day old are
// cancelled: their links and codes have ended, or nobody waits for them any more.
const (
	// heldInterval is how long the deliveries of a tenant that is suspended are not looked at again.
	heldInterval = 10 * time.Second
	maxHeldAge   = 24 * time.Hour
)

// heldTenants are the tenants that were suspended when a worker of this process last looked at a delivery of theirs.
type heldTenants struct {
	mu    sync.Mutex
	until map[id.ID]time.Time
}

// add keeps workers from the deliveries of a tenant until a time.
func (h *heldTenants) add(tenant id.ID, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[id.ID]time.Time{}
	}
	h.until[tenant] = until
}

// at returns the tenants whose deliveries are not to be looked at now.
func (h *heldTenants) at(now time.Time) (tenants []id.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for tenant, until := range h.until {
		if now.Before(until) {
			tenants = append(tenants, tenant)
		} else {
			delete(h.until, tenant)
		}
	}
	return tenants
}

// hold postpones a delivery of a suspended tenant, which counts as no failure, and cancels those that have waited for
// a day.
func (s *Service) hold(ctx context.Context, d store.Delivery) sendResult {
	now := s.now()
	next := now.Add(heldInterval)
	d.LastError = "the tenant is suspended"
	s.held.add(d.TenantID, next)
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.PostponeDelivery(ctx, d, next); err != nil {
			return err
		}
		return tx.CancelHeldDeliveries(ctx, d.TenantID, now.Add(-maxHeldAge), now)
	})
	if err != nil { // its lease runs out
		slog.WarnContext(ctx, "holding a delivery of a suspended tenant failed, retrying", "delivery", d.ID.String(),
			"error", err.Error())
	}
	return resultHeld
}
