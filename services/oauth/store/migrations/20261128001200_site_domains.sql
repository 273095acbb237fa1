-- +goose Up

-- The domains of the hosted pages of tenants, as the idsite service has announced them: issuers may have them.
CREATE TABLE site_domains (
    tenant_id uuid PRIMARY KEY,
    domain text NOT NULL,
    announced_at timestamptz NOT NULL
);
