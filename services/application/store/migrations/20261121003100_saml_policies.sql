-- +goose Up

-- The SAML policy of an application, its service provider and its identity
-- provider share one id, which applications have had from the first.
CREATE UNIQUE INDEX application_of_saml_policy ON applications (tenant_id, saml_policy_id);

-- An application as an identity provider, made when it is first asked for: its
-- key pair, and the rules of what its assertions tell.
CREATE TABLE saml_identity_providers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    status text NOT NULL,
    certificate text NOT NULL,
    private_key_sealed bytea NOT NULL,
    mapping_rules jsonb NOT NULL DEFAULT '[]',
    rules_modified_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, application_id),
    FOREIGN KEY (tenant_id, application_id) REFERENCES applications ON DELETE CASCADE
);

-- Which registered service providers an identity provider serves.
CREATE TABLE saml_registrations (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    identity_provider_id uuid NOT NULL,
    service_provider_id uuid NOT NULL,
    status text NOT NULL,
    default_relay_state text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, identity_provider_id, service_provider_id),
    FOREIGN KEY (tenant_id, identity_provider_id) REFERENCES saml_identity_providers ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, service_provider_id) REFERENCES saml_service_providers ON DELETE CASCADE
);
CREATE INDEX registrations_of_service_provider ON saml_registrations (tenant_id, service_provider_id);

-- What signs a tenant's default relay states, which are good for ever: a key of
-- the tenant's own outlives the master key that it is sealed under.
CREATE TABLE saml_relay_keys (
    tenant_id uuid PRIMARY KEY,
    key_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL
);
