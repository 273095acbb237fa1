package idsite

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/idsite/store"
)

// Site gives the settings of a tenant's hosted pages, or apierr.NotFound.
func (s *Service) Site(ctx context.Context, tenant, site id.ID) (store.Site, error) {
	return s.store.Site(ctx, tenant, site)
}

// ListSites returns the tenant's site as a collection. The tenant named must be
// the caller's own.
func (s *Service) ListSites(ctx context.Context, tenant, named id.ID, query list.Query) (list.Page[store.Site], error) {
	owner, err := s.peers.Directory.Tenant(ctx, id.Ref{Tenant: tenant, ID: named})
	if err != nil {
		return list.Page[store.Site]{}, err
	}
	return s.store.ListSites(ctx, tenant, query.Of(owner.CreatedAt, owner.ModifiedAt))
}
