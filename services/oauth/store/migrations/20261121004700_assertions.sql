-- +goose Up

-- The organization that the login of a token named.
ALTER TABLE refresh_tokens ADD COLUMN organization_id uuid;
ALTER TABLE access_tokens ADD COLUMN organization_id uuid;

-- The assertions that were exchanged, so that none is exchanged twice. A row is
-- of use until its assertion has expired.
CREATE TABLE spent_assertions (
    tenant_id uuid NOT NULL,
    jti_digest bytea NOT NULL, -- SHA-256: a client may choose a jti of any length
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, jti_digest)
);
CREATE INDEX spent_assertions_age ON spent_assertions (expires_at);
