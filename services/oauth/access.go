package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/id"
)

const (
	// unconfirmedAccessMaxAge is how long a cached answer that an account may act is used
	// without asking the changefeeds whether it is still true. A change takes effect within
	// 100 ms on every replica: 50 ms here, and 50 ms in the application and the directory
	// service, whose own caches may be that old.
	unconfirmedAccessMaxAge = 50 * time.Millisecond
	// confirmedAccessMaxAge is how long a cached answer is used while the changefeeds report
	// no change of what it depends on.
	confirmedAccessMaxAge = time.Minute
	// accessCacheSize counts answers, and the resources that they depend on. An answer for an
	// application without organizations counts as four, and takes some 2 kB.
	accessCacheSize = 1 << 16
)

// accessCache caches the answers of the application service whether accounts may act
// through applications (CheckAccess). An answer is used for unconfirmedAccessMaxAge, and
// for up to confirmedAccessMaxAge while the changefeeds of the application and the
// directory service report no change of what it depends on (package changefeed): one poll
// every 50 ms takes the place of a call for each token. While the state of the changefeeds
// is unknown, as with a broken connection, each validation makes the call. A refusal is
// not cached.
type accessCache struct {
	application applicationapi.API
	now         func() time.Time
	answers     *cache.Cache[accessKey, accessAnswer]
	changes     *changefeed.Follower
}

// accessKey is the cache key of an answer: an account, as resource, with an application
// and an organization. With tenant and resource alone it is a resource that answers depend
// on, such as a directory.
type accessKey struct{ tenant, resource, application, organization id.ID }

type accessAnswer struct {
	applicationapi.Access
	requestedAt      time.Time
	refusedCachingAt time.Time // when the application service last said that the answer may not be cached
}

func (a accessAnswer) dependsOn() []accessKey {
	keys := make([]accessKey, len(a.DependsOn))
	for i, resource := range a.DependsOn {
		keys[i] = accessKey{tenant: a.TenantID, resource: resource}
	}
	return keys
}

func newAccessCache(peers Peers, now func() time.Time) *accessCache {
	answers := cache.New(cache.Config[accessKey, accessAnswer]{
		Name: "oauth.accesses", Size: accessCacheSize, MaxAge: confirmedAccessMaxAge, Now: now,
		DependsOn: accessAnswer.dependsOn, Weight: func(a accessAnswer) int { return 1 + len(a.DependsOn) },
	})
	return &accessCache{application: peers.Application, now: now, answers: answers, changes: changefeed.NewFollower(changefeed.FollowerConfig{
		Name: "oauth.accesses", MaxAge: unconfirmedAccessMaxAge, Now: now,
		Sources: []changefeed.Source{
			func(ctx context.Context, after changefeed.Position) (changefeed.Page, error) {
				return peers.Application.AccessChanges(ctx, after)
			},
			func(ctx context.Context, after changefeed.Position) (changefeed.Page, error) {
				return peers.Directory.AccessChanges(ctx, after)
			},
		},
		Invalidate:    func(changed id.Ref) { answers.Invalidate(accessKey{tenant: changed.Tenant, resource: changed.ID}) },
		InvalidateAll: answers.Clear,
	})}
}

// check returns the account if it may act through the application, as of at most 100 ms
// ago. Requests for the same account do not share one call: a shared call could have begun
// before a change that the later request has to see.
func (c *accessCache) check(ctx context.Context, request applicationapi.CheckAccess) (directoryapi.Account, error) {
	key := accessKey{request.Tenant, request.Account, request.Application, request.Organization}
	current := c.changes.Current(ctx)
	found, ok := c.answers.PeekCurrent(ctx, key, func(a accessAnswer) bool {
		return current && len(a.DependsOn) > 0 || c.now().Sub(a.requestedAt) < unconfirmedAccessMaxAge
	})
	if ok {
		return found.Account, nil
	}
	// An answer is cached from its second use on. An answer that may be cached (Keep) is read
	// from the databases, which costs more than one from the caches of the services (Recent).
	request.WithDependencies = current && !found.requestedAt.IsZero() && c.now().Sub(found.refusedCachingAt) >= confirmedAccessMaxAge
	request.Recent = !request.WithDependencies
	answer, err := c.answers.Refresh(ctx, key, func(ctx context.Context) (answer accessAnswer, err error) {
		answer.requestedAt = c.now()
		answer.Access, err = c.application.CheckAccess(ctx, request)
		if answer.refusedCachingAt = found.refusedCachingAt; request.WithDependencies && len(answer.DependsOn) == 0 {
			answer.refusedCachingAt = answer.requestedAt
		}
		return answer, err
	})
	return answer.Account, err
}

// checkAccess returns the account if it may act through the application now. The rules
// are in services/application/access.go.
func (s *Service) checkAccess(ctx context.Context, request applicationapi.CheckAccess) (directoryapi.Account, error) {
	access, err := s.peers.Application.CheckAccess(ctx, request)
	return access.Account, err
}

// checkRecentAccess is checkAccess as of at most 50 ms ago or, in the distributed shape, from
// accessCache, which saves the call to the application service and the call that this makes to the
// directory service. A client sees its own changes at once: the gateway marks the requests that
// follow a change (caller.Changed).
// The request must be Brief: cached answers have no other members of the account.
func (s *Service) checkRecentAccess(ctx context.Context, request applicationapi.CheckAccess) (directoryapi.Account, error) {
	switch {
	case caller.Changed(ctx):
		return s.checkAccess(ctx, request)
	case s.peers.Remote:
		return s.accessCache.check(ctx, request)
	}
	request.Recent = true
	return s.checkAccess(ctx, request)
}
