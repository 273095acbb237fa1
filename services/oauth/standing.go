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
	// standingMaxAge is how long after it was asked for the answer may be used that an
	// account may act through an application. A change is felt within 100 ms on every
	// replica: the other half is for the application service, whose own cache waits for
	// a notification of PostgreSQL.
	standingMaxAge = 50 * time.Millisecond
	// standingCacheSize is in answers, some 500 bytes each.
	standingCacheSize = 16384
)

// standings are the answers of the application service that accounts may act. Nothing
// has to invalidate them, so that no lost event and no cut connection makes one last
// longer. A refusal is not kept.
type standings = *cache.Cache[applicationapi.Standing, directoryapi.Account]

func newStandings(now func() time.Time) standings {
	return cache.New(cache.Config[applicationapi.Standing, directoryapi.Account]{
		Name: "oauth.standings", Size: standingCacheSize, MaxAge: standingMaxAge, Now: now,
	})
}

// standing asks the application service whether an account may act.
func (s *Service) standing(ctx context.Context, asked applicationapi.Standing) (directoryapi.Account, error) {
	return s.peers.Application.Standing(ctx, asked)
}

// recentStanding is standing or, where the services run apart, its answer of at most
// standingMaxAge ago, which saves two of the four hops of a validation. A client sees
// its own changes at once: the gateway marks the requests that follow them. No two
// requests share a call, so that none waits for one that began before it.
func (s *Service) recentStanding(ctx context.Context, asked applicationapi.Standing) (directoryapi.Account, error) {
	if !s.peers.Remote || caller.Changed(ctx) {
		return s.standing(ctx, asked)
	}
	if account, ok := s.standings.Peek(asked); ok {
		return account, nil
	}
	return s.standings.Refresh(ctx, asked, func(ctx context.Context) (directoryapi.Account, error) { return s.standing(ctx, asked) })
}
