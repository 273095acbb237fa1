-- +goose Up

-- The salt of the pairwise subjects of a tenant. It never changes, and needs no seal: who reads this table reads the
-- accounts and the clients too.
CREATE TABLE openid_salts (
    tenant_id uuid PRIMARY KEY,
    salt text NOT NULL
);
