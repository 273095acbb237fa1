-- +goose Up

-- The former password hashes of an account, the newest with the highest
-- position, kept while its directory's policy forbids reuse.
CREATE TABLE password_history (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    position bigint NOT NULL,
    password_hash text NOT NULL,
    PRIMARY KEY (tenant_id, account_id, position),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
