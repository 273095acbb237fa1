-- +goose Up

-- Any part of a name or a description is found by one index, within a directory.
-- A directory goes at once, and its groups after it, a few at a time.
ALTER TABLE groups
    ADD COLUMN search text COLLATE "C" NOT NULL DEFAULT '',
    DROP CONSTRAINT groups_tenant_id_directory_id_fkey;
UPDATE groups SET search = name_folded || E'\n' || coalesce(description_folded, '');
CREATE INDEX groups_search ON groups USING gin (directory_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 128);
