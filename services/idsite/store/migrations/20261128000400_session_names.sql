-- +goose NO TRANSACTION
-- +goose Up

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS sso_sessions_session_id ON sso_sessions (tenant_id, session_id);
