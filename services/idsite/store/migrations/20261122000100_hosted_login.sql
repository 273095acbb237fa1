-- +goose Up

ALTER TABLE id_sites
    ADD COLUMN default_domain text,
    ADD COLUMN tls_private_key text,           -- what a client wrote that is no private key
    ADD COLUMN tls_private_key_sealed bytea,   -- a private key
    ADD COLUMN git_status text NOT NULL DEFAULT 'NONE',
    ADD COLUMN git_message text,
    ADD COLUMN git_fetched_at timestamptz,
    ADD COLUMN accent_color text;

-- Which tenant a domain of hosted pages belongs to, over the whole deployment.
CREATE TABLE id_site_domains (
    domain text PRIMARY KEY,
    tenant_id uuid NOT NULL,
    is_default boolean NOT NULL
);
CREATE INDEX id_site_domains_of_tenant ON id_site_domains (tenant_id);
INSERT INTO id_site_domains (domain, tenant_id, is_default) SELECT lower(domain_name), tenant_id, true FROM id_sites ON CONFLICT DO NOTHING;

-- A login at the hosted pages, from the request that began it to its assertion.
CREATE TABLE login_flows (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    key_id text NOT NULL,                 -- API key that signed the request
    request_id text NOT NULL,             -- jti of the request
    callback_uri text NOT NULL,
    state text,
    name_key text NOT NULL DEFAULT '',    -- of the organization that the request names
    account_store text NOT NULL DEFAULT '', -- href that the request names
    show_organization boolean NOT NULL DEFAULT false,
    token text NOT NULL DEFAULT '',       -- of a mailed link
    factor_types text[] NOT NULL DEFAULT '{}', -- one of which must be passed
    browser bytea,                        -- SHA-256 of the cookie of the browser that began
    account_id uuid,                      -- that passed the first step
    is_new boolean NOT NULL DEFAULT false,
    finished_at timestamptz,
    assertion_id text,                    -- jti of the assertion, until a session is made of it
    factor_passed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX login_flows_request ON login_flows (tenant_id, key_id, request_id);
CREATE INDEX login_flows_assertion ON login_flows (tenant_id, assertion_id) WHERE assertion_id IS NOT NULL;
CREATE INDEX login_flows_expired ON login_flows (expires_at);

-- Single sign-on sessions. The id is the SHA-256 of what the cookie holds.
CREATE TABLE sso_sessions (
    tenant_id uuid NOT NULL,
    id bytea NOT NULL,
    account_id uuid NOT NULL,
    factor_passed boolean NOT NULL,
    password_modified_at timestamptz,     -- of the account, when the session began
    created_at timestamptz NOT NULL,
    idle_at timestamptz NOT NULL,         -- when it ends unless it is used
    expires_at timestamptz NOT NULL,      -- when it ends in any case
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX sso_sessions_of_account ON sso_sessions (tenant_id, account_id);
CREATE INDEX sso_sessions_expired ON sso_sessions (idle_at);

-- Static files of custom pages, fetched from a repository.
CREATE TABLE site_files (
    tenant_id uuid NOT NULL,
    path text NOT NULL,                   -- without a slash at its beginning
    content bytea NOT NULL,
    fetched_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, path)
);
