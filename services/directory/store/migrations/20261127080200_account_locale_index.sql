-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX IF EXISTS accounts_by_locale; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY accounts_by_locale ON accounts (directory_id, lower(locale), id) INCLUDE (tenant_id);
