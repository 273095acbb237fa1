-- +goose NO TRANSACTION
-- +goose Up

CREATE INDEX CONCURRENTLY IF NOT EXISTS accounts_by_locale ON accounts (directory_id, lower(locale), id) INCLUDE (tenant_id);
