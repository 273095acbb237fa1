-- +goose Up

-- Whether the first API key of the tenant was made, which no later start makes again. The
-- tenants that are there have theirs, or have deleted it.
ALTER TABLE id_sites ADD COLUMN key_made boolean NOT NULL DEFAULT true;
ALTER TABLE id_sites ALTER COLUMN key_made SET DEFAULT false;
