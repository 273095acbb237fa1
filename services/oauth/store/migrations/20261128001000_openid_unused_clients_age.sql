-- +goose NO TRANSACTION
-- +goose Up

-- Clients without a login are purged by their age.
DROP INDEX CONCURRENTLY IF EXISTS openid_clients_age; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS openid_clients_age ON openid_clients (unused_until)
    WHERE unused_until IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS openid_client_secrets_age;
CREATE INDEX CONCURRENTLY IF NOT EXISTS openid_client_secrets_age ON openid_client_secrets (unused_until)
    WHERE unused_until IS NOT NULL;
