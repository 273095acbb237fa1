-- +goose Up

-- Names and keys are unique under their normal form; a key has no other.
CREATE TABLE organizations (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    name_folded text COLLATE "C" NOT NULL,
    name_key text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C" NOT NULL,
    status text NOT NULL,
    account_linking_policy_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name_folded),
    UNIQUE (tenant_id, name_key)
);

-- A mapping's owner is an application or an organization. The lock that every
-- change holds on the owner's row takes the place of a foreign key. The
-- directory is that of a store that is a directory or a group, so that the
-- mappings of both go with it. The provider is that of a social directory, of
-- which an owner has one of each.
ALTER TABLE account_store_mappings DROP CONSTRAINT account_store_mappings_tenant_id_application_id_fkey;
ALTER TABLE account_store_mappings RENAME COLUMN application_id TO owner_id;
ALTER TABLE account_store_mappings
    ADD COLUMN owner_kind text NOT NULL DEFAULT 'applications' CHECK (owner_kind IN ('applications', 'organizations')),
    ADD COLUMN directory_id uuid,
    ADD COLUMN social_provider text COLLATE "C";
ALTER TABLE account_store_mappings ALTER COLUMN owner_kind DROP DEFAULT;
UPDATE account_store_mappings SET directory_id = store_id;
CREATE INDEX mappings_of_directory ON account_store_mappings (tenant_id, directory_id);
CREATE UNIQUE INDEX one_of_each_social_provider ON account_store_mappings (tenant_id, owner_id, social_provider) WHERE social_provider IS NOT NULL;

-- Each application and each organization has one policy.
CREATE TABLE account_linking_policies (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('applications', 'organizations')),
    owner_id uuid NOT NULL,
    status text NOT NULL,
    automatic_provisioning text NOT NULL,
    matching_property text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, owner_id)
);
INSERT INTO account_linking_policies (tenant_id, id, owner_kind, owner_id, status, automatic_provisioning, created_at, modified_at)
    SELECT tenant_id, account_linking_policy_id, 'applications', id, 'DISABLED', 'DISABLED', created_at, created_at FROM applications;
