package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
)

const (
	// accessMaxAge is how long after it was asked for the answer may be used that an
	// account may act through an application. A change is felt within 100 ms on every
	// replica: the other half is for the application service, whose own cache waits for
	// a notification of PostgreSQL.
	accessMaxAge = 50 * time.Millisecond
	// accessCacheSize is in answers, some 500 bytes each.
	accessCacheSize = 16384
)

// accesses are the answers of the application service that accounts may act. Nothing
// has to invalidate them, so that no lost event and no cut connection makes one last
// longer. A refusal is not kept.
type accesses = *cache.Cache[applicationapi.CheckAccess, directoryapi.Account]

func newAccessCache(now func() time.Time) accesses {
	return cache.New(cache.Config[applicationapi.CheckAccess, directoryapi.Account]{
		Name: "oauth.accesses", Size: accessCacheSize, MaxAge: accessMaxAge, Now: now,
	})
}

// checkAccess asks the application service whether an account may act.
func (s *Service) checkAccess(ctx context.Context, asked applicationapi.CheckAccess) (directoryapi.Account, error) {
	return s.peers.Application.CheckAccess(ctx, asked)
}

// recentAccess is checkAccess as it was at most 50 ms ago or, where the services run
// apart, with an answer of at most accessMaxAge ago, which saves two of the four hops of
// a validation. A client sees its own changes at once: the gateway marks the requests
// that follow them. No two requests share a call, so that none waits for one that began
// before it.
func (s *Service) recentAccess(ctx context.Context, asked applicationapi.CheckAccess) (directoryapi.Account, error) {
	if caller.Changed(ctx) {
		return s.checkAccess(ctx, asked)
	}
	asked.Recent = true
	if !s.peers.Remote {
		return s.checkAccess(ctx, asked)
	}
	if account, ok := s.accesses.Peek(asked); ok {
		return account, nil
	}
	return s.accesses.Refresh(ctx, asked, func(ctx context.Context) (directoryapi.Account, error) { return s.checkAccess(ctx, asked) })
}
