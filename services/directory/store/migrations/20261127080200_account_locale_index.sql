-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS accounts_by_locale; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS accounts_by_locale ON accounts (directory_id, lower(locale), id) INCLUDE (tenant_id);
