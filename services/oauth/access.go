package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// accesses keeps the answers of the application service whether accounts may act through applications
// and, without an application, whether they are administrators. A refusal is not kept.
type accesses = cache.Answers[applicationapi.CheckAccess, directoryapi.Access]

// accessCacheSize counts answers, and the resources that they depend on: four for an application without
// organizations.
const accessCacheSize = 1 << 16

func newAccesses(peers Peers, now func() time.Time) *accesses {
	return cache.NewAnswers[applicationapi.CheckAccess, directoryapi.Access](cache.AnswersConfig{
		Name: "oauth.accesses", Size: accessCacheSize, Now: now,
		Feeds: []cache.Source{peers.Application.AccessChanges, peers.Directory.AccessChanges},
	})
}

// checkAccess says that an account may act through an application, as of at most 100 ms ago, or returns an
// error. The rules are in services/application/access.go.
func (s *Service) checkAccess(ctx context.Context, request applicationapi.CheckAccess) (directoryapi.Access, error) {
	return s.accesses.Get(ctx, request, func(ctx context.Context) (directoryapi.Access, []id.ID, error) {
		access, err := s.peers.Application.CheckAccess(ctx, request)
		return access, access.DependsOn, err
	})
}

// checkAdministrator says that the account of an API key is an administrator of its tenant, as of at most
// 100 ms ago, or returns errBadAPIKey.
func (s *Service) checkAdministrator(ctx context.Context, k store.APIKey) (directoryapi.Access, error) {
	ctx = caller.WithTenant(ctx, k.TenantID)
	request := applicationapi.CheckAccess{Tenant: k.TenantID, Account: k.AccountID}
	access, err := s.accesses.Get(ctx, request, func(ctx context.Context) (directoryapi.Access, []id.ID, error) {
		access, err := s.peers.Application.Administrator(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: k.AccountID})
		return access, access.DependsOn, err
	})
	if apierr.IsRefusal(err) {
		err = errBadAPIKey
	}
	return access, err
}
