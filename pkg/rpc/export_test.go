package rpc

import (
	"context"
	"time"
)

// LookupInterval is how old the addresses of a name may be.
const LookupInterval = lookupInterval

// Resolve makes an upstream look its names up with lookup, by the clock now.
func (u *Upstream) Resolve(lookup func(ctx context.Context, name string) ([]string, error), now func() time.Time) {
	u.resolver.lookup, u.resolver.now = lookup, now
}
