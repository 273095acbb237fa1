-- +goose Up

-- The settings of a tenant's hosted login pages; a tenant has one row.
CREATE TABLE id_sites (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    domain_name text NOT NULL,
    tls_public_cert text,
    git_repo_url text,
    git_branch text,
    authorized_origin_uris text[] NOT NULL DEFAULT '{}',
    authorized_redirect_uris text[] NOT NULL DEFAULT '{}',
    logo_url text,
    session_tti text NOT NULL DEFAULT 'PT30M',
    session_ttl text NOT NULL DEFAULT 'PT12H',
    session_cookie_persistent boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX one_id_site_per_tenant ON id_sites (tenant_id);
