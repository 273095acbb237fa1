-- +goose NO TRANSACTION
-- +goose Up

-- The logins in progress of a client address.
DROP INDEX CONCURRENTLY IF EXISTS login_flows_address; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS login_flows_address ON login_flows (tenant_id, application_id, address, expires_at)
    WHERE address <> '' AND finished_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS provider_logins_address; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS provider_logins_address ON provider_logins (tenant_id, application_id, address, expires_at);
