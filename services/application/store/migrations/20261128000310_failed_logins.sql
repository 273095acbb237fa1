-- +goose Up

-- Failed logins by password of the last 30 days, of login names that have an account. Those that a limit refused are
-- one row a minute.
CREATE TABLE failed_logins (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    directory_id uuid NOT NULL,
    application_id uuid NOT NULL,
    code integer NOT NULL,
    login_limit text,                           -- that refused it; null: none
    until timestamptz,                          -- when the limit ends
    times integer NOT NULL,
    address text NOT NULL,                      -- of the user; empty: not known
    request_id text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, id)
);
CREATE INDEX failed_logins_of_directory ON failed_logins (tenant_id, directory_id);
CREATE INDEX failed_logins_expired ON failed_logins (expires_at);
