-- +goose Up

-- Whether a password that an administrator sets ends the account's tokens of the
-- application.
ALTER TABLE oauth_policies ADD COLUMN revoke_tokens_on_password_change boolean NOT NULL DEFAULT true;

-- The latest change of an account's password. A login that began before it issues
-- no token. A row is of use until every such login has ended.
CREATE TABLE password_changes (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    changed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id)
);
CREATE INDEX password_changes_age ON password_changes (expires_at);
