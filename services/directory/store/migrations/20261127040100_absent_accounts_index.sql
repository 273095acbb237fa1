-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS accounts_absent; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS accounts_absent ON accounts (directory_id, absent_since, id) INCLUDE (tenant_id)
    WHERE absent_since IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS group_memberships_unconfirmed; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS group_memberships_unconfirmed ON group_memberships (tenant_id, directory_id, unconfirmed)
    WHERE unconfirmed IS NOT NULL;
