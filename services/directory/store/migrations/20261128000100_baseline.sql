-- +goose Up

-- A tenant is found by its id everywhere; its key is unique in the deployment.
CREATE TABLE tenants (
    tenant_id uuid PRIMARY KEY,
    key text NOT NULL UNIQUE,
    name text NOT NULL,
    reset_key_sealed bytea, -- signs its password reset tokens; made for the first one
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL
);

-- Text that is searched or sorted stands in a column of its normal form, in the order of its code points. search joins
-- them, without accents (field.FoldForSearch), so that one index finds any part of any of them (pg_trgm), within one
-- tenant or one directory (btree_gin). A schema is found by its id.
CREATE TABLE directories (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    id uuid NOT NULL,
    name text NOT NULL,
    name_folded text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C" NOT NULL DEFAULT '',
    search text COLLATE "C" NOT NULL DEFAULT '',
    status text NOT NULL,
    builtin boolean NOT NULL DEFAULT false,
    provider_id text NOT NULL DEFAULT 'native', -- for one whose accounts live here, another for a mirror
    schema_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name_folded)
);
CREATE UNIQUE INDEX directories_schema ON directories (tenant_id, schema_id);
CREATE INDEX directories_by_status ON directories (tenant_id, status, id);
CREATE INDEX directories_by_creation ON directories (tenant_id, created_at, id);
CREATE INDEX directories_by_change ON directories (tenant_id, modified_at, id);
CREATE INDEX directories_search ON directories USING gin (tenant_id, search gin_trgm_ops)
    WITH (gin_pending_list_limit = 128);

