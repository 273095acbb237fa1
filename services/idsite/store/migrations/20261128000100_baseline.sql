-- +goose Up

-- The settings of a tenant's hosted login pages; a tenant has one row. A claim of a custom domain that is unproved after
-- a day gives way to another tenant. A proof names its domain, so that it ends with a change of domain_name.
CREATE TABLE id_sites (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    default_domain text NOT NULL,
    domain_name text NOT NULL,
    domain_claimed_at timestamptz NOT NULL DEFAULT now(),
    proved_domain text,
    tls_public_cert text,
    tls_private_key text,                       -- what a client wrote that is no private key
    tls_private_key_sealed bytea,               -- a private key
    git_repo_url text,                          -- with a placeholder for its credential
    git_credential_sealed bytea,                -- user name and password of the repository
    git_branch text,
    git_status text NOT NULL DEFAULT 'NONE',
    git_message text,
    git_fetched_at timestamptz,
    git_failures integer NOT NULL DEFAULT 0,    -- fetches that have failed since one succeeded: back-off
    authorized_origin_uris text[] NOT NULL DEFAULT '{}',
    authorized_redirect_uris text[] NOT NULL DEFAULT '{}',
    logo_url text,
    accent_color text,
    session_tti text NOT NULL DEFAULT 'PT30M',
    session_ttl text NOT NULL DEFAULT 'PT12H',
    session_cookie_persistent boolean NOT NULL DEFAULT false,
    key_made boolean NOT NULL DEFAULT false,    -- the first API key of the tenant, which no later start makes again
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX one_id_site_per_tenant ON id_sites (tenant_id);

-- Which tenant a domain of hosted pages belongs to, over the whole deployment.
CREATE TABLE id_site_domains (
    domain text PRIMARY KEY,
    tenant_id uuid NOT NULL,
    is_default boolean NOT NULL
);
CREATE INDEX id_site_domains_of_tenant ON id_site_domains (tenant_id);

-- Static files of custom pages, fetched from a repository.
CREATE TABLE site_files (
    tenant_id uuid NOT NULL,
    path text NOT NULL,                         -- without a slash at its beginning
    content bytea NOT NULL,
    fetched_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, path)
);

-- A login at the hosted pages, from the request that began it to its assertion.
CREATE TABLE login_flows (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    key_id text NOT NULL,                       -- API key that signed the request
    request_id text NOT NULL,                   -- jti of the request
    callback_uri text NOT NULL,
    state text,
    state_json text,                            -- a state that is JSON and no string
    name_key text NOT NULL DEFAULT '',          -- of the organization that the request names
    account_store text NOT NULL DEFAULT '',     -- href that the request names
    show_organization boolean NOT NULL DEFAULT false,
    use_subdomain boolean NOT NULL DEFAULT false, -- the pages are at the subdomain of the organization
    token text NOT NULL DEFAULT '',             -- of a mailed link
    factor_types text[] NOT NULL DEFAULT '{}',  -- one of which must be passed
    browser bytea,                              -- SHA-256 of the cookie of the browser that began
    address text NOT NULL DEFAULT '',           -- client that began a login without a key, to limit how many it begins
    account_id uuid,                            -- that passed the first step
    organization_id uuid,                       -- that the login named
    unverified_id uuid,                         -- UNVERIFIED account whose right password was entered
    is_new boolean NOT NULL DEFAULT false,
    password_modified_at timestamptz,           -- of the account at its first step: a new password ends the login
    factor_passed boolean NOT NULL DEFAULT false,
    factor_type text NOT NULL DEFAULT '',       -- of the factor that was passed: one type is no proof of another
    stepped_up boolean NOT NULL DEFAULT false,  -- a factor was passed of a type that the login does not allow
    reset_token bytea,                          -- SHA-256 of the one password reset token that the pages may use
    saml_request jsonb,                         -- of the SAML service provider that asked for the login
    saml_session jsonb,                         -- at the SAML identity provider of the directory
    assertion_id text,                          -- jti of the assertion, until a session is made of it
    authenticated_at timestamptz,               -- what a SAML response says of the session of the user
    session_index text NOT NULL DEFAULT '',
    finished_at timestamptz,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX login_flows_request ON login_flows (tenant_id, key_id, request_id);
CREATE INDEX login_flows_assertion ON login_flows (tenant_id, assertion_id) WHERE assertion_id IS NOT NULL;
CREATE INDEX login_flows_address ON login_flows (tenant_id, application_id, address, expires_at)
    WHERE address <> '' AND finished_at IS NULL;
CREATE INDEX login_flows_expired ON login_flows (expires_at);

-- Single sign-on sessions. The id is the SHA-256 of what the cookie holds.
CREATE TABLE sso_sessions (
    tenant_id uuid NOT NULL,
    id bytea NOT NULL,
    account_id uuid NOT NULL,
    factor_passed boolean NOT NULL,
    factor_type text NOT NULL DEFAULT '',
    password_modified_at timestamptz,           -- of the account, when the session began
    saml_session jsonb,                         -- at the SAML identity provider of the directory
    created_at timestamptz NOT NULL,
    idle_expires_at timestamptz NOT NULL,       -- when it ends unless it is used
    expires_at timestamptz NOT NULL,            -- when it ends in any case
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX sso_sessions_of_account ON sso_sessions (tenant_id, account_id);
CREATE INDEX sso_sessions_expired ON sso_sessions (idle_expires_at);

-- Logins that browsers have begun at the providers of directories. The id is that of the state which the provider sends
-- back, once.
CREATE TABLE provider_logins (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    provider text NOT NULL,                     -- folded
    redirect_uri text NOT NULL,                 -- that the provider sends the browser back to
    return_to text NOT NULL DEFAULT '',         -- of the client; empty: a hosted login
    state text,                                 -- of the client
    account_store text NOT NULL DEFAULT '',     -- href that the login names
    name_key text NOT NULL DEFAULT '',          -- of the organization that the login names
    flow_id uuid,                               -- of the hosted login
    browser bytea NOT NULL,                     -- SHA-256 of the cookie of the browser that began
    secrets_sealed bytea NOT NULL,              -- JSON of what the provider's code needs
    address text NOT NULL DEFAULT '',           -- client that began the login
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX provider_logins_address ON provider_logins (tenant_id, application_id, address, expires_at);
CREATE INDEX provider_logins_expired ON provider_logins (expires_at);
