-- +goose Up

-- The mail server that a tenant has of its own; at most one. failures counts
-- what went wrong with it since it last took a mail. While fell_back_at is set
-- the tenant's mails go through the deployment's server; probe_at is when the
-- next one tries this server again, and probes how many did in vain.
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
    fell_back_at timestamptz,
    probe_at timestamptz,
    probes integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id)
);
