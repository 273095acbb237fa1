-- +goose Up

-- One row per mail or text message that an event asks for. It names the account, never its email address: that is
-- asked for when the mail is written. The mail that tells of an SMTP server whose circuit breaker has opened is for the
-- owner of the tenant, whoever that is when it is written, and has no account. What is secret goes when the row is done.
CREATE TABLE deliveries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    kind text NOT NULL,
    workflow text NOT NULL,
    account_id uuid,
    application_id uuid,
    challenge_id uuid,
    number text COLLATE "C" NOT NULL DEFAULT '', -- of a text message
    message text NOT NULL DEFAULT '',            -- of a text message
    token_sealed bytea,                          -- the token of a mail, the code of a text message
    expires_at timestamptz,                      -- of the code
    attempted_at timestamptz,                    -- noted before the provider is spoken to: no text is sent twice
    request_id text NOT NULL,
    trace jsonb NOT NULL,
    language text NOT NULL DEFAULT '',           -- of the request, for an account that has no locale
    state text NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    next_try_at timestamptz NOT NULL,
    leased_until timestamptz,
    leased_by uuid,
    last_error text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, event_id, workflow)
);
-- The tenants take turns: a worker steps from one to the next along this index.
CREATE INDEX deliveries_due ON deliveries (kind, tenant_id, next_try_at) WHERE finished_at IS NULL;
-- The mails that follow a verification speak of the application that the mail which asked for it spoke of.
CREATE INDEX deliveries_of_verification ON deliveries (tenant_id, account_id, created_at) WHERE workflow = 'verification';
CREATE INDEX deliveries_finished ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- The mail server that a tenant has of its own; at most one. failures counts what went wrong with it since it last took
-- a mail. While its circuit breaker is open (opened_at) the tenant's mails go through the deployment's server; probe_at
-- is when the next one tries this server again, and probes how many did.
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
    opened_at timestamptz,
    probe_at timestamptz,
    probes integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id)
);
CREATE INDEX smtp_servers_open ON smtp_servers (opened_at) WHERE opened_at IS NOT NULL;
