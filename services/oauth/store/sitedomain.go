package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// SiteDomain is the domain of the hosted pages of a tenant, as the idsite service has announced it.
type SiteDomain struct {
	TenantID    id.ID
	Domain      string
	AnnouncedAt time.Time
}

// siteDomainQuery reads a row by the keys of the cache, tenant and id, which are the same here.
const siteDomainQuery = `SELECT tenant_id, domain, announced_at FROM site_domains WHERE tenant_id = $1 AND tenant_id = $2`

// SiteDomain returns the domain of a tenant as of at most 50 ms ago, or apierr.NotFound where none was announced.
func (s *Store) SiteDomain(ctx context.Context, tenant id.ID) (SiteDomain, error) {
	return s.siteDomains.One(ctx, id.Ref{Tenant: tenant, ID: tenant})
}

// PutSiteDomain stores a domain, unless a newer one was announced.
func (tx *Tx) PutSiteDomain(d SiteDomain) {
	tx.store.siteDomains.InvalidateAfter(tx, id.Ref{Tenant: d.TenantID, ID: d.TenantID})
	tx.Queue(pg.Insert("site_domains AS d", "tenant_id, domain, announced_at")+` ON CONFLICT (tenant_id) DO UPDATE
		SET domain = excluded.domain, announced_at = excluded.announced_at
		WHERE d.announced_at <= excluded.announced_at`, pg.Named(d))
}
