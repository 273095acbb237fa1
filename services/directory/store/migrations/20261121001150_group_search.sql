-- +goose Up

-- Any part of a name or a description is found by one index, within a directory.
-- A directory goes at once, and its groups after it, a few at a time.
ALTER TABLE groups
    ADD COLUMN search text COLLATE "C" NOT NULL DEFAULT '',
    DROP CONSTRAINT groups_tenant_id_directory_id_fkey;
UPDATE groups SET search = name_folded || E'\n' || coalesce(description_folded, '');
CREATE INDEX groups_search ON groups USING gin (directory_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 128);

-- What has customData: accounts and groups whose directory is there.
CREATE VIEW live_groups AS SELECT g.tenant_id, g.id, g.created_at
    FROM groups g JOIN directories d ON d.tenant_id = g.tenant_id AND d.id = g.directory_id;
CREATE VIEW live_accounts AS SELECT a.tenant_id, a.id, a.created_at
    FROM accounts a JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id;

-- Open verifications, which a new master key seals again.
CREATE INDEX accounts_sealed ON accounts (tenant_id, id) WHERE verification_sealed IS NOT NULL;
