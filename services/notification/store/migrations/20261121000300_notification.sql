-- +goose Up

-- One row per mail that an event asks for. It names the account, never the
-- address: that is asked for when the mail is written. token_sealed goes when
-- the row is done.
CREATE TABLE deliveries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    workflow text NOT NULL,
    account_id uuid NOT NULL,
    application_id uuid,
    token_sealed bytea,
    request_id text NOT NULL,
    trace jsonb NOT NULL,
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
CREATE INDEX deliveries_due ON deliveries (next_try_at) WHERE state = 'WAITING';
CREATE INDEX deliveries_age ON deliveries (finished_at) WHERE state <> 'WAITING';
