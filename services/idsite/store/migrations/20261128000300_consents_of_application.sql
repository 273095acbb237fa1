-- +goose NO TRANSACTION
-- +goose Up

-- The consents of a deleted application are deleted.
DROP INDEX CONCURRENTLY IF EXISTS consents_of_application; -- an attempt that failed leaves one that is invalid
CREATE INDEX CONCURRENTLY IF NOT EXISTS consents_of_application ON consents (tenant_id, application_id);
