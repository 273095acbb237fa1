-- +goose Up

-- Sign-ups and invitations of administrators whose mail has not been answered. A
-- sign-up has the ids of the tenant and the owner that it will make.
CREATE TABLE sign_ups (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    digest bytea NOT NULL,                -- SHA-256 of the token in the mail
    email text NOT NULL,
    email_folded text NOT NULL,
    address_hash text NOT NULL,           -- of the network that asked; empty where it is not known
    given_name text,
    surname text,
    password_hash text,                   -- null: an invitation, which asks for the password later
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id)
);
-- A mailed link names its token and not its tenant.
CREATE INDEX sign_ups_by_digest ON sign_ups (digest) INCLUDE (tenant_id);
CREATE INDEX sign_ups_of_email ON sign_ups (email_folded, created_at);
CREATE INDEX sign_ups_of_address ON sign_ups (address_hash, created_at);
CREATE INDEX sign_ups_expired ON sign_ups (expires_at);
