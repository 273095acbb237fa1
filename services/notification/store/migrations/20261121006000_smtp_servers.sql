-- +goose Up

-- The mail server that a tenant has of its own; at most one. failures counts
-- what went wrong with it since it last took a mail. While left_at is set the
-- tenant's mails go through the deployment's server; probe_at is when the next
-- one tries this server again, and probes how many did.
CREATE TABLE smtp_servers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text,
    description text,
    username text NOT NULL,
    password_sealed bytea NOT NULL,
    host text NOT NULL,
    port integer NOT NULL,
    security_protocol text,
    status text NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    left_at timestamptz,
    probe_at timestamptz,
    probes integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id)
);
CREATE INDEX smtp_servers_left ON smtp_servers (left_at) WHERE left_at IS NOT NULL;

-- The mail that tells of a server that was left is for the owner of the tenant,
-- whoever that is when it is written.
ALTER TABLE deliveries ALTER COLUMN account_id DROP NOT NULL;
