package notification

import (
	"errors"
	"sync"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/notification/store"
)

// errServerInUse postpones a delivery whose servers are in use, by a tenantLimit.
var errServerInUse = errors.New("its server is in use by another worker")

// tenantLimit limits the workers of this process that send to servers of tenants (bulkhead), so that slow servers of
// one tenant do not delay the deliveries of others.
type tenantLimit struct {
	each int // workers for one tenant
	all  int // workers for all tenants; 0: as many as there are

	mu      sync.Mutex
	workers map[id.ID]int
	used    int
}

func newTenantLimit(each, all int) *tenantLimit {
	return &tenantLimit{each: each, all: all, workers: map[id.ID]int{}}
}

// acquire takes a worker for a tenant, until release. It returns false when the delivery has to wait.
func (l *tenantLimit) acquire(tenant id.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.workers[tenant] >= l.each || l.isFull() {
		return false
	}
	l.workers[tenant]++
	l.used++
	return true
}

func (l *tenantLimit) isFull() bool { return l.all > 0 && l.used >= l.all }

// release gives a worker back.
func (l *tenantLimit) release(tenant id.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	if l.workers[tenant]--; l.workers[tenant] == 0 {
		delete(l.workers, tenant)
	}
}

// skip returns which deliveries a worker should not lease now, because acquire would be false for them.
func (l *tenantLimit) skip() store.Skip {
	l.mu.Lock()
	defer l.mu.Unlock()
	skipped := store.Skip{Tenants: []id.ID{}, TenantServer: l.isFull()}
	for tenant, workers := range l.workers {
		if workers >= l.each {
			skipped.Tenants = append(skipped.Tenants, tenant)
		}
	}
	return skipped
}
