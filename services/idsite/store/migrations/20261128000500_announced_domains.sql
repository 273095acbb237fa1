-- +goose NO TRANSACTION
-- +goose Up

-- The domain of the newest event SiteDomainChanged of a site.
ALTER TABLE id_sites ADD COLUMN IF NOT EXISTS announced_domain text;
CREATE INDEX CONCURRENTLY IF NOT EXISTS id_sites_unannounced ON id_sites (tenant_id)
    WHERE announced_domain IS DISTINCT FROM domain_name;
