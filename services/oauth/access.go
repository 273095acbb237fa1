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
	// accessMaxAge is how long an answer that an account may act is used without a question
	// whether it still holds. A change takes effect within 100 ms on every replica: the other
	// half is for the services that are called, which wait for a notification of PostgreSQL.
	accessMaxAge = 50 * time.Millisecond
	// accessKeptFor is how long an answer is kept while no change of it is reported.
	accessKeptFor = time.Minute
	// accessViewSize is in answers and what they depend on: an answer of an application
	// without organizations takes four, some 2 kB together.
	accessViewSize = 1 << 16
)

// accessView is what accounts may do, as the application service has answered. An answer
// is used for accessMaxAge, and for longer where both services report that nothing of it
// has changed (package changefeed): one question every 50 ms in place of one for each
// account. Where that cannot be known, as with a cut connection, they are asked for each
// account again. A refusal is not kept.
type accessView struct {
	application applicationapi.API
	now         func() time.Time
	answers     *cache.Cache[accessKey, accessAnswer]
	changes     *changefeed.Follower
}

// accessKey is an account that acts through an application or, with tenant and resource
// alone, something that such an answer depends on.
type accessKey struct{ tenant, resource, application, organization id.ID }

type accessAnswer struct {
	applicationapi.Access
	asked   time.Time
	notKept time.Time // when the application service last said that it may not be kept
}

func (a accessAnswer) dependsOn() []accessKey {
	keys := make([]accessKey, len(a.DependsOn))
	for i, resource := range a.DependsOn {
		keys[i] = accessKey{tenant: a.TenantID, resource: resource}
	}
	return keys
}

func newAccessView(peers Peers, now func() time.Time) *accessView {
	answers := cache.New(cache.Config[accessKey, accessAnswer]{
		Name: "oauth.accesses", Size: accessViewSize, MaxAge: accessKeptFor, Now: now,
		DependsOn: accessAnswer.dependsOn, Weight: func(a accessAnswer) int { return 1 + len(a.DependsOn) },
	})
	return &accessView{application: peers.Application, now: now, answers: answers, changes: changefeed.NewFollower(changefeed.FollowerConfig{
		Name: "oauth.accesses", MaxAge: accessMaxAge, Now: now,
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

// check is CheckAccess of the application service as it was at most 100 ms ago. No two
// requests share a call, so that none waits for one that began before it.
func (v *accessView) check(ctx context.Context, asked applicationapi.CheckAccess) (directoryapi.Account, error) {
	key := accessKey{asked.Tenant, asked.Account, asked.Application, asked.Organization}
	current := v.changes.Current(ctx)
	found, ok := v.answers.PeekCurrent(ctx, key, func(a accessAnswer) bool {
		return current && len(a.DependsOn) > 0 || v.now().Sub(a.asked) < accessMaxAge
	})
	if ok {
		return found.Account, nil
	}
	// An answer is kept from its second use on: what may be kept is read from the
	// databases, and what is used once is answered from the caches of the services.
	asked.Keep = current && !found.asked.IsZero() && v.now().Sub(found.notKept) >= accessKeptFor
	asked.Recent = !asked.Keep
	answer, err := v.answers.Refresh(ctx, key, func(ctx context.Context) (answer accessAnswer, err error) {
		answer.asked = v.now()
		answer.Access, err = v.application.CheckAccess(ctx, asked)
		if answer.notKept = found.notKept; asked.Keep && len(answer.DependsOn) == 0 {
			answer.notKept = answer.asked
		}
		return answer, err
	})
	return answer.Account, err
}

// checkAccess asks the application service whether an account may act.
func (s *Service) checkAccess(ctx context.Context, asked applicationapi.CheckAccess) (directoryapi.Account, error) {
	access, err := s.peers.Application.CheckAccess(ctx, asked)
	return access.Account, err
}

// recentAccess is checkAccess as it was at most 50 ms ago or, in the distributed shape, as the
// accessView has it, which saves two of the four hops of a validation. A client sees its own
// changes at once: the gateway marks the requests that follow them. A brief answer is asked
// for.
func (s *Service) recentAccess(ctx context.Context, asked applicationapi.CheckAccess) (directoryapi.Account, error) {
	switch {
	case caller.Changed(ctx):
		return s.checkAccess(ctx, asked)
	case s.peers.Remote:
		return s.accesses.check(ctx, asked)
	}
	asked.Recent = true
	return s.checkAccess(ctx, asked)
}
