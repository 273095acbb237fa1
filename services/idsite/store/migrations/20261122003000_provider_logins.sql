-- +goose Up

-- Logins that browsers have begun at the providers of directories. The id is that of
-- the state which the provider sends back, once.
CREATE TABLE provider_logins (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    provider text NOT NULL,                 -- folded
    redirect_uri text NOT NULL,             -- that the provider sends the browser back to
    return_to text NOT NULL DEFAULT '',     -- of the client; empty: a hosted login
    state text,                             -- of the client
    account_store text NOT NULL DEFAULT '', -- href that the login names
    name_key text NOT NULL DEFAULT '',      -- of the organization that the login names
    flow_id uuid,                           -- of the hosted login
    browser bytea NOT NULL,                 -- SHA-256 of the cookie of the browser that began
    secrets_sealed bytea NOT NULL,          -- JSON of what the provider's code needs
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX provider_logins_expired ON provider_logins (expires_at);
