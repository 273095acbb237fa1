-- +goose Up

-- The nonces of requests that were signed by the digest scheme, so that none is
-- accepted twice. A row is of use for half an hour.
CREATE TABLE digest_nonces (
    tenant_id uuid NOT NULL,
    key_id text NOT NULL,
    nonce text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key_id, nonce)
);
CREATE INDEX digest_nonces_age ON digest_nonces (expires_at);
