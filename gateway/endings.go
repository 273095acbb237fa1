package gateway

import (
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

// endingsDuration is how long after a change the requests of its tenant name what it has ended
// (caller.Ended): as long as a service may answer from before it.
const endingsDuration = 100 * time.Millisecond

// endings are the resources that requests through this gateway have just ended, by tenant.
type endings struct {
	now func() time.Time

	mu       sync.Mutex
	lastAt   time.Time
	byTenant *lru.Cache[id.ID, []ending]
}

type ending struct {
	ids caller.IDs
	at  time.Time
}

func newEndings(now func() time.Time) endings {
	byTenant, _ := lru.New[id.ID, []ending](maxKeys) // fails only for a size below one
	return endings{now: now, byTenant: byTenant}
}

func (e *endings) add(tenant id.ID, ids caller.IDs) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastAt = e.now()
	e.byTenant.Add(tenant, append(e.recent(tenant), ending{ids, e.lastAt}))
}

// of returns what was just ended in a tenant.
func (e *endings) of(tenant id.ID) (all caller.IDs) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isRecent(e.lastAt) {
		return ""
	}
	for _, one := range e.recent(tenant) {
		for resource := range one.ids.All() {
			all = all.With(resource)
		}
	}
	return all
}

// any reports whether anything was just ended, in any tenant.
func (e *endings) any() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isRecent(e.lastAt)
}

func (e *endings) recent(tenant id.ID) []ending {
	list, _ := e.byTenant.Get(tenant)
	return slices.DeleteFunc(slices.Clone(list), func(one ending) bool { return !e.isRecent(one.at) })
}

func (e *endings) isRecent(at time.Time) bool { return e.now().Sub(at) < endingsDuration }
