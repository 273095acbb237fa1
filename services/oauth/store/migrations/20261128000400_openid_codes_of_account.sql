-- +goose NO TRANSACTION
-- +goose Up

-- The codes of a session that has ended are deleted.
DROP INDEX CONCURRENTLY IF EXISTS openid_codes_of_account; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS openid_codes_of_account ON openid_codes (tenant_id, account_id);
