-- +goose Up

-- The kind of a directory: native for one that lives here, another for a mirror.
ALTER TABLE directories ADD COLUMN provider_id text NOT NULL DEFAULT 'native';
