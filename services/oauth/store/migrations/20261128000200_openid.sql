-- +goose Up

-- The key pairs that sign the tokens of a tenant's OpenID providers. jwk is the public key.
-- At good_until the last token that the key has signed has expired: it is published until then.
CREATE TABLE signing_keys (
    tenant_id uuid NOT NULL,
    id text NOT NULL,
    algorithm text NOT NULL,
    status text NOT NULL,
    jwk jsonb NOT NULL,
    private_sealed bytea NOT NULL,
    good_until timestamptz NOT NULL,
    rotate_at timestamptz,
    active_at timestamptz,
    retired_at timestamptz,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX signing_keys_in_use ON signing_keys (tenant_id, algorithm, status) WHERE status <> 'RETIRED';
CREATE INDEX signing_keys_rotation ON signing_keys (rotate_at) WHERE rotate_at IS NOT NULL;

-- The settings that differ from the default. signing_key_rotation is NULL for none.
CREATE TABLE openid_settings (
    tenant_id uuid PRIMARY KEY,
    signing_key_rotation text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL
);

-- The OpenID providers that differ from the default. settings has the members that a client may change.
CREATE TABLE openid_providers (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    settings jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id)
);

-- The clients of applications (relying parties). client_id is the id in base62.
CREATE TABLE openid_clients (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    client_id text NOT NULL,
    application_id uuid NOT NULL,
    name text NOT NULL,
    name_folded text NOT NULL,
    description text,
    status text NOT NULL,
    settings jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX openid_clients_name ON openid_clients (tenant_id, application_id, name_folded);

-- At most two for each client. A secret has 256 random bits: its digest needs no slow hash.
CREATE TABLE openid_client_secrets (
    tenant_id uuid NOT NULL,
    client_id uuid NOT NULL,
    id uuid NOT NULL,
    digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    PRIMARY KEY (tenant_id, client_id, id)
);

-- What a login, or a client itself, has allowed a client: access and refresh tokens are issued under it. It ends
-- by its deletion. login has what the tokens say of the login.
CREATE TABLE openid_grants (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    client_id uuid NOT NULL,
    account_id uuid NOT NULL,
    login jsonb NOT NULL,
    generation integer NOT NULL, -- of the refresh tokens that were used last
    used_at timestamptz,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX openid_grants_of_account ON openid_grants (tenant_id, account_id);
CREATE INDEX openid_grants_age ON openid_grants (expires_at);

CREATE TABLE openid_refresh_tokens (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    grant_id uuid NOT NULL,
    generation integer NOT NULL,
    used_at timestamptz,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest)
);
CREATE INDEX openid_refresh_tokens_of_grant ON openid_refresh_tokens (tenant_id, grant_id);
CREATE INDEX openid_refresh_tokens_age ON openid_refresh_tokens (expires_at);

-- An access token is good while its row is there. The digest is that of an opaque token.
CREATE TABLE openid_access_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    digest bytea,
    application_id uuid NOT NULL,
    client_id uuid NOT NULL,
    account_id uuid,
    grant_id uuid,
    token jsonb NOT NULL,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX openid_access_tokens_digest ON openid_access_tokens (tenant_id, digest) WHERE digest IS NOT NULL;
CREATE INDEX openid_access_tokens_of_grant ON openid_access_tokens (tenant_id, grant_id);
CREATE INDEX openid_access_tokens_of_account ON openid_access_tokens (tenant_id, account_id);
CREATE INDEX openid_access_tokens_age ON openid_access_tokens (expires_at);

-- Authorization codes. grant_id is the id that the grant of its first use has.
CREATE TABLE openid_codes (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    application_id uuid NOT NULL,
    client_id uuid NOT NULL,
    account_id uuid NOT NULL,
    request jsonb NOT NULL,
    grant_id uuid,
    replayed boolean NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest)
);
CREATE INDEX openid_codes_age ON openid_codes (expires_at);
