-- +goose Up

-- The assertions of identity providers that were used, until they are refused for
-- their time.
CREATE TABLE saml_assertions (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    digest bytea NOT NULL,                -- SHA-256 of the id of the assertion
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, digest)
);
CREATE INDEX saml_assertions_expired ON saml_assertions (expires_at);

-- The tenant of a directory that an identity provider names.
CREATE INDEX saml_service_providers_tenant ON saml_service_providers (directory_id, tenant_id);
