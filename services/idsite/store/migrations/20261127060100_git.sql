-- +goose Up

-- User name and password of the repository, sealed; git_repo_url has a placeholder for them.
ALTER TABLE id_sites ADD COLUMN git_credential_sealed bytea;
-- Fetches that have failed since the last one that succeeded: the next one waits longer (back-off).
ALTER TABLE id_sites ADD COLUMN git_failures integer NOT NULL DEFAULT 0;
