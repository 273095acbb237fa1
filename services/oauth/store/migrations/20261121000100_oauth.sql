-- +goose Up

-- API keys with their sealed secrets.
CREATE TABLE api_keys (
    tenant_id uuid NOT NULL,
    id text NOT NULL,
    account_id uuid NOT NULL,
    status text NOT NULL,
    name text,
    description text,
    secret_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX api_keys_of_account ON api_keys (tenant_id, account_id, id);

-- The one table that does not begin with its tenant. A request arrives with
-- the id of an API key and nothing else: this leads to the tenant, and keeps
-- the id unique in the deployment. Where the tables are distributed by tenant
-- this one is small enough to be on every node.
CREATE TABLE api_key_routes (
    id text PRIMARY KEY,
    tenant_id uuid NOT NULL
);

-- The policies that differ from the default, as the client wrote them
-- (ISO 8601 durations).
CREATE TABLE oauth_policies (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    access_token_ttl text NOT NULL,
    refresh_token_ttl text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id)
);

-- A token is good while its row is there. The row holds what its JWT says, and
-- not the JWT: a reader of the table cannot act as its accounts.
CREATE TABLE refresh_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    account_id uuid NOT NULL,
    key_id text NOT NULL,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX refresh_tokens_of_account ON refresh_tokens (tenant_id, account_id, id);
CREATE INDEX refresh_tokens_of_application ON refresh_tokens (tenant_id, application_id);
CREATE INDEX refresh_tokens_age ON refresh_tokens (expires_at);

-- refresh_id is no foreign key: an access token outlives its refresh token when
-- that is deleted alone.
CREATE TABLE access_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    account_id uuid NOT NULL,
    key_id text NOT NULL,
    refresh_id uuid,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX access_tokens_of_account ON access_tokens (tenant_id, account_id, id);
CREATE INDEX access_tokens_of_application ON access_tokens (tenant_id, application_id);
CREATE INDEX access_tokens_age ON access_tokens (expires_at);
