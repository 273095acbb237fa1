-- +goose Up

-- A login that the authorization request of an OpenID provider, or a device, has begun: the request, which says whether it is
-- answered, and the session that the login belongs to.
ALTER TABLE login_flows
    ADD COLUMN openid_request jsonb,
    ADD COLUMN session_id uuid,
    ADD COLUMN by_password boolean NOT NULL DEFAULT false;     -- the first step was a password (amr)

-- session_id is the name of a session outside of this service: in hrefs and in the claim sid. The key of the table, the
-- digest of the cookie, never leaves it.
ALTER TABLE sso_sessions
    ADD COLUMN session_id uuid,                                -- NULL: of the release before
    ADD COLUMN by_password boolean NOT NULL DEFAULT false,
    ADD COLUMN last_used_at timestamptz,
    ADD COLUMN remote_address text NOT NULL DEFAULT '',
    ADD COLUMN user_agent text NOT NULL DEFAULT '';

-- The clients to which codes were given in a session: they are told of its end.
CREATE TABLE session_clients (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    client_id uuid NOT NULL,
    expires_at timestamptz NOT NULL,            -- of the session
    PRIMARY KEY (tenant_id, session_id, client_id)
);
CREATE INDEX session_clients_expired ON session_clients (expires_at);

-- The scopes that an account has allowed a client.
CREATE TABLE consents (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    client_id uuid NOT NULL,
    application_id uuid NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX consents_of_account ON consents (tenant_id, account_id, client_id);