CREATE TABLE account_creation_policies (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    verification_email_status text NOT NULL DEFAULT 'DISABLED',
    verification_success_email_status text NOT NULL DEFAULT 'DISABLED',
    welcome_email_status text NOT NULL DEFAULT 'DISABLED',
    email_domain_whitelist text[] NOT NULL DEFAULT '{}',
    email_domain_blacklist text[] NOT NULL DEFAULT '{}',
    registration_custom_data text[], -- root keys of customData that a user may set at a registration; NULL: all
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

CREATE TABLE password_policies (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    reset_token_ttl integer NOT NULL DEFAULT 24,
    reset_email_status text NOT NULL DEFAULT 'ENABLED',
    reset_success_email_status text NOT NULL DEFAULT 'ENABLED',
    min_length integer NOT NULL DEFAULT 8,
    max_length integer NOT NULL DEFAULT 100,
    min_lower_case integer NOT NULL DEFAULT 1,
    min_upper_case integer NOT NULL DEFAULT 1,
    min_numeric integer NOT NULL DEFAULT 1,
    min_symbol integer NOT NULL DEFAULT 0,
    min_diacritic integer NOT NULL DEFAULT 0,
    prevent_reuse integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

CREATE TABLE email_templates (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    workflow text NOT NULL,
    name text NOT NULL,
    description text,
    from_name text,
    from_email_address text,
    subject text NOT NULL,
    mime_type text NOT NULL,
    text_body text NOT NULL,
    html_body text NOT NULL,
    link_base_url text,
    unchanged boolean NOT NULL DEFAULT false, -- no tenant has changed its texts: the mail is the deployment's
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, workflow),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- The fields of the account schema of every directory: givenName and surname.
CREATE TABLE schema_fields (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    required boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, name),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- A directory goes at once and its accounts after it, a few at a time: there is no foreign key. A verification keeps
-- its digest after its use, with no end (verification_expires_at), so that its link still leads to the account.
CREATE TABLE accounts (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    username text NOT NULL,
    username_folded text COLLATE "C" NOT NULL,
    email text NOT NULL,
    email_folded text COLLATE "C" NOT NULL,
    given_name text,
    given_name_folded text COLLATE "C" NOT NULL DEFAULT '',
    middle_name text,
    middle_name_folded text COLLATE "C" NOT NULL DEFAULT '',
    surname text,
    surname_folded text COLLATE "C" NOT NULL DEFAULT '',
    full_name_folded text COLLATE "C" NOT NULL DEFAULT '',
    search text COLLATE "C" NOT NULL DEFAULT '',
    locale text, -- BCP 47, in its canonical form
    status text NOT NULL,
    absent_since timestamptz, -- the last complete sync of a mirror no longer held it; DISABLED meanwhile
    email_verification_status text NOT NULL,
    email_assumed boolean NOT NULL DEFAULT false, -- VERIFIED although its provider says nothing of it
    verification_digest bytea,
    verification_sealed bytea,
    verification_expires_at timestamptz,
    verification_application_id uuid,             -- through which the mail was caused
    password_hash text NOT NULL DEFAULT '',
    password_modified_at timestamptz,
    owner boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, username_folded),
    UNIQUE (tenant_id, directory_id, email_folded)
);
-- An index for an order begins with the directory, whose id no other tenant has, so that the planner cannot take it for a
-- way to find an account by its id.
CREATE INDEX accounts_of_directory ON accounts (directory_id, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_given_name ON accounts (directory_id, given_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_middle_name ON accounts (directory_id, middle_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_surname ON accounts (directory_id, surname_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_full_name ON accounts (directory_id, full_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_status ON accounts (directory_id, status, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_verification ON accounts (directory_id, email_verification_status, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_creation ON accounts (directory_id, created_at, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_change ON accounts (directory_id, modified_at, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_password_change ON accounts (directory_id, password_modified_at, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_locale ON accounts (directory_id, lower(locale), id) INCLUDE (tenant_id);
CREATE INDEX accounts_absent ON accounts (directory_id, absent_since, id) INCLUDE (tenant_id)
    WHERE absent_since IS NOT NULL;
-- A pending list of half a megabyte: a longer one makes inserts cheaper, and a search reads all of it.
CREATE INDEX accounts_search ON accounts USING gin (directory_id, search gin_trgm_ops)
    WITH (gin_pending_list_limit = 512);
-- A mailed link names its token and not its tenant. A digest of 256 bits is nobody else's, so that one index serves both
-- look-ups.
CREATE INDEX accounts_by_verification_digest ON accounts (verification_digest) INCLUDE (tenant_id)
    WHERE verification_digest IS NOT NULL;
-- Open verifications, which a new master key seals again.
CREATE INDEX accounts_sealed ON accounts (tenant_id, id) WHERE verification_sealed IS NOT NULL;

-- Every name that leads a login to an account of a directory: its user name and its email, in their normal form. The
-- look-up of a login reads this table, and its primary key keeps a name from a second account.
CREATE TABLE login_names (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    account_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, name)
);

-- How many accounts of each status a directory has, spread over rows so that registrations at the same moment do not
-- wait for each other.
CREATE TABLE account_counts (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    status text NOT NULL,
    shard smallint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, status, shard),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- The former password hashes of an account, the newest with the highest position, kept while its directory's policy
-- forbids reuse.
CREATE TABLE password_history (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    position bigint NOT NULL,
    password_hash text NOT NULL,
    PRIMARY KEY (tenant_id, account_id, position),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);

-- A row is a right to set an account's password once, until expires_at; it is kept for a while after that, so that its
-- link still leads to the account.
CREATE TABLE password_resets (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    account_id uuid NOT NULL,
    application_id uuid,
    mailed boolean NOT NULL DEFAULT false, -- and shown to nobody else: its use proves that the mailbox is the user's
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX password_resets_of_account ON password_resets (tenant_id, account_id);
CREATE INDEX password_resets_expired ON password_resets (expires_at);

-- Left and right carry no meaning, and a link is never changed.
CREATE TABLE account_links (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    left_account_id uuid NOT NULL,
    right_account_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, left_account_id, right_account_id),
    FOREIGN KEY (tenant_id, left_account_id) REFERENCES accounts ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, right_account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX account_links_of_right ON account_links (tenant_id, right_account_id);

-- The searchable values of the accounts' custom data. element is true for a value inside an array. The index by number
-- has the order of values, too: numbers, and behind them texts.
CREATE TABLE account_values (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    place integer NOT NULL,
    directory_id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    element boolean NOT NULL,
    text text COLLATE "C" NOT NULL,
    number numeric,
    moment timestamptz,
    PRIMARY KEY (tenant_id, account_id, place),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX account_values_by_text ON account_values (directory_id, path, text, account_id);
CREATE INDEX account_values_by_number ON account_values (directory_id, path, number, text, account_id);
CREATE INDEX account_values_by_moment ON account_values (directory_id, path, moment, account_id)
    WHERE moment IS NOT NULL;
-- Of any directory and path: with both in the index it was ten times as slow where it is of use. In a small directory
-- account_values_by_text is read.
CREATE INDEX account_values_search ON account_values USING gin (text gin_trgm_ops) WITH (gin_pending_list_limit = 128);

-- A description may be too long for an entry of a B-tree, so that the column has no such index. A directory goes at
-- once, and its groups after it, a few at a time.
CREATE TABLE groups (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    name text NOT NULL,
    name_folded text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C",
    search text COLLATE "C" NOT NULL DEFAULT '',
    status text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, name_folded)
);
CREATE INDEX groups_of_directory ON groups (directory_id, id) INCLUDE (tenant_id);
CREATE INDEX groups_by_status ON groups (directory_id, status, id) INCLUDE (tenant_id);
CREATE INDEX groups_by_creation ON groups (directory_id, created_at, id) INCLUDE (tenant_id);
CREATE INDEX groups_by_change ON groups (directory_id, modified_at, id) INCLUDE (tenant_id);
CREATE INDEX groups_of_tenant_by_name ON groups (tenant_id, name_folded, id);
CREATE INDEX groups_search ON groups USING gin (directory_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 128);

-- The searchable values of the groups' custom data, as account_values.
CREATE TABLE group_values (
    tenant_id uuid NOT NULL,
    group_id uuid NOT NULL,
    place integer NOT NULL,
    directory_id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    element boolean NOT NULL,
    text text COLLATE "C" NOT NULL,
    number numeric,
    moment timestamptz,
    PRIMARY KEY (tenant_id, group_id, place),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);
CREATE INDEX group_values_by_text ON group_values (directory_id, path, text, group_id);
CREATE INDEX group_values_by_number ON group_values (directory_id, path, number, text, group_id);
CREATE INDEX group_values_by_moment ON group_values (directory_id, path, moment, group_id) WHERE moment IS NOT NULL;

-- A membership is never changed: it has one time. unconfirmed is the number of a sync that stated the group without an
-- account which it had not held until then. Such a membership goes when the sync ends with the account; it stays while
-- the account is absent, and where the sync is held.
CREATE TABLE group_memberships (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    group_id uuid NOT NULL,
    account_id uuid NOT NULL,
    unconfirmed bigint,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, group_id, account_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX group_memberships_of_account ON group_memberships (tenant_id, account_id, group_id);
CREATE INDEX group_memberships_of_group ON group_memberships (tenant_id, group_id, id);
CREATE INDEX group_memberships_by_creation ON group_memberships (tenant_id, group_id, created_at, id);
CREATE INDEX group_memberships_unconfirmed ON group_memberships (tenant_id, directory_id, unconfirmed)
    WHERE unconfirmed IS NOT NULL;

-- What has customData: accounts and groups whose directory is there.
CREATE VIEW live_groups AS SELECT g.tenant_id, g.id, g.created_at
    FROM groups g JOIN directories d ON d.tenant_id = g.tenant_id AND d.id = g.directory_id;
CREATE VIEW live_accounts AS SELECT a.tenant_id, a.id, a.created_at
    FROM accounts a JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id;

-- Directories that are gone and whose accounts and groups are being removed.
CREATE TABLE directory_removals (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id)
);

-- Sign-ups and invitations of administrators whose mail has not been answered. A sign-up has the ids of the tenant and
-- the owner that it will make.
CREATE TABLE sign_ups (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    digest bytea NOT NULL,                -- SHA-256 of the token in the mail
    email text NOT NULL,
    email_folded text NOT NULL,
    address_hash text NOT NULL,           -- of the network that asked; empty where it is not known
    given_name text,
    surname text,
    password_hash text,                   -- null: an invitation, which asks for the password later
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id)
);
-- A mailed link names its token and not its tenant.
CREATE INDEX sign_ups_by_digest ON sign_ups (digest) INCLUDE (tenant_id);
CREATE INDEX sign_ups_of_email ON sign_ups (email_folded, created_at);
CREATE INDEX sign_ups_of_address ON sign_ups (address_hash, created_at);
CREATE INDEX sign_ups_expired ON sign_ups (expires_at);

-- What a mirror directory is a copy of. A cloud directory has no row here. The settings differ by type and are never
-- searched.
CREATE TABLE providers (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    provider_type text NOT NULL,
    settings jsonb NOT NULL,
    client_secret_sealed bytea,
    metadata_due_at timestamptz, -- when the metadata of a SAML identity provider are read again; NULL: they have no address
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- What the provider said of an account at its last login. An account of a cloud directory has no row here. External ids
-- are compared byte for byte.
CREATE TABLE provider_data (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    claims jsonb NOT NULL,
    tokens_sealed bytea,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id),
    UNIQUE (tenant_id, directory_id, external_id),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- Which claims of the provider go to which attributes of an account. The kind is the collection under which the rules
-- are addressed.
CREATE TABLE mapping_rules (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    kind text NOT NULL,
    items jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- A SAML directory as a service provider: its key pair.
CREATE TABLE saml_service_providers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    certificate_id uuid NOT NULL,
    certificate text NOT NULL,
    private_key_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id),
    UNIQUE (tenant_id, certificate_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);
-- The tenant of a directory that an identity provider names.
CREATE INDEX saml_service_providers_tenant ON saml_service_providers (directory_id, tenant_id);

-- The assertions of identity providers that were used, until they are refused for their time.
CREATE TABLE saml_assertions (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    digest bytea NOT NULL,                -- SHA-256 of the id of the assertion
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, digest)
);
CREATE INDEX saml_assertions_expired ON saml_assertions (expires_at);

-- The program that reads an LDAP or Active Directory server for a directory.
CREATE TABLE agents (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    status text NOT NULL,
    called_at timestamptz,
    unanswered_at timestamptz,           -- when a password check last ended without a result
    config jsonb NOT NULL,
    password_sealed bytea NOT NULL,
    absence_confirmed_until timestamptz, -- until then the brake is off
    vanished bigint NOT NULL DEFAULT 0,  -- accounts that pages have named as deleted since the last complete sync
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- Keys with which an agent calls, and nothing else can be done. The id names the tenant and the agent; the secret is
-- shown once.
CREATE TABLE agent_keys (
    tenant_id uuid NOT NULL,
    id text NOT NULL,
    agent_id uuid NOT NULL,
    name text,
    secret_digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
CREATE INDEX agent_keys_of_agent ON agent_keys (tenant_id, agent_id, created_at, id);

-- The syncs of an agent; of those without an id, one row. Each sync with an id has a number of its own, higher than
-- those before it, which marks what its pages held.
CREATE TABLE agent_syncs (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    sync_id text NOT NULL,
    directory_id uuid NOT NULL,
    number bigint NOT NULL,
    started_at timestamptz NOT NULL,
    completed_at timestamptz,
    ended boolean NOT NULL DEFAULT false, -- all pages have come, and it is to be finished
    accounts bigint NOT NULL DEFAULT 0,
    groups bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0,
    absent bigint NOT NULL DEFAULT 0,     -- absent accounts of the directory when the sync ended
    held bigint NOT NULL DEFAULT 0,       -- accounts that it would have made absent, but for the brake; 0: it was not held
    PRIMARY KEY (tenant_id, agent_id, sync_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
CREATE INDEX agent_syncs_ended ON agent_syncs (started_at) WHERE ended;

-- Entries of the directory server that were not taken, with the entry itself, which is tried again when its sync
-- completes.
CREATE TABLE agent_refusals (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    kind text NOT NULL, -- account or group
    external_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    reason text NOT NULL,
    entry jsonb NOT NULL,
    seen bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, agent_id, kind, external_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);

-- Password checks that logins wait for. A row lives for seconds: the table is in no log and no backup, and is empty
-- after a crash, as are the logins.
CREATE UNLOGGED TABLE agent_checks (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    id uuid NOT NULL,
    external_id text NOT NULL,
    username text NOT NULL,
    password bytea, -- sealed; NULL when answered
    trace jsonb NOT NULL,
    result integer, -- 0 for success, 1 for a wrong password, else the code of an error
    created_at timestamptz NOT NULL,
    taken_until timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX agent_checks_open ON agent_checks (tenant_id, agent_id, created_at) WHERE result IS NULL;
CREATE INDEX agent_checks_by_age ON agent_checks (created_at);

-- What an account of a mirror is at its source. assigned_status is what an administrator wants it to be; while disabled
-- is true, the account is DISABLED all the same.
CREATE TABLE mirrored_accounts (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    account_id uuid NOT NULL,
    digest bytea NOT NULL, -- of all that was sent
    disabled boolean NOT NULL,
    assigned_status text NOT NULL,
    seen bigint NOT NULL, -- number of the last sync that held it
    PRIMARY KEY (tenant_id, directory_id, external_id),
    UNIQUE (tenant_id, account_id) -- whose deletion deletes the row, without a check of every new one
);

CREATE TABLE mirrored_groups (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    group_id uuid NOT NULL,
    digest bytea NOT NULL,
    seen bigint NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, external_id),
    UNIQUE (tenant_id, group_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);

-- Members of groups whose accounts are not there yet.
CREATE TABLE mirrored_members (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    group_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, external_id, group_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);
CREATE INDEX mirrored_members_of_group ON mirrored_members (tenant_id, group_id);
