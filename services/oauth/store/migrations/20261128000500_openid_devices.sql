-- +goose Up

-- What devices ask for (RFC 8628), by the digest of their device_code. A row is deleted when its tokens are issued.
CREATE TABLE openid_devices (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    user_code text NOT NULL,
    application_id uuid NOT NULL,
    client_id uuid NOT NULL,
    account_id uuid, -- that has allowed it
    status text NOT NULL,
    login jsonb NOT NULL,
    poll_seconds integer NOT NULL,
    polled_at timestamptz,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest)
);
CREATE UNIQUE INDEX openid_devices_user_code ON openid_devices (tenant_id, application_id, user_code);
CREATE INDEX openid_devices_of_account ON openid_devices (tenant_id, account_id) WHERE account_id IS NOT NULL;
CREATE INDEX openid_devices_age ON openid_devices (expires_at);
