package caller

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/doorward/doorward/pkg/id"
)

// EndedHeader is the header of a service's answer that names the resources whose access the request has
// ended, or begun: an account whose status or password was changed, a token that was revoked. The gateway
// keeps it from the client, and names the resources with the next requests of their tenant (Caller.Ended):
// for a moment a service may still have rows, or answers of other services, from before the change.
const EndedHeader = "Doorward-Ended"

// maxEnded is how many resources a request names. More count as all of the tenant.
const maxEnded = 32

const idSize = len(id.ID{})

// IDs is a set of ids, 16 bytes each, which is comparable. A set with the zero id has all ids.
type IDs string

// All returns the ids of the set.
func (s IDs) All() iter.Seq[id.ID] {
	return func(yield func(id.ID) bool) {
		for ; len(s) >= idSize; s = s[idSize:] {
			if !yield(id.ID([]byte(s[:idSize]))) {
				return
			}
		}
	}
}

// Has reports whether the set has an id.
func (s IDs) Has(one id.ID) bool {
	for member := range s.All() {
		if member == one || member.IsZero() {
			return true
		}
	}
	return false
}

// With returns the set with another id, or the set of all ids if that are too many.
func (s IDs) With(one id.ID) IDs {
	switch {
	case s.Has(one):
		return s
	case len(s) == maxEnded*idSize:
		one, s = id.ID{}, ""
	}
	return s + IDs(one[:])
}

// Ended reports whether a request of the same tenant has just ended one of the resources. Then nothing
// that a service remembers of them may be used.
func Ended(ctx context.Context, resources ...id.ID) bool {
	ended := From(ctx).Ended
	if ended == "" {
		return false
	}
	for _, resource := range resources {
		if ended.Has(resource) {
			return true
		}
	}
	return false
}

// Endings are the resources that a request has ended, by tenant.
type Endings struct {
	mu       sync.Mutex
	byTenant map[id.ID]IDs
}

type endingsKey struct{}

// CollectEndings returns ctx with the Endings that End adds to.
func CollectEndings(ctx context.Context) (context.Context, *Endings) {
	e := &Endings{}
	return context.WithValue(ctx, endingsKey{}, e), e
}

// End records that the request of ctx has ended a resource, which is of the tenant of the request if
// tenant is zero.
func End(ctx context.Context, tenant, resource id.ID) {
	e, ok := ctx.Value(endingsKey{}).(*Endings)
	if !ok {
		return
	}
	if tenant.IsZero() {
		tenant = From(ctx).Tenant
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byTenant == nil {
		e.byTenant = map[id.ID]IDs{}
	}
	e.byTenant[tenant] = e.byTenant[tenant].With(resource)
}

// Header returns the value of EndedHeader; empty: nothing has ended.
func (e *Endings) Header() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var values []string
	for tenant, ended := range e.byTenant {
		values = append(values, encoding.EncodeToString(append(tenant[:], ended...)))
	}
	return strings.Join(values, ",")
}

// ParseEnded returns what a value of EndedHeader names: resources by tenant.
func ParseEnded(header []byte) map[id.ID]IDs {
	if len(header) == 0 {
		return nil
	}
	byTenant := map[id.ID]IDs{}
	for value := range strings.SplitSeq(string(header), ",") {
		if raw, err := encoding.DecodeString(value); err == nil && len(raw) > idSize && len(raw)%idSize == 0 {
			byTenant[id.ID(raw[:idSize])] = IDs(raw[idSize:])
		}
	}
	return byTenant
}
