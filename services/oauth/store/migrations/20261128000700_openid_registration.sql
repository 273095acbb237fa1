-- +goose Up

-- The digest of the registration access token of a client that has registered itself (RFC 7592); NULL: it was made by
-- the management API.
ALTER TABLE openid_clients ADD COLUMN registration_digest bytea;

-- Initial access tokens (RFC 7591, section 3), by their digest. uses is how many clients may still register by one.
CREATE TABLE openid_registration_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    digest bytea NOT NULL,
    uses integer NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX openid_registration_tokens_digest ON openid_registration_tokens (tenant_id, digest);
CREATE INDEX openid_registration_tokens_of_application ON openid_registration_tokens (tenant_id, application_id);
CREATE INDEX openid_registration_tokens_age ON openid_registration_tokens (expires_at);
