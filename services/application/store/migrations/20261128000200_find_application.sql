-- +goose NO TRANSACTION
-- +goose Up

-- A public address of an OpenID provider names the application alone: this leads to the tenant.
DROP INDEX CONCURRENTLY IF EXISTS applications_id; -- an attempt that failed leaves one that is invalid
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS applications_id ON applications (id);
