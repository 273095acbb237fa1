-- +goose Up

-- Signs the tenant's password reset tokens; sealed, and made for the first one.
ALTER TABLE tenants ADD COLUMN reset_key_sealed bytea;

-- A row is an open right to set an account's password once.
CREATE TABLE password_resets (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    account_id uuid NOT NULL,
    application_id uuid,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX password_resets_of_account ON password_resets (tenant_id, account_id);
CREATE INDEX password_resets_expired ON password_resets (expires_at);
