-- +goose Up

-- Events that were committed with their rows and wait for the relay. An entry
-- leaves when the broker has acknowledged it, so the table stays small; seq is
-- the order in which the relay sends.
CREATE TABLE outbox (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    topic text NOT NULL,
    key uuid NOT NULL,
    envelope bytea NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX outbox_order ON outbox (seq);

-- Events whose effect is in this schema already: the second delivery of one
-- finds its row and does nothing.
CREATE TABLE seen_events (
    tenant_id uuid NOT NULL,
    event_id uuid NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, event_id)
);
CREATE INDEX seen_events_age ON seen_events (seen_at);
