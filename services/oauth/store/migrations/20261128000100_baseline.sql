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

-- The one table that does not begin with its tenant. A request arrives with the id of an API key and nothing else: this
-- leads to the tenant, and keeps the id unique in the deployment. Where the tables are distributed by tenant this one is
-- small enough to be on every node.
CREATE TABLE api_key_routes (
    id text PRIMARY KEY,
    tenant_id uuid NOT NULL
);

-- The policies that differ from the default, as the client wrote them (ISO 8601 durations).
CREATE TABLE oauth_policies (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    access_token_ttl text NOT NULL,
    refresh_token_ttl text NOT NULL,
    revoke_tokens_on_password_change boolean NOT NULL DEFAULT true, -- when an administrator sets the password
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id)
);

-- The web configs that differ from the default. A switch that is NULL follows the directory of the application's default
-- account store.
CREATE TABLE web_configs (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    status text NOT NULL,
    oauth2 boolean NOT NULL,
    register boolean NOT NULL,
    login boolean NOT NULL,
    verify_email boolean,
    forgot_password boolean,
    change_password boolean,
    me boolean NOT NULL,
    me_expand text[] NOT NULL,
    mfa_required boolean NOT NULL,
    mfa_factor_types text[] NOT NULL,
    signing_key_id text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id)
);

-- A token is good while its row is there. The row holds what its JWT says, and not the JWT: a reader of the table cannot
-- act as its accounts.
CREATE TABLE refresh_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    account_id uuid NOT NULL,
    key_id text NOT NULL,
    organization_id uuid,                         -- that the login named
    second_factor boolean NOT NULL DEFAULT false, -- the login has passed one
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX refresh_tokens_of_account ON refresh_tokens (tenant_id, account_id, id);
CREATE INDEX refresh_tokens_of_application ON refresh_tokens (tenant_id, application_id);
CREATE INDEX refresh_tokens_expired ON refresh_tokens (expires_at);

-- refresh_id is no foreign key: an access token outlives its refresh token when that is deleted alone.
CREATE TABLE access_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    account_id uuid NOT NULL,
    key_id text NOT NULL,
    refresh_id uuid,
    organization_id uuid,
    second_factor boolean NOT NULL DEFAULT false,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX access_tokens_of_account ON access_tokens (tenant_id, account_id, id);
CREATE INDEX access_tokens_of_application ON access_tokens (tenant_id, application_id);
CREATE INDEX access_tokens_expired ON access_tokens (expires_at);

-- The latest change of an account's password. A login that began before it issues no token. A row is of use until every
-- such login has ended.
CREATE TABLE password_changes (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    changed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id)
);
CREATE INDEX password_changes_expired ON password_changes (expires_at);

-- The nonces of requests that were signed with an API key, so that none is accepted twice. A row is of use for half an
-- hour.
CREATE TABLE nonces (
    tenant_id uuid NOT NULL,
    key_id text NOT NULL,
    nonce text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key_id, nonce)
);
CREATE INDEX nonces_expired ON nonces (expires_at);

-- The assertions that were exchanged, so that none is exchanged twice. A row is of use until its assertion has expired.
CREATE TABLE consumed_assertions (
    tenant_id uuid NOT NULL,
    jti_digest bytea NOT NULL, -- SHA-256: a client may choose a jti of any length
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, jti_digest)
);
CREATE INDEX consumed_assertions_expired ON consumed_assertions (expires_at);
