package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

// Site holds the settings of a tenant's hosted login pages.
type Site struct {
	TenantID                id.ID
	ID                      id.ID
	DomainName              string
	TLSPublicCert           *string `db:"tls_public_cert"`
	GitRepoURL              *string `db:"git_repo_url"`
	GitBranch               *string
	AuthorizedOriginURIs    []string `db:"authorized_origin_uris"`
	AuthorizedRedirectURIs  []string `db:"authorized_redirect_uris"`
	LogoURL                 *string  `db:"logo_url"`
	SessionTTI              string   `db:"session_tti"` // ISO-8601 duration
	SessionTTL              string   `db:"session_ttl"` // ISO-8601 duration
	SessionCookiePersistent bool
	CreatedAt               time.Time
	ModifiedAt              time.Time
}

const siteColumns = `tenant_id, id, domain_name, tls_public_cert, git_repo_url, git_branch, authorized_origin_uris, authorized_redirect_uris,
	logo_url, session_tti, session_ttl, session_cookie_persistent, created_at, modified_at`

// Sites are searched and sorted by these attributes.
var Sites = list.Spec{
	"domainName": {Column: "domain_name"},
	"createdAt":  {Column: "created_at", Kind: list.Time},
	"modifiedAt": {Column: "modified_at", Kind: list.Time},
}

// Site gives a site, or apierr.NotFound.
func (s *Store) Site(ctx context.Context, tenant, site id.ID) (Site, error) {
	return pg.One[Site](ctx, s.db, `SELECT `+siteColumns+` FROM id_sites WHERE tenant_id = $1 AND id = $2`, tenant, site)
}

// ListSites gives a page of the tenant's sites, of which there is one.
func (s *Store) ListSites(ctx context.Context, tenant id.ID, query list.Query) (list.Page[Site], error) {
	return list.Select[Site](ctx, s.db, Sites, query, siteColumns, `FROM id_sites WHERE tenant_id = $1`, "id", tenant)
}

// EnsureSite adds the site of a tenant that has none.
func (tx *Tx) EnsureSite(ctx context.Context, site Site) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO id_sites (tenant_id, id, domain_name, authorized_origin_uris, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		site.TenantID, site.ID, site.DomainName, site.AuthorizedOriginURIs, site.CreatedAt, site.ModifiedAt)
	return err
}
