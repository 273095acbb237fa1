-- +goose Up

-- Authorization requests that clients have pushed (RFC 9126), by the digest of their request_uri. A row is deleted when
-- its request is used, and stays for as long as the login of the request may take.
CREATE TABLE openid_pushed_requests (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    client_id uuid NOT NULL,
    request jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest)
);
CREATE INDEX openid_pushed_requests_age ON openid_pushed_requests (expires_at);
